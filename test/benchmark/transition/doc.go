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

// Package transition measures how long a transition takes that no longer waits for
// users. It measures from the server's response to the last awaited report until the
// final state, with and without something to clean up, with one server and with three.
// Part of it is the settle period, by design; what is left is this system's. Beside it
// is what an administrator would script: a loop that looks at all reports every second
// and then cleans up.
package transition
