/*
Copyright The Kubernetes Authors.

Licensed under the Apache License, Version 2.0 (the "License");
you may not use this file except in compliance with the License.
You may obtain a copy of the License at

    http://www.apache.org/licenses/LICENSE-2.0

Unless required by applicable law or agreed to in writing, software
distributed under the License is distributed on an "AS IS" BASIS,
WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
See the License for the specific language governing permissions and
limitations under the License.
*/

// Package reporting wires the agent of the library into Kubernetes' binaries. Install puts
// the reporting layer over the feature gate of the process before the command is built.
// Main runs a command with an agent, which reports and takes the values that are set
// centrally. The mains in cmd call it. Nothing in here fails a binary, and only the wait
// for these values delays it, in bounded time.
package reporting
