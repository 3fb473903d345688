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

package transition

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	utilversion "k8s.io/apimachinery/pkg/util/version"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/feature-lifecycle/lifecycle/tracker"
)

// configuration is the desired value as far as the live servers agree on one.
type configuration struct {
	// agreed is false while the servers disagree or one has not reported; no
	// transition starts then (S4).
	agreed bool
	value  v1alpha1.FeatureConfiguration
	// gate is what the deciding servers report of the gate, nil when it is unknown.
	gate *v1alpha1.ReportedFeature
	// control is the source that the servers let decide the value.
	control v1alpha1.FeatureControl
	// reason and message explain the condition Consistent. They are empty while a server
	// is starting: its report is awaited, and the condition stays, so that a restart does
	// not rewrite every feature.
	reason, message string
	// byReporters is true when no server knows the gate and others decide.
	byReporters bool
}

// configurationOf derives the desired value from the servers that know the
// gate, or, when none does, from the processes that report it (KEP-3920,
// "Desired value").
func configurationOf(feature *v1alpha1.Feature, view View) configuration {
	deciding := knowing(view.Servers)
	byReporters := len(deciding) == 0
	if byReporters {
		deciding = knowing(view.Reporters)
	}
	c := configuration{byReporters: byReporters && len(deciding) > 0, control: v1alpha1.ControlLocal}
	if len(deciding) > 0 {
		c.gate = deciding[0].Gate.DeepCopy()
	}
	if missing := unreported(view.Servers); len(missing) > 0 {
		if starting(view.Servers) {
			return c
		}
		c.reason = v1alpha1.ReasonReportMissing
		c.message = fmt.Sprintf("%s alive and has not reported which value it configures; no transition starts until it reports or is removed", list("is", missing))
		return c
	}
	if c.gate == nil {
		c.reason = v1alpha1.ReasonNotKnown
		c.message = "no live process knows the feature gate, so it is not configured"
		return c
	}
	// Only reports of servers decide the source: others follow.
	if !byReporters {
		c.control, c.message = controlOf(deciding)
	}
	if c.message != "" {
		c.reason = v1alpha1.ReasonServersDisagree
		return c
	}
	byAPI := c.control == v1alpha1.ControlDynamic && feature.Spec.Enabled != nil
	if on, off := split(deciding); !byAPI && len(on) > 0 && len(off) > 0 {
		c.reason = v1alpha1.ReasonServersDisagree
		c.message = fmt.Sprintf("on in %s, off in %s; no transition starts until --feature-gates is the same everywhere", list("", on), list("", off))
		return c
	}
	c.agreed = true
	c.reason = v1alpha1.ReasonServersAgree
	// No count: it would change with every restart, in every feature.
	c.message = "all live servers configure the same value" + ignored(&feature.Spec, c.control)
	own := deciding[0].Own()
	c.value = v1alpha1.FeatureConfiguration{Value: own, Source: v1alpha1.SourceDefault}
	// AllAlpha and AllBeta set values without setting them explicitly.
	explicit := slices.ContainsFunc(deciding, func(s tracker.Server) bool { return s.Gate.Explicit })
	if explicit || own != c.gate.Default {
		c.value.Source = v1alpha1.SourceCommandLine
	}
	if byAPI {
		c.value = v1alpha1.FeatureConfiguration{Value: *feature.Spec.Enabled, Source: v1alpha1.SourceAPI}
	}
	return c
}

// ignored returns the part of a spec that has no effect under a control, "" for none.
// It may be left over from when servers had other flags.
func ignored(spec *v1alpha1.FeatureSpec, control v1alpha1.FeatureControl) string {
	var text string
	if spec.Enabled != nil && control != v1alpha1.ControlDynamic {
		text = "; spec.enabled has no effect, since --dynamic-features does not list the feature: remove it, or list the feature there"
	}
	if spec.Rollout != nil && control == v1alpha1.ControlLocal {
		text += "; spec.rollout has no effect, since each process has its own command line's value: remove it, or list the feature in --central-features or --dynamic-features"
	}
	return text
}

// split names the servers that have a gate on, and those that have it off.
func split(servers []tracker.Server) (on, off []string) {
	for _, s := range servers {
		if s.Own() {
			on = append(on, s.ID)
		} else {
			off = append(off, s.ID)
		}
	}
	return on, off
}

// controlOf returns the source that the servers let decide the value. disagreement is
// "" when they agree.
func controlOf(servers []tracker.Server) (control v1alpha1.FeatureControl, disagreement string) {
	by := map[v1alpha1.FeatureControl][]string{}
	for _, s := range servers {
		control = cmp.Or(s.Gate.Control, v1alpha1.ControlLocal)
		by[control] = append(by[control], s.ID)
	}
	if len(by) < 2 {
		return control, ""
	}
	var sides []string
	for _, side := range slices.Sorted(maps.Keys(by)) {
		sides = append(sides, fmt.Sprintf("%s in %s", side, list("", by[side])))
	}
	return v1alpha1.ControlLocal, fmt.Sprintf("%s; no transition starts until --central-features and --dynamic-features are the same everywhere", strings.Join(sides, ", "))
}

func knowing(servers []tracker.Server) []tracker.Server {
	var result []tracker.Server
	for _, s := range servers {
		if s.Reported && s.Knows {
			result = append(result, s)
		}
	}
	return result
}

func unreported(servers []tracker.Server) []string {
	var ids []string
	for _, s := range servers {
		if !s.Reported {
			ids = append(ids, s.ID)
		}
	}
	return ids
}

// starting returns true when every server that has not reported may still be about to.
func starting(servers []tracker.Server) bool {
	return !slices.ContainsFunc(servers, func(s tracker.Server) bool { return !s.Reported && !s.Starting })
}

// clusterVersion returns the lowest effective version of the live servers (KEP-3920,
// "Upgrade and downgrade"). mixed is true when they have different ones. A server whose
// version does not parse counts as different.
func clusterVersion(servers []tracker.Server) (lowest string, mixed bool) {
	var low *utilversion.Version
	for _, s := range servers {
		if !s.Reported {
			continue
		}
		v, err := parseVersion(s.Version)
		if err != nil {
			return "", true
		}
		if low != nil && !v.EqualTo(low) {
			mixed = true
		}
		if low == nil || v.LessThan(low) {
			low = v
		}
	}
	if low == nil {
		return "", false
	}
	return fmt.Sprintf("%d.%d", low.Major(), low.Minor()), mixed
}

// minorsBetween returns by how many minor versions later is after earlier, at least; 0
// when one of them does not parse. The number of minor versions of a major one is
// unknown: 1.0 may directly follow 0.9. So what is kept for some versions is never
// deleted too early.
func minorsBetween(earlier, later string) int {
	a, errA := parseVersion(earlier)
	b, errB := parseVersion(later)
	switch {
	case errA != nil || errB != nil:
		return 0
	case a.Major() == b.Major():
		return int(b.Minor()) - int(a.Minor())
	case a.GreaterThan(b):
		return -minorsBetween(later, earlier)
	default:
		return int(b.Major()) - int(a.Major()) + int(b.Minor())
	}
}

// maxNamed is the number of things that a message names before it counts the rest.
const maxNamed = 5

// list names things for a message: "a, b and c". With a verb of "is" it reads
// "a is" or "a and b are".
func list(verb string, names []string) string {
	shown, rest := names, 0
	if len(names) > maxNamed {
		shown, rest = names[:maxNamed], len(names)-maxNamed
	}
	text := strings.Join(shown, ", ")
	if rest > 0 {
		text = fmt.Sprintf("%s and %d more", text, rest)
	}
	if verb == "is" {
		if len(names) > 1 {
			return text + " are"
		}
		return text + " is"
	}
	return text
}
