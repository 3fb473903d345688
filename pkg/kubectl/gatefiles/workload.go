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
	"unicode"
)

// readWorkload reads the containers of pods and of workloads, and what ConfigMaps and Secrets have as texts.
func (d *document) readWorkload(root node) {
	switch d.kind {
	case "Pod":
		d.podSpec(root.at("spec"), "")
	case "PodTemplate":
		d.podSpec(root.at("template", "spec"), "")
	case "CronJob":
		d.podSpec(root.at("spec", "jobTemplate", "spec", "template", "spec"), "")
	case "ConfigMap":
		d.texts(root.at("data"))
	case "Secret":
		d.texts(root.at("stringData"))
	default:
		d.podSpec(root.at("spec", "template", "spec"), "")
	}
}

// texts reads values that are documents themselves, as the ConfigMaps kubeadm-config, kubelet-config and kube-proxy have.
func (d *document) texts(n node) {
	for key, value := range n.fields() {
		if text := value.text(); strings.Contains(text, "kind:") || strings.Contains(text, `"kind"`) || strings.Contains(text, "feature-gates") {
			d.embed(value, key.Value)
		}
	}
}

// podSpec reads containers. The component is that of all containers which do not name a program; "" if that is not known.
func (d *document) podSpec(spec node, component string) {
	for _, kind := range []string{"initContainers", "containers"} {
		for _, container := range spec.at(kind).items() {
			d.container(container, component)
		}
	}
}

// container reads a command and its arguments. Without a command the image has the program, which is most often its name.
func (d *document) container(n node, component string) {
	fallback := component
	if len(n.at("command").items()) == 0 || fallback == "" && shellScript(n) {
		for _, name := range []string{n.at("image").text(), n.at("name").text()} {
			if fallback == "" {
				fallback = componentOf(name)
			}
		}
	}
	var words []word
	for _, key := range []string{"command", "args"} {
		for _, item := range n.at(key).items() {
			words = append(words, d.words(item)...)
		}
	}
	if fallback == "" && slices.ContainsFunc(words, func(w word) bool { return strings.HasPrefix(flagName(w.text), "--feature-gates") }) {
		// A program of another name in the image of a component starts it.
		fallback = componentOf(n.at("image").text())
	}
	d.commandLine(words, fallback, n)
}

// shellScript is true where the command is a shell, whose script may start the program by a variable.
func shellScript(n node) bool {
	command := n.at("command").items()
	return len(command) > 0 && shell(command[0].text())
}

// words returns an argument, or the words of one that is a script.
func (d *document) words(n node) []word {
	text, c := n.text(), d.cursor(n)
	// Only scripts have spaces before flags.
	if !strings.ContainsFunc(text, unicode.IsSpace) || !strings.Contains(text, " --") && !strings.Contains(text, "\n") {
		return []word{{text, c}}
	}
	var words []word
	for _, w := range scriptWords(text) {
		if w != `\` {
			words = append(words, word{unquote(w), c})
		}
	}
	return words
}

// scriptWords splits a script into words. Comments are left out, and spaces in quotes split nothing.
func scriptWords(text string) []string {
	var words []string
	var w strings.Builder
	quote, comment := rune(0), false
	for _, r := range text {
		switch {
		case comment:
			comment = r != '\n'
		case quote == 0 && r == '#' && w.Len() == 0:
			comment = true
		case quote == 0 && (unicode.IsSpace(r) || strings.ContainsRune(";&|", r)):
			if w.Len() > 0 {
				words = append(words, w.String())
				w.Reset()
			}
		default:
			if quote == 0 && (r == '"' || r == '\'') {
				quote = r
			} else if r == quote {
				quote = 0
			}
			w.WriteRune(r)
		}
	}
	if quote != 0 {
		// Not all of it is a script, as where it has another file in it.
		return strings.FieldsFunc(text, func(r rune) bool { return unicode.IsSpace(r) || strings.ContainsRune(";&|", r) })
	}
	if w.Len() > 0 {
		words = append(words, w.String())
	}
	return words
}
