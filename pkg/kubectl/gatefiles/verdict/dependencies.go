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

package verdict

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/kubernetes-features/pkg/featurelifecycle/history"
	"k8s.io/kubernetes-features/pkg/kubectl/gatefiles"
)

// values are the effective values of the gates of a process.
type values struct {
	explicit map[string]gatefiles.Setting
	process  *process
}

// with returns the values after some settings, of which the last one of a gate counts.
func (p *process) with(settings []gatefiles.Setting) values {
	v := values{map[string]gatefiles.Setting{}, p}
	// Flags come after files.
	for _, flag := range []bool{false, true} {
		for _, s := range settings {
			if s.Flag == flag {
				v.explicit[s.Gate] = s
			}
		}
	}
	return v
}

// of returns the value of a gate, and the setting that it is from; nil for a default.
func (v values) of(name string, spec history.Spec) (bool, *gatefiles.Setting) {
	if s, ok := v.explicit[name]; ok {
		return s.Enabled, &s
	}
	for gate, stage := range map[string]string{allAlpha: "Alpha", allBeta: "Beta"} {
		if s, ok := v.explicit[gate]; ok && spec.Stage == stage {
			return s.Enabled, &s
		}
	}
	return spec.Default, nil
}

// dependencies returns the finding for a setting by which a gate is on without one that it depends on. Components
// examine all of their gates, and not only those that are set.
func (p *process) dependencies(s gatefiles.Setting) (Finding, bool) {
	if f, bad := p.with(p.settings).missing(s, ""); bad {
		return f, true
	}
	if p.of.Component != history.Kubelet || !s.Flag {
		return Finding{}, false
	}
	// A kubelet sets the gates of its flags before it reads its file.
	flags := slices.DeleteFunc(slices.Clone(p.settings), func(s gatefiles.Setting) bool { return !s.Flag })
	return p.with(flags).missing(s, ", as kubelet examines its flags before it reads its file")
}

// missing looks for gates that are on, and those among their dependencies that are off, where a setting is a cause.
func (v values) missing(s gatefiles.Setting, note string) (Finding, bool) {
	p := v.process
	var whys, nexts []string
	for _, g := range p.History.Gates() {
		spec, ok := g.At(p.of.Component, p.To)
		if !ok {
			continue
		}
		on, cause := v.of(g.Name, spec)
		if !on {
			continue
		}
		for _, name := range spec.DependsOn {
			other, _ := p.History.Gate(name)
			otherSpec, ok := other.At(p.of.Component, p.To)
			if !ok {
				continue
			}
			otherOn, otherCause := v.of(name, otherSpec)
			if otherOn || !is(cause, s) && !is(otherCause, s) {
				continue
			}
			whys = append(whys, fmt.Sprintf("%s is %s and needs %s, which is %s", g.Name, how(true, cause), name, how(false, otherCause)))
			nexts = append(nexts, fmt.Sprintf("set %s=true or %s=false", name, g.Name))
		}
	}
	if len(whys) == 0 {
		return Finding{}, false
	}
	return unsafe(s, DependencyOff, fmt.Sprintf("%s: %s%s", strings.Join(whys, "; "), p.refuses(), note), strings.Join(nexts, "; ")), true
}

// is returns true for the same setting.
func is(cause *gatefiles.Setting, s gatefiles.Setting) bool {
	return cause != nil && cause.Gate == s.Gate && cause.Source == s.Source
}

// how describes a value and its cause.
func how(value bool, cause *gatefiles.Setting) string {
	switch {
	case cause == nil:
		return onOff(value) + " by default"
	case cause.Gate == allAlpha, cause.Gate == allBeta:
		return fmt.Sprintf("%s by %s", onOff(value), cause.Gate)
	default:
		return onOff(value)
	}
}
