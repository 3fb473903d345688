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

// readKind reads the Cluster of kind. Its gates are those of all components, and its patches add to them.
func (d *document) readKind(root node) {
	for _, component := range []string{history.KubeAPIServer, history.KubeControllerManager, history.KubeScheduler, history.Kubelet, history.KubeProxy} {
		p := d.shared(component, root)
		d.gateMap(p, root.at("featureGates"), false)
		if component == history.KubeAPIServer {
			d.runtimeConfigMap(p, root.at("runtimeConfig"))
		}
	}
	patches := root.at("kubeadmConfigPatches").items()
	for _, n := range root.at("nodes").items() {
		patches = append(patches, n.at("kubeadmConfigPatches").items()...)
	}
	for _, patch := range patches {
		d.embed(patch, d.name)
	}
}
