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
	"encoding/base64"
	"path"
	"strings"
)

// readClusterAPI reads KubeadmControlPlane and KubeadmConfig, and their templates, of all versions of Cluster API: up
// to v1beta1 arguments are maps, and since v1beta2 lists of names and values.
func (d *document) readClusterAPI(root node) {
	spec := root.at("spec")
	switch d.kind {
	case "KubeadmControlPlane":
		d.kubeadmConfigSpec(spec.at("kubeadmConfigSpec"))
	case "KubeadmControlPlaneTemplate":
		d.kubeadmConfigSpec(spec.at("template", "spec", "kubeadmConfigSpec"))
	case "KubeadmConfig":
		d.kubeadmConfigSpec(spec)
	case "KubeadmConfigTemplate":
		d.kubeadmConfigSpec(spec.at("template", "spec"))
	}
}

// kubeadmConfigSpec reads the configuration of a set of machines, whose processes are those of the document.
func (d *document) kubeadmConfigSpec(n node) {
	known := map[string]*Process{}
	of := func(component string, n node) *Process {
		if known[component] == nil {
			known[component] = d.process(component, n)
		}
		return known[component]
	}
	if cluster := n.at("clusterConfiguration"); cluster.exists() {
		d.kubeadmCluster(cluster, of)
	}
	d.kubeadmNode(n.at("initConfiguration"), of)
	// The first machine of a control plane is initialized, and others join: these are other processes.
	known = map[string]*Process{}
	d.kubeadmNode(n.at("joinConfiguration"), of)
	// Files are patches of kubeadm, or static pods.
	for _, f := range n.at("files").items() {
		d.encodedFile(f.at("content"), f.at("encoding").text(), f.at("path").text())
	}
}

// encodedFile reads a file that may be encoded. What is compressed is not read.
func (d *document) encodedFile(content node, encoding, name string) {
	switch encoding {
	case "base64":
		data, err := base64.StdEncoding.DecodeString(strings.Join(strings.Fields(content.text()), ""))
		if err != nil {
			d.problem(content, "write it in base64, or leave out encoding", "the content of %s is no base64", name)
			return
		}
		// All that is in it is at the place of the content.
		decoded := *content.Node
		decoded.Value, decoded.Style, decoded.Tag = string(data), 0, "!!str"
		content.Node = &decoded
	case "gzip", "gzip+base64":
		if patchFile.MatchString(path.Base(name)) {
			d.unread(content, true, "the content of "+name+" is compressed", "keep the patch as a text, and check it alone")
		}
		return
	}
	d.embed(content, name)
}
