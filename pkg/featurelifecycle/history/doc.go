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

// Package history has the feature gates of Kubernetes by component and minor version: since when each
// exists, its stage, its default, whether it is locked, what it depends on, and when it was removed.
//
// gates.json has what the binaries of each version have: hack/history compiles their gates out of
// upstream's modules and asks them. It is published with each release, and gates.schema.json describes
// it. "kubectl feature gates" prints it. Nothing here decides, and no server reads it. The package
// imports nothing of Kubernetes, and the data is parsed when it is first asked for.
package history
