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

package versionskew

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	utilversion "k8s.io/apimachinery/pkg/util/version"
	"k8s.io/component-base/featuregate"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
)

// Binary is what a server's binary knows of its gates.
type Binary struct {
	// Specs are the gates' specs by version. Gates that it does not have are not in it.
	Specs map[featuregate.Feature]featuregate.VersionedSpecs
	// From and UpTo are the lowest and the highest minor version that Specs are complete
	// for. Nil means for From that it is not known, and for UpTo the cluster's version.
	From, UpTo *utilversion.Version
	// Dependencies are those between the gates.
	Dependencies Dependencies
}

// Move is a change of the cluster's minor version.
type Move struct {
	// Current is the cluster's version, nil when no live server reports it. Target is the
	// version to move to.
	Current, Target *utilversion.Version
}

// ParseMove returns the move of a cluster to the version in spec.targetVersion of a plan,
// or what is wrong with that.
func ParseMove(cluster, to string) (Move, error) {
	target, err := utilversion.ParseMajorMinor(to)
	if err != nil {
		return Move{}, fmt.Errorf("spec.targetVersion is %q; write a minor version such as 1.36: %w", to, err)
	}
	current, err := utilversion.ParseMajorMinor(cluster)
	if err != nil {
		return Move{Target: target}, nil
	}
	if target.Major() > current.Major()+1 || current.Major() > target.Major()+1 {
		return Move{}, fmt.Errorf("spec.targetVersion is %s, and the cluster has %s; a plan is for a version of %d.x, or of the major version before or after that", to, cluster, current.Major())
	}
	return Move{current, target}, nil
}

// Has returns true for a gate of the binary.
func (b Binary) Has(gate string) bool {
	_, has := b.Specs[featuregate.Feature(gate)]
	return has
}

// Complete returns an input with what the move, the feature and the specs of its gate and
// of related ones add to it. What it has already is not changed.
func (b Binary) Complete(q Input, m Move) Input {
	specs := b.Specs[featuregate.Feature(q.Feature.Name)]
	q.To, q.Down = m.Target.String(), m.Target.LessThan(m.Current)
	q.Current, q.Target = SpecOf(q.Feature, specs, m.Current), SpecAt(specs, m.Target)
	q.Dependences = slices.Clone(q.Dependences)
	for i := range q.Dependences {
		d := &q.Dependences[i]
		d.Target = SpecAt(b.Specs[featuregate.Feature(d.Name)], m.Target)
	}
	q.Leftovers, q.Unread = Found(q.Feature)
	return q
}

// Found returns the message of a feature's condition Clean, about leftovers or about what
// servers do not read; "" for what was not found.
func Found(feature *v1alpha1.Feature) (leftovers, unread string) {
	clean := meta.FindStatusCondition(feature.Status.Conditions, v1alpha1.ConditionClean)
	switch {
	case clean != nil && clean.Reason == v1alpha1.ReasonLeftovers:
		return clean.Message, ""
	case clean != nil && clean.Reason == v1alpha1.ReasonUnreadable:
		return "", clean.Message
	default:
		return "", ""
	}
}

// Evaluate returns the result for an input as far as the binary knows the other version.
func (b Binary) Evaluate(q Input, m Move) Result {
	if !q.Down && (b.UpTo == nil || b.UpTo.LessThan(m.Target)) {
		return EvaluateAhead(q)
	}
	return Evaluate(q)
}

// Forecast is what is known of a feature's value after a change of a value or a version.
type Forecast struct {
	// Configured is the value that the feature will have, nil when that is unknown.
	Configured *v1alpha1.FeatureConfiguration
	// Dependencies and Dependents are the gates with the opposite value.
	Dependencies, Dependents []string
	// Blockers are what prevents the change, and Unknown is what cannot be known.
	Blockers, Unknown []string
}

// ForecastMove returns which value a feature would have after a move, and why binaries
// would refuse to start there. It uses the specs of this binary: reports of others are
// about the version that they have. Mixed is true while servers have different
// versions. Input returns what is known of a gate for a move.
func (b Binary) ForecastMove(feature *v1alpha1.Feature, m Move, mixed bool, input func(gate string) Input) Forecast {
	if m.Current == nil {
		return Forecast{Unknown: []string{fmt.Sprintf("the cluster's version, and so what a move to %s would change: no live server reports it", m.Target)}}
	}
	if m.Target.EqualTo(m.Current) && !mixed {
		return Forecast{Configured: Configured(feature)}
	}
	q := input(feature.Name)
	var f Forecast
	if f.Blockers, f.Unknown = b.outOfReach(q, m); len(f.Unknown) > 0 {
		return f
	}
	if v, refuses := q.Refuses(); refuses {
		f.Blockers = append(f.Blockers, v.Message())
	}
	value := q.Value()
	f.Configured = &value
	f.Dependencies, f.Dependents = b.Dependencies.Opposing(feature.Name, value.Value, func(gate string) (on, off bool) { return b.valueAt(input(gate)) })
	if why, _ := q.RefusesDependencies(); why == "" {
		// No process would refuse its command line: the value is one of the API.
		f.conflict(feature.Name, " in "+q.To)
	}
	return f
}

// ForecastValue returns what else would have to change with a value. Values returns
// whether a gate is on or off in some process.
func (b Binary) ForecastValue(gate string, configured v1alpha1.FeatureConfiguration, values func(gate string) (on, off bool)) Forecast {
	f := Forecast{Configured: &configured}
	f.Dependencies, f.Dependents = b.Dependencies.Opposing(gate, configured.Value, values)
	f.conflict(gate, "")
	return f
}

// conflict adds a blocker for gates with the opposite value, if there are any.
func (f *Forecast) conflict(gate, place string) {
	if others := slices.Concat(f.Dependencies, f.Dependents); len(others) > 0 {
		f.Blockers = append(f.Blockers, Conflict(gate, f.Configured.Value, others, place))
	}
}

// outOfReach returns what this binary cannot know of a version, and what no server can
// do about it.
func (b Binary) outOfReach(q Input, m Move) (blockers, unknown []string) {
	highest, target := m.Current, m.Target
	if b.UpTo != nil {
		highest = b.UpTo
	}
	switch lowest := b.From; {
	case target.GreaterThan(highest):
		// Whether the next minor version is one of this major version or the first of the
		// next one is unknown.
		next := highest.AddMinor(1)
		if target.Major() > highest.Major() {
			next = utilversion.MajorMinor(highest.Major()+1, 0)
		}
		if target.GreaterThan(next) {
			blockers = append(blockers, fmt.Sprintf("servers may not skip a minor version (Kubernetes' version skew policy); move to %s first", next))
		}
		return blockers, q.Ahead(highest)
	case lowest != nil && target.LessThan(lowest):
		blockers = append(blockers, fmt.Sprintf("servers of %d.%d can emulate no version below %s, so nothing would bring what is stored to the form of %s; move to %s first, and on with binaries of it", highest.Major(), highest.Minor(), lowest, target, lowest))
		return blockers, []string{fmt.Sprintf("what %s makes of the gate: this binary knows versions from %s on", target, lowest)}
	case !b.Has(q.Feature.Name):
		return nil, []string{fmt.Sprintf("what %s makes of the gate: this server does not have it", target)}
	default:
		return nil, nil
	}
}

// valueAt returns whether a gate would be on or off in the other version; neither when
// that is unknown.
func (b Binary) valueAt(q Input) (on, off bool) {
	if !b.Has(q.Feature.Name) {
		return false, false
	}
	value := q.Value().Value
	return value, !value
}
