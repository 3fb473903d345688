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

// readKubelet reads KubeletConfiguration, also as a drop-in.
func (d *document) readKubelet(root node) {
	if d.kind == "KubeletConfiguration" {
		d.componentConfig(history.Kubelet, root)
	}
}

// readKubeProxy reads KubeProxyConfiguration.
func (d *document) readKubeProxy(root node) {
	if d.kind == "KubeProxyConfiguration" {
		d.componentConfig(history.KubeProxy, root)
	}
}

// componentConfig reads the gates of a configuration. It is that of the process which other documents of the file have
// arguments of, as in a file of kubeadm, unless the file has several of its kind.
func (d *document) componentConfig(component string, root node) {
	of := d.shared
	if d.configured[component] {
		of = d.process
	}
	d.configured[component] = true
	d.gateMap(of(component, root), root.at("featureGates"), false)
}
