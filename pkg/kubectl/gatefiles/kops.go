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

// readKops reads Cluster and InstanceGroup of kOps. Values of gates are strings.
func (d *document) readKops(root node) {
	for _, c := range []struct{ key, component string }{
		{"kubeAPIServer", history.KubeAPIServer}, {"kubeControllerManager", history.KubeControllerManager}, {"kubeScheduler", history.KubeScheduler},
		{"kubelet", history.Kubelet}, {"controlPlaneKubelet", history.Kubelet}, {"masterKubelet", history.Kubelet}, {"kubeProxy", history.KubeProxy},
		{"cloudControllerManager", history.CloudControllerManager},
	} {
		n := root.at("spec", c.key)
		// Each cluster has servers, also where they have no section.
		if !n.exists() && (d.kind != "Cluster" || c.component != history.KubeAPIServer) {
			continue
		}
		p := d.process(c.component, cmpNode(n, root))
		d.gateMap(p, n.at("featureGates"), true)
		d.runtimeConfigMap(p, n.at("runtimeConfig"))
	}
}
