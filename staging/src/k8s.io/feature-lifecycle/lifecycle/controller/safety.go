/*
Copyright 2026 The Kubernetes Authors.

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

package controller

import (
	"cmp"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	utilversion "k8s.io/apimachinery/pkg/util/version"
	"k8s.io/component-base/featuregate"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/feature-lifecycle/lifecycle/safety"
	"k8s.io/feature-lifecycle/lifecycle/transition"
)

// safety returns who judges moves to the neighbouring minor versions from this
// binary's own specs of the gate, as far as they reach. They are nil for gates
// that this server does not have: what another version does with them is not
// known here.
func (c *Controller) safety(name string, given commandLines, declared transition.Declared) (upgrade, downgrade transition.Judge) {
	if _, ok := c.config.Specs[featuregate.Feature(name)]; !ok {
		return nil, nil
	}
	given.sort()
	judge := func(feature *v1alpha1.Feature, here, there *utilversion.Version) *transition.Verdict {
		q := c.question(feature, given, declared, here, there)
		v := safety.Judge(q)
		if known := c.config.SpecsUpTo; !q.Down && (known == nil || known.LessThan(there)) {
			v = safety.JudgeAhead(q)
		}
		return &transition.Verdict{Status: v.Status, Reason: v.Reason, Message: v.Message()}
	}
	upgrade = func(feature *v1alpha1.Feature, version string) *transition.Verdict {
		here, err := utilversion.ParseMajorMinor(version)
		if err != nil {
			return nil
		}
		return judge(feature, here, here.AddMinor(1))
	}
	downgrade = func(feature *v1alpha1.Feature, version string) *transition.Verdict {
		here, err := utilversion.ParseMajorMinor(version)
		if err != nil || here.Minor() == 0 {
			return nil
		}
		return judge(feature, here, here.SubtractMinor(1))
	}
	return upgrade, downgrade
}

// question is what is known of a feature for a move between two versions, from the
// specs of its gate and of those that have to do with it.
func (c *Controller) question(feature *v1alpha1.Feature, given commandLines, declared transition.Declared, here, there *utilversion.Version) safety.Question {
	specs := c.config.Specs[featuregate.Feature(feature.Name)]
	q := safety.Question{
		Feature:     feature,
		To:          there.String(),
		Down:        there.LessThan(here),
		Here:        safety.SpecAt(specs, here),
		There:       safety.SpecAt(specs, there),
		Explicit:    given.explicit,
		Controlled:  given.controlled,
		Dependences: slices.Clone(given.dependences),
		Stages:      given.stages,
		Tasks:       transition.PathTo(&feature.Status, declared, there.String()),
		Clears:      len(declared.OnDisable) > 0,
	}
	for i := range q.Dependences {
		d := &q.Dependences[i]
		d.There = safety.SpecAt(c.config.Specs[featuregate.Feature(d.Name)], there)
	}
	q.Obstructing = declared.ObstructingOf(q.Tasks)
	if clean := meta.FindStatusCondition(feature.Status.Conditions, v1alpha1.ConditionClean); clean != nil && clean.Reason == v1alpha1.ReasonLeftovers {
		q.Leftovers = clean.Message
	}
	return q
}

// setting is an explicit setting, as a report has it.
func (c *Controller) setting(e entry) safety.Setting {
	spec := &e.report.Spec
	return safety.Setting{Component: spec.Component, Instance: spec.Instance, Enabled: e.gate.Enabled, Server: spec.Component == c.config.Component}
}

// settings are the explicit settings of usual processes.
func (c *Controller) settings(crowd crowd) []safety.Setting {
	if !crowd.gate.Explicit {
		return nil
	}
	var settings []safety.Setting
	for _, name := range crowd.names {
		settings = append(settings, safety.Setting{Component: crowd.component, Instance: name, Enabled: crowd.gate.Enabled})
	}
	return settings
}

// controlled is a server that lets others than its own command line decide, as its
// report has it; false for all others.
func (c *Controller) controlled(e entry) (safety.Controlled, bool) {
	spec := &e.report.Spec
	return safety.Controlled{Component: spec.Component, Instance: spec.Instance, Control: e.gate.Control},
		spec.Component == c.config.Component && e.gate.Control != "" && e.gate.Control != v1alpha1.ControlLocal
}

// commandLines are what live processes were given for a gate.
type commandLines struct {
	// explicit are the explicit settings of it, controlled the servers that let
	// others decide its value.
	explicit   []safety.Setting
	controlled []safety.Controlled
	// dependences are the gates that have to do with it, with their settings and
	// without specs; stages is AllAlpha and AllBeta where there are dependences.
	dependences []safety.Dependence
	stages      []safety.StageSetting
}

// commandLines are those of a gate.
func (c *Controller) commandLines(name string, now time.Time) commandLines {
	var given commandLines
	crowds, others := c.reports.of(name)
	for _, crowd := range crowds {
		given.explicit = append(given.explicit, c.settings(crowd)...)
	}
	for _, e := range others {
		if alive, _, exists := c.alive(e.report, now); !alive || !exists {
			continue
		}
		if e.gate.Explicit {
			given.explicit = append(given.explicit, c.setting(e))
		}
		if controlled, ok := c.controlled(e); ok {
			given.controlled = append(given.controlled, controlled)
		}
	}
	c.completeDependences(&given, name, now)
	given.sort()
	return given
}

// completeDependences adds what processes set for the gates that have to do with one.
func (c *Controller) completeDependences(given *commandLines, name string, now time.Time) {
	given.dependences = slices.Clone(c.dependences[name])
	if len(given.dependences) == 0 {
		return
	}
	for i := range given.dependences {
		d := &given.dependences[i]
		crowds, others := c.reports.setting(d.Name)
		for _, crowd := range crowds {
			d.Explicit = append(d.Explicit, c.settings(crowd)...)
		}
		for _, e := range others {
			if alive, _, exists := c.alive(e.report, now); alive && exists {
				d.Explicit = append(d.Explicit, c.setting(e))
			}
		}
	}
	for _, s := range c.reports.staged() {
		if alive, _, exists := c.alive(s.report, now); alive && exists {
			spec := &s.report.Spec
			for stage, value := range s.stages {
				given.stages = append(given.stages, safety.StageSetting{Component: spec.Component, Instance: spec.Instance, Stage: stage, Enabled: value})
			}
		}
	}
}

// sort puts the processes in the order in which messages name them.
func (l commandLines) sort() {
	sortSettings(l.explicit)
	slices.SortFunc(l.controlled, func(a, b safety.Controlled) int { return cmp.Compare(a.Instance, b.Instance) })
}

func sortSettings(settings []safety.Setting) {
	slices.SortFunc(settings, func(a, b safety.Setting) int {
		return cmp.Or(cmp.Compare(a.Component, b.Component), cmp.Compare(a.Instance, b.Instance))
	})
}
