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
	"fmt"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilversion "k8s.io/apimachinery/pkg/util/version"
	"k8s.io/client-go/discovery"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/feature-lifecycle/lifecycle"
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
		a := b.answer(ctx, m, known.catalog[name])
		if ctx.Err() != nil {
			return nil, errInterrupted
		}
		if a != nil {
			r.Features = append(r.Features, *a)
		}
	}
	if next := known.ahead(target); next != nil {
		r.GatesOf = next.release.Version()
		r.Unknown = append(r.Unknown, next.unknown(r.Features)...)
	}
	r.conclude()
	return r, nil
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

// loss is what the other version does not read of a feature, as far as it was examined.
type loss struct {
	// why names the objects, and next the way out; "" if none was found.
	why, next string
	unseen    gaps
}

// answer is the one for a feature that stores what the other version does not read; nil
// for others.
func (b *bare) answer(ctx context.Context, m move, entry catalog.Entry) *answer {
	if len(m.passed(entry))+len(m.removedFields(entry)) == 0 {
		return nil
	}
	lost := b.lost(ctx, m, entry)
	a := &answer{Name: string(entry.Name)}
	switch {
	case lost.why != "":
		a.Safe, a.Reason = metav1.ConditionFalse, v1alpha1.ReasonNotInAdjacentVersion
		a.Why, a.Next = lost.unseen.amend(lost.why, lost.next)
	case len(lost.unseen) > 0:
		a.Safe, a.Reason = metav1.ConditionUnknown, v1alpha1.ReasonNotExaminedForVersion
		a.Why = fmt.Sprintf("what is stored, and %s does not read, is not known: %s", m.to, lost.unseen)
		a.Next = fmt.Sprintf("%s, or turn the feature off in servers of %s with this system, which removes what is there", lost.unseen.next(), m.to)
	default:
		a.Safe, a.Reason, a.Why = metav1.ConditionTrue, v1alpha1.ReasonSafe, fmt.Sprintf("the API shows nothing that %s does not read", m.to)
	}
	return a
}

// lost looks for what the other version does not read.
func (b *bare) lost(ctx context.Context, m move, entry catalog.Entry) loss {
	if m.down {
		return b.lostDown(ctx, m, entry)
	}
	return b.lostUp(ctx, m, entry)
}

// lostUp looks for what a higher version does not read.
func (b *bare) lostUp(ctx context.Context, m move, entry catalog.Entry) loss {
	objects, unseenObjects := b.visible.collections(ctx, unreadable(m.passed(entry)))
	fields, unseenFields := b.visible.fields(ctx, m.removedFields(entry))
	waited, unseenWaited := b.visible.tasks(ctx, waits(m.passed(entry)))
	var whys, nexts []string
	if objects != "" {
		whys = append(whys, fmt.Sprintf("%s cannot decode what this version stores, and one such object makes every LIST of its collection fail: %s", m.to, objects))
		nexts = append(nexts, "save what is to be kept and delete these objects")
	}
	if fields != "" {
		whys = append(whys, "values are lost without an error: "+fields)
		nexts = append(nexts, "note the values and remove the fields from these objects, or set what took their place once the servers have "+m.to.String())
	}
	if waited != "" {
		whys = append(whys, fmt.Sprintf("%s cannot end the use of what this version stores: %s", m.to, waited))
		nexts = append(nexts, "end that use, which this version can, before any binary is replaced")
	}
	if len(nexts) > 0 {
		nexts = append(nexts, fmt.Sprintf("servers of %s with this system name what is left, in the condition Clean of the Feature %s, and turning that off there removes it", m.to, entry.Name))
	}
	return loss{strings.Join(whys, "; "), strings.Join(nexts, "; "), slices.Concat(unseenObjects, unseenFields, unseenWaited)}
}

// waits returns the tasks of moves upwards that wait for objects and remove none.
func waits(versions []lifecycle.Version) lifecycle.Tasks {
	var tasks lifecycle.Tasks
	for _, version := range versions {
		for _, t := range version.OnUpgrade {
			if t.Waits {
				tasks = append(tasks, t)
			}
		}
	}
	return tasks
}

// lostDown looks for what a lower version does not read: what the tasks of the move would
// find.
func (b *bare) lostDown(ctx context.Context, m move, entry catalog.Entry) loss {
	var tasks lifecycle.Tasks
	for _, version := range m.passed(entry) {
		tasks = append(tasks, version.OnDowngrade...)
	}
	found, unseen := b.visible.tasks(ctx, tasks)
	if found == "" {
		return loss{unseen: unseen}
	}
	return loss{
		fmt.Sprintf("%s does not read what this version stores: %s", m.to, found),
		"save what is to be kept, and delete these objects or remove the fields, before any binary is replaced", unseen,
	}
}
