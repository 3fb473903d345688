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

package gatefiles

import "k8s.io/kubernetes-features/pkg/featurelifecycle/history"

// readKubeadm reads ClusterConfiguration, InitConfiguration and JoinConfiguration. Arguments are maps up to v1beta3,
// and lists of names and values since v1beta4.
// See cmd/kubeadm/app/apis/kubeadm of Kubernetes.
func (d *document) readKubeadm(root node) {
	switch d.kind {
	case "ClusterConfiguration":
		d.kubeadmCluster(root, d.shared)
	case "InitConfiguration", "JoinConfiguration":
		d.kubeadmNode(root, d.shared)
	}
}

// processes returns the process of a component that a node describes.
type processes func(component string, n node) *Process

// kubeadmCluster reads what a ClusterConfiguration has. Its own featureGates are those of kubeadm.
func (d *document) kubeadmCluster(n node, of processes) {
	for _, c := range []struct{ key, component string }{
		{"apiServer", history.KubeAPIServer}, {"controllerManager", history.KubeControllerManager}, {"scheduler", history.KubeScheduler},
	} {
		p := of(c.component, cmpNode(n.at(c.key), n))
		d.args(p, n.at(c.key, "extraArgs"))
	}
	if gates := n.at("featureGates"); gates.exists() {
		d.gateMap(of(history.Kubeadm, gates), gates, false)
	}
}

// kubeadmNode reads what an InitConfiguration or JoinConfiguration has.
func (d *document) kubeadmNode(n node, of processes) {
	if args := n.at("nodeRegistration", "kubeletExtraArgs"); args.exists() {
		d.args(of(history.Kubelet, args), args)
	}
}
