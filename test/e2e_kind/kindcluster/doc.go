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

// Package kindcluster runs clusters of kind for tests, by the targets of the Makefile:
// nodes with systemd, containerd, kubelet and kubeadm's static pods, out of the release in
// _output/release-tars. It changes feature gates the way administrators do: in manifests,
// in kubelet's configuration and in kube-proxy's ConfigMap.
//
// A cluster ends with its test. A test that fails shows the cluster's events and exports
// the nodes' logs to _output/kind/logs first.
package kindcluster
