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
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/feature-lifecycle/lifecycle/transition"
	"k8s.io/feature-lifecycle/rollout"
	"k8s.io/utils/ptr"
)

// request is a requested change of a feature. Its methods decide and read nothing
// but their arguments.
type request struct {
	// enabled is the wanted value, nil to take back what was requested before.
	enabled *bool
	// rollout is the whole spec.rollout that is wanted, nil to leave the one that
	// is there alone. Its attempt does not count.
	rollout *v1alpha1.FeatureRollout
}

// done is the word for the request.
func (r request) done() string {
	switch {
	case r.enabled == nil:
		return "reset"
	case *r.enabled:
		return "enabled"
	default:
		return "disabled"
	}
}

// refuse returns why a value cannot be requested, with the next step; nil when
// it can, or when only the server knows.
func (r request) refuse(f *v1alpha1.Feature) error {
	if r.enabled == nil {
		return nil
	}
	status, value := &f.Status, *r.enabled
	if c := meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionKnown); c != nil && c.Status == metav1.ConditionFalse {
		return fmt.Errorf("feature %s: %s", f.Name, c.Message)
	}
	if status.LockedToDefault {
		return fmt.Errorf("feature %s is locked: it is always %s and cannot be set", f.Name, transition.OnOff(ptr.Deref(status.Default, true)))
	}
	if status.Control == v1alpha1.ControlDynamic {
		return nil
	}
	servers := "all kube-apiservers"
	if f.Namespace != metav1.NamespaceSystem {
		servers = "all replicas of its operator"
	}
	if status.State == "" {
		return fmt.Errorf("feature %s has no state yet: whether it may be set through the API is known once %s have reported; try again then", f.Name, servers)
	}
	if c := meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionConsistent); c != nil && c.Reason == v1alpha1.ReasonServersDisagree {
		return fmt.Errorf("feature %s is not Dynamic as long as its servers disagree: %s", f.Name, c.Message)
	}
	dynamic := fmt.Sprintf("name it in --dynamic-features of %s, if its author permits that", servers)
	if status.Control == v1alpha1.ControlCentral {
		return fmt.Errorf("feature %s is Central, not Dynamic: all take the value that %s have when they start; set --feature-gates=%s=%t on %s and restart the others, or %s",
			f.Name, servers, f.Name, value, servers, dynamic)
	}
	return fmt.Errorf("feature %s is Local, not Dynamic: each process has the value of its own command line; %s, or set --feature-gates=%s=%t on the components that use it%s",
		f.Name, dynamic, f.Name, value, users(status.Uses))
}

// users names the components that use a feature, in parentheses.
func users(uses []v1alpha1.FeatureUse) string {
	var names []string
	for _, use := range uses {
		if use.Enabled != nil && !slices.Contains(names, use.Component) {
			names = append(names, use.Component)
		}
	}
	if len(names) == 0 {
		return ""
	}
	return " (" + strings.Join(names, ", ") + ")"
}

// patch is the merge patch. A rollout is written as a whole, so that nothing of the
// one before limits the value unseen; the count of its attempts stays.
func (r request) patch() ([]byte, error) {
	spec := map[string]any{"enabled": r.enabled}
	switch {
	case r.enabled == nil:
		spec["rollout"] = nil
	case r.rollout != nil:
		rollout := map[string]any{"percent": r.rollout.Percent, "components": nil, "at": r.rollout.At}
		if len(r.rollout.Components) > 0 {
			rollout["components"] = r.rollout.Components
		}
		spec["rollout"] = rollout
	}
	return json.Marshal(map[string]any{"spec": spec})
}

// remarks returns other parts of the spec that affect the request.
func (r request) remarks(f *v1alpha1.Feature) []string {
	var remarks []string
	if limits := requestedFor(f.Spec.Rollout, time.Now()); limits != "" && r.enabled != nil && r.rollout == nil {
		remarks = append(remarks, fmt.Sprintf("spec.rollout is left as it is and gives the value to %s; --percent=100 gives it to all", limits))
	}
	if f.Spec.Paused {
		remarks = append(remarks, fmt.Sprintf(`spec.paused holds the feature: the request is stored, and begins when it is resumed (kubectl feature resume %s%s)`, f.Name, namespaceFlag(f)))
	}
	return remarks
}

// answered returns true when the servers have observed the generation, and know its
// effect. They do not know it in the update that begins a transition, which only
// waits for users.
func answered(f *v1alpha1.Feature, generation int64) bool {
	progress := observed(f, generation)
	if progress == nil {
		return false
	}
	return progress.Reason != v1alpha1.ReasonWaitingForUses || len(f.Status.Tasks) == 0 || f.Status.Tasks[0].Message != ""
}

// observed is the condition Progressing, nil while it is about an earlier
// generation.
func observed(f *v1alpha1.Feature, generation int64) *metav1.Condition {
	progress := meta.FindStatusCondition(f.Status.Conditions, v1alpha1.ConditionProgressing)
	if progress == nil || progress.ObservedGeneration < generation {
		return nil
	}
	return progress
}

// outcome is the progress of a request.
type outcome int

const (
	// underWay: it continues by itself.
	underWay outcome = iota
	// held: user action is needed.
	held
	// reached: the state is what was requested.
	reached
	// inPart: the servers give the value to a part of the instances, and the
	// transition does not continue before the rollout is widened. The Feature does
	// not record whether that part has the value.
	inPart
)

// holds are the reasons of the condition Progressing that need user action on this
// feature. Servers that disagree or have different versions are restarted one by
// one, which ends by itself.
var holds = []string{v1alpha1.ReasonPaused, v1alpha1.ReasonRolloutHalted, v1alpha1.ReasonBlocked}

// outcome judges a Feature after a request was stored as the generation.
func (r request) outcome(f *v1alpha1.Feature, generation int64) outcome {
	progress := observed(f, generation)
	switch {
	case progress == nil:
		return underWay
	case r.reached(&f.Status) && (r.enabled != nil || progress.Reason == v1alpha1.ReasonComplete || progress.Reason == v1alpha1.ReasonNotServed):
		// Without a request it counts what the servers configure themselves, and
		// that they agree.
		return reached
	case slices.Contains(holds, progress.Reason):
		return held
	case r.enabled != nil && progress.Reason == v1alpha1.ReasonWaitingForUses && onTrial(f, *r.enabled):
		return inPart
	default:
		return underWay
	}
}

// requestedFor describes the instances to which spec.rollout gives a value, "" for all.
func requestedFor(requested *v1alpha1.FeatureRollout, now time.Time) string {
	if requested != nil && requested.At != nil {
		if !now.Before(requested.At.Time) {
			return ""
		}
		return fmt.Sprintf("all instances from %s on", requested.At.UTC().Format(time.RFC3339))
	}
	return transition.Audience(requested)
}

// onTrial is true when the servers give a value to those that spec.rollout names.
func onTrial(f *v1alpha1.Feature, value bool) bool {
	current := f.Status.Rollout
	return rollout.Limits(f.Spec.Rollout) && current != nil && current.Value == value && !current.Halted && current.UnhealthySince == nil &&
		equality.Semantic.DeepEqual(current.Observed, *f.Spec.Rollout)
}

// reached is true when nothing is left to do for the wanted value.
func (r request) reached(status *v1alpha1.FeatureStatus) bool {
	configured := status.Configured
	if configured == nil || status.Transition != nil || len(status.Tasks) > 0 {
		return false
	}
	if r.enabled != nil && *r.enabled != configured.Value {
		return false
	}
	value, ok := transition.Goal(status.State)
	return ok && value == configured.Value
}

// progressOf returns one printable line about the progress of a feature.
func progressOf(f *v1alpha1.Feature) string {
	progress := meta.FindStatusCondition(f.Status.Conditions, v1alpha1.ConditionProgressing)
	state := cmp.Or(string(f.Status.State), noState)
	if progress == nil || progress.Reason == v1alpha1.ReasonComplete || progress.Message == "" {
		return printable(state)
	}
	return printable(fmt.Sprintf("%s, %s", state, progress.Message))
}

// unanswered returns the line about a stored request that no server has observed.
func unanswered(said string, stored *v1alpha1.Feature) string {
	return fmt.Sprintf("%s: the request is stored; no server has processed it yet (kubectl feature describe %s%s)", said, stored.Name, namespaceFlag(stored))
}
