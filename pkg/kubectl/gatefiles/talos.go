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

// isTalos matches a machine configuration of Talos Linux, and patches of one, which have a part of it. Other documents
// of its files have apiVersion v1alpha1 and a kind.
func (d *document) isTalos(root node) bool {
	if d.apiVersion == "v1alpha1" && d.kind != "" {
		return true
	}
	machine, cluster := root.at("machine"), root.at("cluster")
	return d.kind == "" && (machine.isMap() || cluster.isMap()) &&
		(root.at("version").text() == "v1alpha1" || onlyKeys(root, "machine", "cluster", "version", "debug", "persist"))
}

func onlyKeys(n node, keys ...string) bool {
	for key := range n.fields() {
		known := false
		for _, k := range keys {
			known = known || key.Value == k
		}
		if !known {
			return false
		}
	}
	return true
}

// readTalos reads arguments, whose values are texts or lists of them, the configuration of the kubelet, static pods
// and manifests.
func (d *document) readTalos(root node) {
	cluster, machine := root.at("cluster"), root.at("machine")
	for _, c := range []struct{ key, component string }{
		{"apiServer", history.KubeAPIServer}, {"controllerManager", history.KubeControllerManager}, {"scheduler", history.KubeScheduler}, {"proxy", history.KubeProxy},
	} {
		if n := cluster.at(c.key); n.exists() {
			d.args(d.process(c.component, n), n.at("extraArgs"))
		}
	}
	if n := machine.at("kubelet"); n.exists() {
		p := d.process(history.Kubelet, n)
		d.gateMap(p, n.at("extraConfig", "featureGates"), false)
		d.args(p, n.at("extraArgs"))
	}
	for _, pod := range machine.at("pods").items() {
		d.podSpec(pod.at("spec"), "")
	}
	for _, manifest := range cluster.at("inlineManifests").items() {
		d.embed(manifest.at("contents"), manifest.at("name").text())
	}
}
