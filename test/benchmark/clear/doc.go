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

// Package clear measures how fast a field is removed from all objects of a
// collection: by turning its feature off, which clears in storage or through the API, by
// the in-tree storage version migrator, which rewrites the same objects, by a client that
// does nothing but patch, and by a program that does nothing but write the same bytes into
// etcd. All work on the same kube-apiserver and etcd, beside the same load of other clients.
// It also measures what counting the objects with a field takes after a start.
package clear
