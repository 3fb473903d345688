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

// Package registry serves images to the nodes of clusters of tests: those of archives
// that build/kind makes, under the names that they have, and small ones that tests make.
// It answers the part of the OCI distribution API that pulls need. Nothing here listens:
// kindcluster serves a Registry where nodes reach it.
package registry
