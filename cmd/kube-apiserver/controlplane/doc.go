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

// Package controlplane composes this fork's kube-apiserver from upstream's: the
// same options, flags and chain of servers, with the API group features.k8s.io
// as a built-in group and the server flow as a post-start hook. cmd/kube-apiserver
// is its caller. The server flow's tasks reach etcd through Stored, and edit objects there
// through the Editor of NewEditor. With the gate FeatureLifecycle off nothing is added (S6).
package controlplane
