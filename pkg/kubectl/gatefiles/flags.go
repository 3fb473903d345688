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
	"path"
	"slices"
	"strconv"
	"strings"

	yaml "go.yaml.in/yaml/v3"

	"k8s.io/kubernetes-features/pkg/featurelifecycle/history"
)

// kubePrefix stands for the gates of Kubernetes where a server has those of several components.
const kubePrefix = "kube"

// gateMap reads a map from gates to values. The strings true and false are values only where the format has
// them: elsewhere a component refuses its configuration.
func (d *document) gateMap(p *Process, n node, strings bool) {
	if !n.exists() || n.Tag == "!!null" {
		return
	}
	if !n.isMap() {
		d.problem(n, "write a map from gates to true or false", "%s is no map", n.path)
		return
	}
	for key, value := range n.fields() {
		enabled, ok := boolean(value, strings)
		if !ok {
			d.problem(value, "write true or false", "the value %q of gate %s is no truth value", value.text(), key.Value)
			continue
		}
		s := Setting{Source: d.source(key), Process: p, Gate: key.Value, Enabled: enabled}
		d.reader.result.Settings = append(d.reader.result.Settings, s)
	}
}

// boolean reads a truth value of YAML. Kubernetes reads YAML 1.1, in which yes and on are such.
func boolean(n node, quoted bool) (value, ok bool) {
	if !n.isText() {
		return false, false
	}
	if n.Tag == "!!bool" || quoted {
		value, err := strconv.ParseBool(n.Value)
		return value, err == nil
	}
	if n.Style&(yaml.DoubleQuotedStyle|yaml.SingleQuotedStyle|yaml.LiteralStyle|yaml.FoldedStyle) != 0 {
		return false, false
	}
	switch strings.ToLower(n.Value) {
	case "yes", "on", "y":
		return true, true
	case "no", "off", "n":
		return false, true
	}
	return false, false
}

// runtimeConfigMap reads a map from APIs to values.
func (d *document) runtimeConfigMap(p *Process, n node) {
	for key, value := range n.fields() {
		enabled, ok := boolean(value, true)
		if !ok && value.text() != "" {
			d.problem(value, "write true or false", "the value %q of API %s is no truth value", value.text(), key.Value)
			continue
		}
		p.APIs = append(p.APIs, API{Source: d.source(key), Name: key.Value, Enabled: enabled || value.text() == ""})
	}
}

// args reads arguments in any of their forms: a map from names to one value or several, a list of names with
// values, or a list of NAME=VALUE, with or without dashes, or one such text.
func (d *document) args(p *Process, n node) {
	switch {
	case n.isMap():
		for key, value := range n.fields() {
			d.values(p, key.Value, value)
		}
	case n.isText():
		d.arg(p, n)
	default:
		for _, item := range n.items() {
			if item.isMap() {
				d.values(p, item.at("name").text(), item.at("value"))
				continue
			}
			d.arg(p, item)
		}
	}
}

func (d *document) values(p *Process, name string, n node) {
	values := []node{n}
	if n.isList() {
		values = n.items()
	}
	for _, value := range values {
		d.flag(p, strings.TrimLeft(name, "-"), value.text(), d.cursor(cmpNode(value, n)))
	}
}

// cmpNode returns the first node that is there.
func cmpNode(a, b node) node {
	if a.exists() {
		return a
	}
	return b
}

// arg reads NAME=VALUE.
func (d *document) arg(p *Process, n node) {
	if name, value, ok := strings.Cut(n.text(), "="); ok {
		d.flag(p, strings.TrimLeft(name, "-"), unquote(value), d.cursor(n))
	}
}

// unquote removes quotes that are part of a value by mistake, or of a line of a shell.
func unquote(value string) string { return strings.Trim(value, `"'`) }

// flagName returns a flag's name, which components also take with underscores.
func flagName(name string) string { return strings.ReplaceAll(name, "_", "-") }

// flag reads one flag of a process.
func (d *document) flag(p *Process, name, value string, c *cursor) {
	switch flagName(name) {
	case "feature-gates":
		d.pairs(p, value, c)
	case "runtime-config":
		d.runtimeConfig(p, value, c)
	case "emulated-version":
		for _, v := range strings.Split(value, ",") {
			// Versions of other components do not matter here.
			if component, version, found := strings.Cut(v, "="); !found {
				p.Emulated = strings.TrimSpace(component)
			} else if component == kubePrefix {
				p.Emulated = strings.TrimSpace(version)
			}
		}
	case "config":
		p.ConfigFlag = value != ""
	}
}

// pairs reads the value of --feature-gates, as components do.
func (d *document) pairs(p *Process, value string, c *cursor) {
	for _, pair := range strings.Split(value, ",") {
		if pair == "" {
			continue
		}
		at := c.find(strings.TrimSpace(pair))
		name, text, ok := strings.Cut(pair, "=")
		name, text = strings.TrimSpace(name), strings.TrimSpace(text)
		if !ok {
			d.reader.problem(at, "gate "+strconv.Quote(name)+" has no value", "write "+name+"=true or "+name+"=false")
			continue
		}
		enabled, err := strconv.ParseBool(text)
		if err != nil {
			d.reader.problem(at, "the value "+strconv.Quote(text)+" of gate "+name+" is no truth value", "write "+name+"=true or "+name+"=false")
			continue
		}
		s := Setting{Source: at, Process: p, Gate: name, Enabled: enabled, Flag: true}
		if prefix, rest, ok := strings.Cut(name, ":"); ok {
			s.Prefix, s.Gate = strings.TrimSpace(prefix), strings.TrimSpace(rest)
		}
		d.reader.result.Settings = append(d.reader.result.Settings, s)
	}
}

// runtimeConfig reads the value of --runtime-config. A name without a value is enabled.
func (d *document) runtimeConfig(p *Process, value string, c *cursor) {
	for _, pair := range strings.Split(value, ",") {
		name, text, ok := strings.Cut(strings.TrimSpace(pair), "=")
		if name == "" {
			continue
		}
		at := c.find(strings.TrimSpace(pair))
		enabled, err := strconv.ParseBool(text)
		if ok && text != "" && err != nil {
			d.reader.problem(at, "the value "+strconv.Quote(text)+" of API "+name+" is no truth value", "write "+name+"=true or "+name+"=false")
			continue
		}
		p.APIs = append(p.APIs, API{Source: at, Name: name, Enabled: enabled || text == ""})
	}
}

// word is a part of a command line.
type word struct {
	text   string
	cursor *cursor
}

// commandLine reads a command with its arguments. The program that a flag belongs to is the last one before it that
// has gates; fallback is that of a command line that names none. Flags of all other programs are left out.
func (d *document) commandLine(words []word, fallback string, at node) {
	var p *Process
	component, program := fallback, ""
	current := func() *Process {
		if p == nil && component != "" {
			p = d.process(component, at)
		}
		return p
	}
	for i := 0; i < len(words); i++ {
		w := words[i]
		if !strings.HasPrefix(w.text, "-") {
			if named := componentOf(w.text); named != "" && named != component {
				component, p = named, nil
			} else if i == 0 && named == "" && !shell(w.text) {
				program = path.Base(w.text)
			}
			continue
		}
		name, value, ok := strings.Cut(strings.TrimLeft(w.text, "-"), "=")
		if !strings.HasPrefix(w.text, "--") || !slices.Contains([]string{"feature-gates", "runtime-config", "emulated-version", "config"}, flagName(name)) {
			continue
		}
		if !ok && i+1 < len(words) {
			i++
			value, w = words[i].text, words[i]
		}
		if current() == nil {
			if flagName(name) == "feature-gates" {
				d.foreign(at, program)
			}
			continue
		}
		d.flag(p, name, unquote(value), w.cursor)
	}
	current()
}

// foreign reports gates of a program that has none of Kubernetes.
func (d *document) foreign(at node, program string) {
	who := "a program that is not named"
	if program != "" {
		who = program
	}
	d.unread(at, false, "these are gates of "+who+", and none of Kubernetes", "nothing is to be done for Kubernetes; see what "+who+" documents")
}

func shell(program string) bool {
	return slices.Contains([]string{"sh", "bash", "ash", "dash", "env", "exec", "nsenter", "tini", "dumb-init", "go-runner", "hyperkube"}, path.Base(program))
}

// componentOf returns the component of a program or an image, "" for all others.
func componentOf(program string) string {
	name := path.Base(strings.TrimSpace(program))
	name, _, _ = strings.Cut(name, "@")
	name, _, _ = strings.Cut(name, ":")
	for _, suffix := range []string{"-amd64", "-arm64", "-arm", "-ppc64le", "-s390x", ".exe"} {
		name = strings.TrimSuffix(name, suffix)
	}
	switch {
	case slices.Contains(Components, name):
		return name
	case strings.HasSuffix(name, history.CloudControllerManager):
		return history.CloudControllerManager
	default:
		return ""
	}
}
