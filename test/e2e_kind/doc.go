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

// Package e2ekind takes features through on, used and off on real nodes: clusters of kind
// out of this repository's release, with kubeadm, systemd, containerd and kubelets that
// run containers. "make kind-test" runs the tests, LONG=y also those of several control
// planes and of an upgrade; "go test" skips them.
package e2ekind
