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

// Package conformance runs upstream's end-to-end tests on a cluster of kind of the
// release, and on one of upstream's unchanged binaries of the same version, and
// compares the results. "make kind-conformance" runs it.
//
// The specs that are to run are listed beforehand, and each has to be in both reports.
// Where no registry is reachable, images are made from upstream's module
// (build/kind/e2e), and nodes pull them from a registry of the test. Specs that cannot
// run are left out by a table, and those that fail on both clusters are in another; the
// report lists the first with their names, and the images that are missing.
package conformance
