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

package lifecycletest

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
)

// Outcome is how a feature got to Off.
type Outcome struct {
	// Last is the Feature as it was seen last.
	Last *v1alpha1.Feature
	// Held are the messages that said what it waited for.
	Held []string
	// Problems are what was wrong on the way.
	Problems []string
}

// WaitUntilOff watches the Features of cases until all are Off. Where one is
// held, it does what the message asks an administrator for: it removes the
// objects that are named, if fixtures made them. The view is of the moment
// before. Problems that are not a feature's are the error.
func (k *Kit) WaitUntilOff(ctx context.Context, before *View, cases ...*Case) (map[string]*Outcome, error) {
	r, err := k.untilOff(ctx, before, cases...)
	return r.outcomes, err
}

// untilOff is WaitUntilOff, and returns what was removed, too.
func (k *Kit) untilOff(ctx context.Context, before *View, cases ...*Case) (*release, error) {
	r := &release{kit: k, outcomes: map[string]*Outcome{}, removed: map[string]bool{}}
	for _, c := range cases {
		r.outcomes[string(c.Feature.Name)] = &Outcome{}
		r.made = append(r.made, c.Own(before).Objects...)
	}
	err := k.WaitFor(ctx, v1alpha1.StateOff, func(feature *v1alpha1.Feature) error { return r.seen(ctx, feature) }, cases...)
	for _, c := range cases {
		outcome := r.outcomes[string(c.Feature.Name)]
		if err != nil {
			outcome.unfinished(string(c.Feature.Name))
			continue
		}
		outcome.unnamed(c, c.Own(before), r.removed)
	}
	return r, err
}

// release removes what holds features.
type release struct {
	kit      *Kit
	outcomes map[string]*Outcome
	// made are the objects that fixtures, and controllers for them, made.
	made []Object
	// removed are the IDs of those that were removed, by whichever feature's
	// message.
	removed map[string]bool
}

// seen handles one version of a Feature: it releases what holds the feature.
func (r *release) seen(ctx context.Context, feature *v1alpha1.Feature) error {
	outcome := r.outcomes[feature.Name]
	outcome.Last = feature
	message, held := waitsFor(feature)
	if !held || slices.Contains(outcome.Held, message) {
		return nil
	}
	outcome.Held = append(outcome.Held, message)
	named := r.named(message)
	if len(named) == 0 {
		outcome.Problems = append(outcome.Problems, fmt.Sprintf("%s is held by what no fixture made, or the message does not name it: %s", feature.Name, message))
	}
	for _, object := range named {
		if err := r.kit.release(ctx, object); err != nil {
			return fmt.Errorf("releasing %s, which holds %s: %w", object.ID(), feature.Name, err)
		}
		r.removed[object.ID()] = true
	}
	return nil
}

// waitsFor returns the message of the task that waits for a person to act.
func waitsFor(feature *v1alpha1.Feature) (message string, held bool) {
	progressing := meta.FindStatusCondition(feature.Status.Conditions, v1alpha1.ConditionProgressing)
	if progressing == nil || progressing.Reason != v1alpha1.ReasonBlocked || len(feature.Status.Tasks) == 0 {
		return "", false
	}
	return feature.Status.Tasks[0].Message, strings.HasPrefix(feature.Status.Tasks[0].Name, waitPrefix)
}

// waitPrefix begins the names of tasks that wait for none.
const waitPrefix = "WaitForNone/"

// named returns the objects that a message names: "waiting for 2 pods using x: ns/a, ns/b".
func (r *release) named(message string) []Object {
	words := strings.FieldsFunc(message, func(c rune) bool { return c == ' ' || c == ',' || c == ':' })
	var named []Object
	for _, object := range r.made {
		if slices.Contains(words, name(object.GetNamespace(), object.GetName())) && slices.Contains(words, object.Resource.String()) {
			named = append(named, object)
		}
	}
	return named
}

// unfinished adds a problem for a feature that did not get to Off.
func (o *Outcome) unfinished(feature string) {
	switch {
	case o.Last == nil:
		o.Problems = append(o.Problems, fmt.Sprintf("there is no Feature %s", feature))
	case o.Last.Status.State != v1alpha1.StateOff:
		var text []string
		for _, c := range o.Last.Status.Conditions {
			if c.Type == v1alpha1.ConditionProgressing || c.Type == v1alpha1.ConditionConsistent {
				text = append(text, fmt.Sprintf("%s=%s (%s): %s", c.Type, c.Status, c.Reason, c.Message))
			}
		}
		o.Problems = append(o.Problems, fmt.Sprintf("%s is %s and not Off; %s", feature, o.Last.Status.State, strings.Join(text, "; ")))
	}
}

// unnamed adds a problem for each task that waits for objects, had some, and was
// done without naming any of them.
func (o *Outcome) unnamed(c *Case, own *View, removed map[string]bool) {
	for _, t := range c.Feature.OnDisable {
		if !strings.HasPrefix(t.Name, waitPrefix) {
			continue
		}
		for _, field := range t.Fields[:min(1, len(t.Fields))] {
			objects := own.Of(field.Resource)
			if len(objects) > 0 && !slices.ContainsFunc(objects, func(object Object) bool { return removed[object.ID()] || ownedBy(object, own, removed) }) {
				o.Problems = append(o.Problems, fmt.Sprintf("%s is Off and task %s never said that it waited for one of %s", c.Feature.Name, t.Name, own.describe(t)))
			}
		}
	}
}

// ownedBy returns true for an object that went with an owner that was removed.
func ownedBy(object Object, view *View, removed map[string]bool) bool {
	for _, reference := range object.GetOwnerReferences() {
		for _, owner := range view.Objects {
			if owner.GetUID() == reference.UID && (removed[owner.ID()] || ownedBy(owner, view, removed)) {
				return true
			}
		}
	}
	return false
}
