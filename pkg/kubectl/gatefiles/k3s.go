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

import (
	"slices"
	"strings"

	"k8s.io/kubernetes-features/pkg/featurelifecycle/history"
)

// k3sArgs are the keys of arguments in the configuration of k3s and RKE2, with their other names.
var k3sArgs = []struct {
	keys      []string
	component string
}{
	{[]string{"kube-apiserver-arg"}, history.KubeAPIServer},
	{[]string{"kube-controller-manager-arg", "kube-controller-arg"}, history.KubeControllerManager},
	{[]string{"kube-scheduler-arg"}, history.KubeScheduler},
	{[]string{"kubelet-arg"}, history.Kubelet},
	{[]string{"kube-proxy-arg"}, history.KubeProxy},
	{[]string{"kube-cloud-controller-manager-arg", "kube-cloud-controller-arg"}, history.CloudControllerManager},
}

// k3sKeys are others that show what a file is: one of them is in nearly each.
var k3sKeys = []string{
	"token", "server", "tls-san", "cluster-init", "disable", "node-label", "node-taint", "write-kubeconfig-mode", "cni", "flannel-backend",
	"cluster-cidr", "service-cidr", "selinux", "node-ip", "token-file", "agent-token", "datastore-endpoint",
}

// isK3s matches config.yaml of k3s or RKE2, or a file of config.yaml.d: a map from flags to values.
func (d *document) isK3s(root node) bool {
	if d.kind != "" || d.apiVersion != "" {
		return false
	}
	others := 0
	for key, value := range root.fields() {
		name := strings.TrimSuffix(key.Value, "+")
		for _, a := range k3sArgs {
			if slices.Contains(a.keys, name) {
				return true
			}
		}
		if slices.Contains(k3sKeys, name) && !value.isMap() {
			others++
		}
	}
	return others > 1
}

// readK3s reads arguments: a list of NAME=VALUE, or one such text. A plus at the end of a key adds to another file.
func (d *document) readK3s(root node) {
	for _, a := range k3sArgs {
		var p *Process
		for key, value := range root.fields() {
			if !slices.Contains(a.keys, strings.TrimSuffix(key.Value, "+")) {
				continue
			}
			if p == nil {
				p = d.process(a.component, key)
			}
			d.args(p, value)
		}
	}
}

// readRancher reads a Cluster of Rancher: the configuration of RKE2 or k3s for all machines, and for some.
func (d *document) readRancher(root node) {
	config := root.at("spec", "rkeConfig")
	d.readK3s(config.at("machineGlobalConfig"))
	for _, selected := range config.at("machineSelectorConfig").items() {
		d.readK3s(selected.at("config"))
	}
}
