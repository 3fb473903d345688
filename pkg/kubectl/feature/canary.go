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

package feature

import (
	"cmp"
	"fmt"
	"io"
	"strings"
	"time"

	"k8s.io/cli-runtime/pkg/printers"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/feature-lifecycle/lifecycle/transition"
	"k8s.io/utils/ptr"
)

// printRollout prints the instances that a rollout selects, and its progress.
func printRollout(w io.Writer, palette palette, f *v1alpha1.Feature) error {
	to := printers.GetNewTabWriter(w)
	line := fieldsOf(to)
	painted := func(name string, c color, text string) {
		fmt.Fprintf(to, "%s:\t%s\n", name, palette.paint(c, printable(text)))
	}
	if r := f.Spec.Rollout; r != nil {
		if r.At != nil {
			line("For all at", r.At.UTC().Format(time.RFC3339)+" ("+fromNow(r.At.Time)+")")
		} else {
			line("Percent", fmt.Sprint(ptr.Deref(r.Percent, 100)))
			line("Components", cmp.Or(strings.Join(r.Components, ", "), "all"))
		}
		line("Attempt", fmt.Sprint(r.Attempt))
	}
	r := f.Status.Rollout
	if r == nil {
		line("Under way", "no: "+noCanary(f))
		return to.Flush()
	}
	line("Value", transition.OnOff(r.Value))
	line("Begun", ago(r.StartTime.Time)+" ago")
	if moment := f.Spec.Rollout; moment != nil && moment.At != nil {
		line("Now", momentNow(r))
	}
	switch {
	case r.Halted:
		halted := "yes"
		if r.HaltTime != nil {
			halted = ago(r.HaltTime.Time) + " ago"
		}
		painted("Halted", red, halted+": "+r.Message)
		line("Failed", orNone(strings.Join(r.FailedInstances, ", ")))
		line("Next", fmt.Sprintf("find out why, then kubectl feature rollout %s --retry%s, or kubectl feature %s %s%s",
			f.Name, namespaceFlag(f), map[bool]string{true: "disable", false: "enable"}[r.Value], f.Name, namespaceFlag(f)))
	case r.UnhealthySince != nil:
		painted("Suspected", yellow, ago(r.UnhealthySince.Time)+" ago: "+r.Message)
	}
	return to.Flush()
}

// momentNow says for whom the value is, and whether its moment counts.
func momentNow(r *v1alpha1.FeatureRolloutStatus) string {
	switch audience := transition.Audience(&r.Observed); {
	case r.Halted:
		return "for none: it was halted"
	case audience == "":
		return "for all instances"
	case r.MomentHeld:
		return "for those that have it; the moment does not count while the feature is paused, its other value is requested, or the canary is suspected"
	default:
		return "for " + audience
	}
}

// noCanary returns the reason why no canary is under way.
func noCanary(f *v1alpha1.Feature) string {
	switch {
	case f.Spec.Rollout == nil:
		return "the value is for all instances"
	case requestedFor(f.Spec.Rollout, time.Now()) == "":
		return "spec.rollout does not limit the value"
	case f.Spec.Paused:
		return "spec.paused holds the feature"
	case controlUnknown(f):
		return fmt.Sprintf("%s have not reported, so it is not known whether spec.rollout has an effect", serversOf(f))
	case f.Status.Control == v1alpha1.ControlLocal || f.Status.Control == "":
		return "the feature is Local, so spec.rollout has no effect"
	default:
		return "all users have the same value, or the servers have not seen spec.rollout yet"
	}
}
