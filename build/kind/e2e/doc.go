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

// Package e2e makes what upstream's end-to-end tests need where no registry is
// reachable: the tests themselves, and images under the names that they ask for.
//
// Images have the program of upstream's module that they are named after, and
// Debian's tools in place of those of Alpine. Two are stand-ins: the web server is
// that of busybox, and what only asks for names has Debian's dig. The image that is a
// volume names both systems in its os-release. The names of images that tests ask for
// and that are not made here are returned: "make kind-conformance" lists them, and
// which specs it leaves out for them (test/e2e_kind/conformance).
package e2e
