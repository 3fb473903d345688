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

// readGardener reads the components of a Shoot. A worker's kubelet has its own section, or that of the Shoot.
func (d *document) readGardener(root node) {
	if d.kind != "Shoot" {
		return
	}
	for _, c := range []struct{ key, component string }{
		{"kubeAPIServer", history.KubeAPIServer}, {"kubeControllerManager", history.KubeControllerManager}, {"kubeScheduler", history.KubeScheduler},
		{"kubelet", history.Kubelet}, {"kubeProxy", history.KubeProxy},
	} {
		n := root.at("spec", "kubernetes", c.key)
		if !n.exists() && c.component != history.KubeAPIServer {
			continue
		}
		p := d.process(c.component, cmpNode(n, root))
		d.gateMap(p, n.at("featureGates"), false)
		d.runtimeConfigMap(p, n.at("runtimeConfig"))
	}
	for _, worker := range root.at("spec", "provider", "workers").items() {
		if n := worker.at("kubernetes", "kubelet"); n.exists() {
			d.gateMap(d.process(history.Kubelet, n), n.at("featureGates"), false)
		}
	}
}
