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

// Package verdict decides what settings of feature gates mean for another minor version. It has settings that package
// gatefiles read, and the history of the gates. "kubectl feature upgrade-check -f" prints what it returns.
//
// Its rules are those of k8s.io/component-base/featuregate, by which a component refuses to start: a test compares
// each gate, component and version with that package. Nothing is read here.
package verdict
