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

// Package localcluster runs a real Kubernetes control plane with hollow nodes on this
// machine: etcd, kube-apiserver, kube-controller-manager, kube-scheduler and, for
// each node, a kubelet and a kube-proxy without containers and network. Every
// component is a process with its own certificate and RBAC identity. local-up
// and the integration tests are its callers. It needs Linux and no root;
// everything listens on loopback.
package localcluster
