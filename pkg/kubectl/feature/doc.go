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

// Package feature is the kubectl plugin "kubectl feature". It reads Features and
// FeatureReports and evaluates them with the library's packages. It has the gates
// and the catalog of its build, as the binaries of its version do. It writes only
// the spec of a Feature, and the request to clean one up. Only these commands write:
// enable, disable, reset, rollout, pause, resume and clean.
//
// A command is one file with its texts, its options and its constructor, which
// takes the base: flags, clients and streams that all commands share.
package feature
