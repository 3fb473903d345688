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
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilversion "k8s.io/apimachinery/pkg/util/version"
	"k8s.io/client-go/discovery"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/kubernetes-features/pkg/featurelifecycle/catalog"
)

// bare is a cluster whose servers do not have this system: upstream's binaries, or ours
// with the system off. Its version, and what its API shows, are all that is known.
type bare struct {
	discovery discovery.ServerVersionInterface
	visible   *visible
}

// check answers for a cluster without Features. It never is safe, since nothing is known
// of gates and processes.
func (b *bare) check(ctx context.Context, known gates, target *utilversion.Version) (*result, error) {
	from, err := b.version()
	if err != nil {
		return nil, err
	}
	m := move{from: from, to: target, down: target.LessThan(from)}
	if err := m.adjacent(); err != nil {
		return nil, err
	}
	if err := known.covers(from); err != nil {
		return nil, fmt.Errorf("the cluster has %s: %w", from, err)
	}
	r := newResult(m)
	r.Unknown = append(r.Unknown, "the cluster has no Features, so it is not known which gates are on, what processes set, and what is stored of features that are off; only what its API shows was examined")
	for _, name := range slices.Sorted(maps.Keys(known.catalog)) {
		if a := b.answer(ctx, m, known.catalog[name]); a != nil {
			r.Features = append(r.Features, *a)
		}
	}
	r.conclude()
	return r, ctx.Err()
}

// version returns the minor version that the server has or emulates.
func (b *bare) version() (*utilversion.Version, error) {
	info, err := b.discovery.ServerVersion()
	if err != nil {
		return nil, fmt.Errorf("%w; to show what it stores, its version has to be read: %w", errNoAPI, err)
	}
	if info.EmulationMajor != "" && info.EmulationMinor != "" {
		return utilversion.ParseMajorMinor(info.EmulationMajor + "." + info.EmulationMinor)
	}
	version, ok := minorOf(info.GitVersion)
	if !ok {
		return nil, fmt.Errorf("the cluster's version %q is none of Kubernetes", info.GitVersion)
	}
	return version, nil
}

// answer is the one for a feature that stores what the other version does not read; nil
// for others.
func (b *bare) answer(ctx context.Context, m move, entry catalog.Entry) *answer {
	passed, removed := m.passed(entry), m.removedFields(entry)
	look := func() (why, next string, err error) { return b.lostDown(ctx, m, entry) }
	switch {
	case len(passed)+len(removed) == 0:
		return nil
	case !m.to.LessThan(m.from):
		look = func() (why, next string, err error) { return b.lostUp(ctx, m, entry) }
	}
	a := &answer{Name: string(entry.Name), Safe: metav1.ConditionTrue, Reason: v1alpha1.ReasonSafe, Why: fmt.Sprintf("the API shows nothing that %s does not read", m.to)}
	why, next, err := look()
	switch {
	case why != "":
		a.Safe, a.Reason, a.Why, a.Next = metav1.ConditionFalse, v1alpha1.ReasonNotInAdjacentVersion, why, next
	case errors.Is(err, errNotServed):
		a.Safe, a.Reason = metav1.ConditionUnknown, v1alpha1.ReasonNotExaminedForVersion
		a.Why = fmt.Sprintf("what is stored, and %s does not read, cannot be seen: %v", m.to, err)
		a.Next = "serve the API for the check (--runtime-config), or turn the feature off in " + m.to.String() + ", which removes what is there"
	case err != nil:
		a.Safe, a.Reason, a.Why = metav1.ConditionUnknown, v1alpha1.ReasonNotExaminedForVersion, fmt.Sprintf("what is stored was not examined: %v", err)
	}
	return a
}

// lostUp looks for what a higher version does not read.
func (b *bare) lostUp(ctx context.Context, m move, entry catalog.Entry) (why, next string, err error) {
	objects, err := b.visible.collections(ctx, unreadable(m.passed(entry)))
	fields, fieldsErr := b.visible.fields(ctx, m.removedFields(entry))
	var whys, nexts []string
	if objects != "" {
		whys = append(whys, fmt.Sprintf("%s cannot decode what this version stores, and one such object makes every LIST of its collection fail: %s", m.to, objects))
		nexts = append(nexts, "save what is to be kept and delete these objects")
	}
	if fields != "" {
		whys = append(whys, "values are lost without an error: "+fields)
		nexts = append(nexts, "note the values and remove the fields from these objects, or set what took their place once the servers have "+m.to.String())
	}
	if len(nexts) > 0 {
		nexts = append(nexts, fmt.Sprintf("servers of %s with this system name what is left, in the condition Clean of the Feature %s, and turning that off there removes it", m.to, entry.Name))
	}
	return strings.Join(whys, "; "), strings.Join(nexts, "; "), errors.Join(err, fieldsErr)
}

// lostDown looks for what a lower version does not read: what the tasks of the move would
// find.
func (b *bare) lostDown(ctx context.Context, m move, entry catalog.Entry) (why, next string, err error) {
	var found []string
	var failed []error
	for _, version := range m.passed(entry) {
		for _, t := range version.OnDowngrade {
			leftovers, err := t.Find(ctx, b.visible.clients)
			if err != nil {
				failed = append(failed, fmt.Errorf("%s: %w", t.Name, err))
			}
			for _, l := range leftovers {
				found = append(found, describe(l))
			}
		}
	}
	if len(found) == 0 {
		return "", "", errors.Join(failed...)
	}
	return fmt.Sprintf("%s does not read what this version stores: %s", m.to, strings.Join(found, "; ")),
		"save what is to be kept, and delete these objects or remove the fields, before any binary is replaced", errors.Join(failed...)
}
