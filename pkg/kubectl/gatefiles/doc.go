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

// Package gatefiles reads settings of feature gates from files that people keep in git: configurations of
// components, arguments of workloads, and the formats of tools that make clusters. Each setting has its file, line
// and column. "kubectl feature upgrade-check -f" calls it.
//
// A format is one small reader in a file of its own, in the list formats. Nothing here decides what a setting
// means for a version (package verdict does), and nothing connects to a cluster. Documents that have gates and
// no known format are returned as such, and never skipped.
package gatefiles
