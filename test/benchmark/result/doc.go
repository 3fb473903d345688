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

// Package result is what a benchmark found: tables, charts, budgets and limits,
// with the machine and the commit that it ran on. The benchmarks of test/benchmark
// make results, package draw makes pictures and BENCHMARKS.md of them. Nothing is
// measured here, and only the standard library is imported.
package result
