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

// Package flip measures what it takes that thousands of processes follow a value that
// changes while they run: the time until the last one has it, what that costs
// kube-apiserver, and what their watches cost at rest. Beside it are informers of a
// ConfigMap, which is what people use without this system, and plain watches that get
// the smallest event, which is what kube-apiserver can do at best.
package flip
