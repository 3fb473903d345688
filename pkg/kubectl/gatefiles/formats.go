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
	"fmt"
	"path"
	"regexp"
	"strings"

	yaml "go.yaml.in/yaml/v3"
)

// format reads the documents of a tool.
type format struct {
	name    string
	matches func(*document, node) bool
	read    func(*document, node)
}

// formats are tried in turn. Those that are known by their shape come after those that are known by apiVersion and kind.
func formats() []format {
	return []format{
		{"list", (*document).isItems, (*document).readItems},
		{"kubeadm", group("kubeadm.k8s.io"), (*document).readKubeadm},
		{"kubelet", group("kubelet.config.k8s.io"), (*document).readKubelet},
		{"kube-proxy", group("kubeproxy.config.k8s.io"), (*document).readKubeProxy},
		{"cluster-api", group("controlplane.cluster.x-k8s.io", "bootstrap.cluster.x-k8s.io"), (*document).readClusterAPI},
		{"kops", group("kops.k8s.io"), (*document).readKops},
		{"gardener", group("core.gardener.cloud"), (*document).readGardener},
		{"kind", group("kind.x-k8s.io"), (*document).readKind},
		{"rancher", group("provisioning.cattle.io"), (*document).readRancher},
		{"workload", group("", "apps", "batch"), (*document).readWorkload},
		{"patch", (*document).isPatch, (*document).readPatch},
		{"talos", (*document).isTalos, (*document).readTalos},
		{"k3s", (*document).isK3s, (*document).readK3s},
	}
}

// group matches documents of some API groups.
func group(names ...string) func(*document, node) bool {
	return func(d *document, _ node) bool {
		if d.kind == "" || d.apiVersion == "" {
			return false
		}
		of, _, found := strings.Cut(d.apiVersion, "/")
		if !found {
			of = ""
		}
		for _, name := range names {
			if of == name {
				return true
			}
		}
		return false
	}
}

// read reads a document by its format.
func (d *document) read(root node) {
	d.apiVersion, d.kind = root.at("apiVersion").text(), root.at("kind").text()
	// Arguments that are named by a path are those of documents without a format, or more of one.
	byPath := d.readPaths(root)
	before := d.reader.result
	for _, f := range formats() {
		if !f.matches(d, root) {
			continue
		}
		d.format = f.name
		f.read(d, root)
		if f.name == "list" || byPath {
			return
		}
		if r := &d.reader.result; len(r.Settings)+len(r.Processes)+len(r.Problems)+len(r.Unread) > len(before.Settings)+len(before.Processes)+len(before.Problems)+len(before.Unread) {
			return
		}
		// A kind of a known group that has none of its places.
		d.mentioned(root)
		return
	}
	if d.embedded && !root.isMap() {
		// The document around it has this text, too.
		return
	}
	if byPath || d.mentioned(root) || d.embedded {
		return
	}
	if d.kind == "" || d.apiVersion == "" {
		d.format = ""
		d.unread(root, d.given, "its format is not known", "name the key of its gates, as --path=KEY=COMPONENT, or leave the file out")
	}
}

// unread returns a document, or a part of it, as one that is not read.
func (d *document) unread(at node, matters bool, why, next string) {
	d.reader.result.Unread = append(d.reader.result.Unread, Unread{Source: d.source(at), Why: why, Next: next, Matters: matters})
}

// gatesKey matches keys of gates, and arguments that set them.
var gatesKey = regexp.MustCompile(`(?i)^(feature-?gates|feature_gates|.*--?feature[-_]gates[= ].*)$`)

// gatesPointer matches where an operation of a JSON patch sets gates, as in a ClusterClass.
var gatesPointer = regexp.MustCompile(`(?i)^/(.*/)?feature[-_]?gates(/[^/]*)?$`)

// mentioned reports a document that has gates in a place that no format knows.
func (d *document) mentioned(root node) bool {
	if d.kind == "CustomResourceDefinition" {
		// Its schema has names of fields, and no values.
		return false
	}
	at, ok := findGates(root)
	if !ok {
		return false
	}
	what, next := "this document", fmt.Sprintf("name it: --path=%s=COMPONENT, if these gates are of Kubernetes", at.path)
	if d.kind != "" {
		what = "kind " + d.kind
	}
	if d.embedded {
		what, next = "a document in "+d.name, "put it into a file of its own and name the path there, if these gates are of Kubernetes"
	}
	d.unread(at, true, fmt.Sprintf("%s has %s, and no format that is known", what, at.path), next)
	return true
}

// findGates returns the first key or argument with gates. Aliases are not followed.
func findGates(n node) (node, bool) {
	if n.Node == nil {
		return node{}, false
	}
	switch n.Kind {
	case yaml.ScalarNode:
		return n, gatesKey.MatchString(strings.ReplaceAll(n.Value, "\n", " ")) && strings.Contains(n.Value, "=")
	case yaml.MappingNode:
		if to := n.at("path"); n.at("op").isText() && n.at("op").text() != "remove" && gatesPointer.MatchString(to.text()) {
			to.path = strings.TrimPrefix(n.path+".value", ".")
			return to, true
		}
		for i := 0; i+1 < len(n.Content); i += 2 {
			key, value := n.Content[i], node{Node: n.Content[i+1], path: strings.TrimPrefix(n.path+"."+escape(n.Content[i].Value), ".")}
			if gatesKey.MatchString(key.Value) && !emptyValue(value) {
				return node{Node: key, path: value.path}, true
			}
			if found, ok := findGates(value); ok {
				return found, true
			}
		}
	case yaml.SequenceNode:
		for i, item := range n.Content {
			if found, ok := findGates(node{Node: item, path: fmt.Sprintf("%s[%d]", n.path, i)}); ok {
				return found, true
			}
		}
	}
	return node{}, false
}

// emptyValue is true for null, {}, [] and "", as values of charts often are.
func emptyValue(n node) bool {
	return n.Kind == yaml.ScalarNode && (n.Tag == "!!null" || n.Value == "") || n.Kind != yaml.ScalarNode && n.Kind != yaml.AliasNode && len(n.Content) == 0
}

// escape writes a key as a part of a path.
func escape(key string) string { return strings.ReplaceAll(key, ".", `\.`) }

// isItems matches a list of objects, as kubectl prints it.
func (d *document) isItems(root node) bool {
	return strings.HasSuffix(d.kind, "List") && root.at("items").isList()
}

func (d *document) readItems(root node) {
	for _, item := range root.at("items").items() {
		one := *d
		one.read(item)
	}
}

// patchFile matches the names of kubeadm's patches: TARGET[SUFFIX][+TYPE].EXTENSION.
var patchFile = regexp.MustCompile(`^(kube-apiserver|kube-controller-manager|kube-scheduler|kubeletconfiguration)[^+.]*(\+(strategic|merge|json))?\.(yaml|json)$`)

func (d *document) isPatch(node) bool { return patchFile.MatchString(path.Base(d.name)) }

// readPatch reads a patch of kubeadm: a part of an object, or a list of operations.
func (d *document) readPatch(root node) {
	target := patchFile.FindStringSubmatch(path.Base(d.name))[1]
	if target == "kubeletconfiguration" {
		target = "kubelet"
	}
	if root.isMap() {
		if target == "kubelet" {
			d.gateMap(d.process(target, root), root.at("featureGates"), false)
			return
		}
		d.podSpec(root.at("spec"), target)
		return
	}
	p := d.process(target, root)
	for _, operation := range root.items() {
		value := operation.at("value")
		switch to := operation.at("path").text(); {
		case target == "kubelet" && to == "/featureGates":
			d.gateMap(p, value, false)
		case target == "kubelet" && strings.HasPrefix(to, "/featureGates/"):
			d.gateMap(p, node{Node: &yaml.Node{Kind: yaml.MappingNode, Line: value.Line, Column: value.Column, Content: []*yaml.Node{
				{Kind: yaml.ScalarNode, Tag: "!!str", Value: path.Base(to), Line: operation.at("path").Line, Column: operation.at("path").Column}, value.Node,
			}}, path: value.path}, false)
		default:
			d.args(p, value)
		}
	}
}
