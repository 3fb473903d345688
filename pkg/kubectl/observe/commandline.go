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

package observe

import (
	"path"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// commandLine is what a container runs.
type commandLine struct {
	component string
	// args are the words from its program on, as far as they can be read.
	args []string
	// mounts are those of the container.
	mounts []corev1.VolumeMount
	// unread is why there may be more than args have, "" if there is not.
	unread string
}

// Causes of a command line that cannot be read.
const (
	hasVariables = "its command line has variables or commands that only its container knows"
	hasScript    = "its container runs a script or an entry point that does not show the command line"
	runsTwice    = "its script has more than one command line for it"
)

// wrappers start the program that follows in the same command line.
var wrappers = []string{"exec", "env", "nice", "nohup", "nsenter", "tini", "dumb-init", "go-runner", "hyperkube", "then", "else", "do", "if", "while", "!", "{"}

// shells run scripts.
var shells = []string{"sh", "bash", "ash", "dash"}

// commandLines returns those of the containers of a Pod that run one of some components.
func commandLines(pod *corev1.Pod, components ...string) []commandLine {
	var lines []commandLine
	for _, c := range pod.Spec.Containers {
		if line := containerLine(&c, components); line.component != "" {
			line.mounts = c.VolumeMounts
			lines = append(lines, line)
		}
	}
	return lines
}

// containerLine reads the command and the arguments of a container. Its name names the
// component where the command does not.
func containerLine(c *corev1.Container, components []string) commandLine {
	all := slices.Concat(c.Command, c.Args)
	named := commandLine{unread: hasScript}
	if slices.Contains(components, c.Name) {
		named.component = c.Name
	}
	switch {
	case len(all) == 0:
		return named
	case len(c.Command) == 0 && strings.HasPrefix(c.Args[0], "--"):
		// The entry point of the image, with flags.
		return arguments(named.component, all)
	case slices.ContainsFunc(all, func(word string) bool { return slices.Contains(shells, path.Base(word)) }):
		return scriptLine(all, named, components)
	}
	if component, args := program(all, components); component != "" {
		return arguments(component, args)
	}
	return named
}

// arguments are words of which each is one argument, whatever variables in it stand for.
func arguments(component string, words []string) commandLine {
	line := commandLine{component: component, args: words}
	for _, word := range words {
		flag, _, value := strings.Cut(word, "=")
		// A variable in the value of another flag adds no argument.
		other := value && strings.HasPrefix(flag, "--") && !strings.Contains(flag, "$(") && !slices.Contains(readFlags, flagName(flag))
		if strings.Contains(word, "$(") && !other {
			line.unread = hasVariables
		}
	}
	return line.withoutVariables()
}

// withoutVariables leaves out the words whose text is not known.
func (l commandLine) withoutVariables() commandLine {
	l.args = slices.DeleteFunc(l.args, func(word string) bool { return strings.ContainsAny(word, "$`") })
	return l
}

// scriptLine reads what a shell runs. A script may do anything, so that what is not one
// plain command line is not read.
func scriptLine(words []string, named commandLine, components []string) commandLine {
	var found []commandLine
	for _, text := range words {
		if !strings.ContainsAny(text, " \t\n;") {
			continue
		}
		commands, complete := splitScript(text)
		for _, command := range commands {
			component, args := program(command, components)
			if component == "" {
				continue
			}
			line := commandLine{component: component, args: args}
			if !complete || slices.ContainsFunc(args, func(word string) bool { return strings.ContainsAny(word, "$`") }) {
				line.unread = hasVariables
			}
			found = append(found, line.withoutVariables())
		}
	}
	switch len(found) {
	case 0:
		// Without quotes around it, as in "sh -c kube-scheduler".
		if component, args := program(words, components); component != "" {
			return commandLine{component: component, args: args, unread: hasScript}
		}
		return named
	case 1:
		return found[0]
	}
	return commandLine{component: found[0].component, unread: runsTwice}
}

// program finds the component that a command runs, behind wrappers with their flags and
// settings of the environment, and returns its words from there on.
func program(command, components []string) (component string, args []string) {
	wrapped := false
	for i, word := range command {
		name := path.Base(word)
		switch {
		case strings.ContainsAny(word, " \t\n"):
			// A script, or a text.
			return "", nil
		case slices.Contains(components, name):
			return name, command[i:]
		case slices.Contains(wrappers, name) || slices.Contains(shells, name) || strings.Contains(word, "=") && !strings.HasPrefix(word, "-"):
			wrapped = true
		case !wrapped || !strings.HasPrefix(word, "-") && strings.Trim(word, "0123456789") != "":
			return "", nil
		}
	}
	return "", nil
}

// splitScript returns the commands of a script with their words. Complete is false where it
// has what only a shell understands.
func splitScript(text string) (commands [][]string, complete bool) {
	s := splitter{}
	quote := rune(0)
	runes := []rune(text)
	for i := 0; i < len(runes); i++ {
		r := runes[i]
		switch {
		case quote != 0 && r == quote:
			quote = 0
		case r == '\\' && quote != '\'' && i+1 < len(runes):
			if i++; runes[i] != '\n' {
				s.add(runes[i])
			}
		case quote != 0:
			s.add(r)
		case r == '"' || r == '\'':
			quote, s.open = r, true
		case r == '#' && !s.open:
			for i+1 < len(runes) && runes[i+1] != '\n' {
				i++
			}
		case r == '&' && (i > 0 && runes[i-1] == '>' || i+1 < len(runes) && runes[i+1] == '>'):
			// Where the output goes is part of the command, as in 2>&1.
			s.add(r)
		case strings.ContainsRune(";&|()\n", r):
			s.endCommand()
		case r == ' ' || r == '\t' || r == '\r':
			s.endWord()
		default:
			s.add(r)
		}
	}
	s.endCommand()
	return s.commands, quote == 0 && !strings.Contains(text, "<<")
}

// splitter collects words and commands.
type splitter struct {
	commands [][]string
	words    []string
	word     strings.Builder
	// open is true within a word, which may be empty in quotes.
	open bool
}

func (s *splitter) add(r rune) {
	s.word.WriteRune(r)
	s.open = true
}

func (s *splitter) endWord() {
	if s.open {
		s.words = append(s.words, s.word.String())
	}
	s.word.Reset()
	s.open = false
}

func (s *splitter) endCommand() {
	s.endWord()
	if len(s.words) > 0 {
		s.commands = append(s.commands, s.words)
	}
	s.words = nil
}
