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
	"slices"
	"strconv"
	"strings"

	"k8s.io/kubernetes-features/pkg/featurelifecycle/history"
)

// ValuePath is the place of gates in a document of no known format, such as the values of a Helm chart.
type ValuePath struct {
	// Text is the path as it was written.
	Text string
	// Component has the gates.
	Component string
}

// ParseValuePath reads KEY.KEY[=COMPONENT]. A dot in a key is written \. and an item of a list [0]. Without a component
// the keys have to name one, such as kubelet or apiServer.
func ParseValuePath(text string) (ValuePath, error) {
	keys, component, given := strings.Cut(text, "=")
	if len(splitPath(keys)) == 0 {
		return ValuePath{}, fmt.Errorf("--path=%s has no key; write it like --path=apiServer.featureGates=%s", text, history.KubeAPIServer)
	}
	if !given {
		component = componentOfPath(keys)
	}
	if !slices.Contains(Components, component) {
		return ValuePath{}, fmt.Errorf("--path=%s names no component; write --path=%s=COMPONENT with one of %s", text, keys, strings.Join(Components, ", "))
	}
	return ValuePath{Text: keys, Component: component}, nil
}

// componentOfPath returns the component that keys name.
func componentOfPath(keys string) string {
	letters := strings.NewReplacer("-", "", "_", "").Replace(strings.ToLower(keys))
	for _, c := range []struct{ part, component string }{
		{"cloudcontrollermanager", history.CloudControllerManager}, {"controllermanager", history.KubeControllerManager}, {"apiserver", history.KubeAPIServer},
		{"scheduler", history.KubeScheduler}, {"kubelet", history.Kubelet}, {"kubeproxy", history.KubeProxy},
	} {
		if strings.Contains(letters, c.part) {
			return c.component
		}
	}
	return ""
}

// splitPath returns the keys of a path.
func splitPath(text string) []string {
	const dot = "\x00"
	var keys []string
	for _, part := range strings.Split(strings.ReplaceAll(text, `\.`, dot), ".") {
		key, rest, _ := strings.Cut(strings.ReplaceAll(part, dot, "."), "[")
		if key != "" {
			keys = append(keys, key)
		}
		for rest != "" {
			var index string
			index, rest, _ = strings.Cut(rest, "]")
			keys = append(keys, "["+index)
			rest = strings.TrimPrefix(rest, "[")
		}
	}
	return keys
}

// readPaths reads what the paths of the user name. It returns true when the document has one of them.
func (d *document) readPaths(root node) bool {
	any := false
	for _, p := range d.reader.Paths {
		n := root
		for _, key := range splitPath(p.Text) {
			if index, ok := strings.CutPrefix(key, "["); ok {
				i, err := strconv.Atoi(index)
				items := n.items()
				if err != nil || i < 0 || i >= len(items) {
					n = node{}
				} else {
					n = items[i]
				}
				continue
			}
			n = n.at(key)
		}
		if !n.exists() {
			continue
		}
		any, d.reader.found[p] = true, true
		d.format = "path"
		d.readValue(d.process(p.Component, n), n)
	}
	return any
}

// readValue reads gates in one of the forms of charts: a map, a text of pairs, or a list of pairs, of arguments, or of
// names with values.
func (d *document) readValue(p *Process, n node) {
	switch {
	case n.isMap():
		d.gateMap(p, n, true)
	case n.isText():
		d.valueText(p, n)
	default:
		for _, item := range n.items() {
			if !item.isMap() {
				d.valueText(p, item)
				continue
			}
			value := cmpNode(item.at("value"), item.at("enabled"))
			enabled, ok := boolean(value, true)
			if !ok || item.at("name").text() == "" {
				d.problem(item, "write name, and value or enabled", "this item is no gate")
				continue
			}
			d.reader.result.Settings = append(d.reader.result.Settings, Setting{Source: d.source(item.at("name")), Process: p, Gate: item.at("name").text(), Enabled: enabled})
		}
	}
}

// valueText reads pairs, or an argument that has them.
func (d *document) valueText(p *Process, n node) {
	text := strings.TrimSpace(n.text())
	if name, value, ok := strings.Cut(strings.TrimPrefix(text, "--"), "="); ok && flagName(name) == "feature-gates" {
		text = value
	}
	d.pairs(p, text, d.cursor(n))
}
