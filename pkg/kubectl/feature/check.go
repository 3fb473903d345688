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

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/component-base/featuregate"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	featuresclient "k8s.io/feature-lifecycle/client/clientset/versioned/typed/features/v1alpha1"
	"k8s.io/feature-lifecycle/lifecycle/task"
	"k8s.io/feature-lifecycle/lifecycle/transition"
	"k8s.io/feature-lifecycle/lifecycle/versionskew"
	"k8s.io/kubernetes-features/pkg/featurelifecycle/catalog"
)

// result is the answer for a cluster, and what -o json prints.
type result struct {
	metav1.TypeMeta `json:",inline"`
	// From is the cluster's version, To the one it is to get.
	From string `json:"from"`
	To   string `json:"to"`
	// Safe is False when one feature is not safe, and Unknown when none is
	// unsafe but some are unknown.
	Safe metav1.ConditionStatus `json:"safe"`
	// Message is the answer in one line.
	Message string `json:"message"`
	// GatesOf is the version whose list of gates stands for To, for example v1.38.0-beta.0. It
	// is empty where this build has the gates of To itself.
	GatesOf string `json:"gatesOf,omitempty"`
	// Unknown has missing facts about the cluster as a whole.
	Unknown []string `json:"unknown,omitempty"`
	// Features has all features, by name.
	Features []answer `json:"features"`
}

// newResult returns an empty result for a move.
func newResult(m move) *result {
	return &result{TypeMeta: metav1.TypeMeta{APIVersion: "upgradecheck.features.k8s.io/v1alpha1", Kind: "UpgradeCheck"}, From: m.from.String(), To: m.to.String()}
}

// answer is the result for a feature.
type answer struct {
	Name   string                 `json:"name"`
	State  v1alpha1.FeatureState  `json:"state,omitempty"`
	Safe   metav1.ConditionStatus `json:"safe"`
	Reason string                 `json:"reason"`
	Why    string                 `json:"why"`
	Next   string                 `json:"next,omitempty"`
	// Change is what becomes of the gate in a version that this build knows by a list of gates.
	Change string `json:"change,omitempty"`
	// Effect is what the change means for this cluster, if anything.
	Effect string `json:"effect,omitempty"`
}

// checker answers for a cluster.
type checker struct {
	client       featuresclient.FeaturesV1alpha1Interface
	gates        gates
	namespace    string
	allowMissing bool
	// bare and its visible look at what the API shows; nil if that is not possible.
	bare *bare
}

// check answers whether the cluster may move to a minor version. It fails when
// the question makes no sense, or the cluster does not answer.
func (c *checker) check(ctx context.Context, to string) (*result, error) {
	target, err := minorVersion(to, c.gates.highest.String())
	if err != nil {
		return nil, err
	}
	if err := c.gates.reaches(target); err != nil {
		return nil, err
	}
	cluster, err := c.gather(ctx)
	if errors.Is(err, errNoAPI) && c.bare != nil {
		return c.bare.check(ctx, c.gates, target)
	}
	if err != nil {
		return nil, err
	}
	m, err := cluster.moveTo(target)
	if err != nil {
		return nil, err
	}
	if err := c.gates.covers(m.from); err != nil {
		return nil, fmt.Errorf("the cluster has %s: %w", m.from, err)
	}
	r := newResult(m)
	if !c.allowMissing {
		r.Unknown = cluster.missing()
	}
	r.Unknown = append(r.Unknown, cluster.missingServers()...)
	next := c.gates.ahead(target)
	if next != nil {
		r.GatesOf = next.release.Version()
	}
	given := cluster.commandLines(m)
	settings, controlled := maps.Clone(given.settings), maps.Clone(given.controlled)
	for i := range cluster.features {
		feature := &cluster.features[i]
		a, err := c.evaluate(ctx, m, feature, given)
		if err != nil {
			return nil, err
		}
		if a != nil {
			r.Features = append(r.Features, *a)
		}
		delete(settings, feature.Name)
		delete(controlled, feature.Name)
	}
	// Gates that are set and have no Feature: gates of node components that no
	// server has, or deleted Features.
	maps.Copy(settings, restOf(controlled, settings))
	for _, name := range slices.Sorted(maps.Keys(settings)) {
		feature := &v1alpha1.Feature{ObjectMeta: metav1.ObjectMeta{Namespace: c.namespace, Name: name}}
		a, err := c.evaluate(ctx, m, feature, given)
		if err != nil {
			return nil, err
		}
		if a != nil && a.Reason == v1alpha1.ReasonRefusesToStart {
			r.Features = append(r.Features, *a)
		}
	}
	if next != nil {
		r.Unknown = append(r.Unknown, next.unknown(r.Features)...)
	}
	if len(r.Features) == 0 {
		r.Unknown = append(r.Unknown, "there is no Feature of a gate that this build knows; kube-apiservers create them when they start")
	}
	r.conclude()
	return r, nil
}

// evaluate returns the answer for one feature; nil when it is none of those that this build's
// versions are about.
func (c *checker) evaluate(ctx context.Context, m move, feature *v1alpha1.Feature, lines *commandLines) (*answer, error) {
	explicit, controlled := lines.settings[feature.Name], lines.controlled[feature.Name]
	specs, known := c.gates.specs[featuregate.Feature(feature.Name)]
	if !known {
		explicit = ofThisBuild(explicit)
		given := len(explicit)+len(controlled) > 0
		if !given && !meta.IsStatusConditionTrue(feature.Status.Conditions, v1alpha1.ConditionKnown) {
			return nil, nil
		}
		if condition := meta.FindStatusCondition(feature.Status.Conditions, v1alpha1.ConditionKnown); !given && condition.Reason == v1alpha1.ReasonKnownToReporters {
			return nil, nil
		}
	}
	entry := c.gates.catalog[featuregate.Feature(feature.Name)]
	q := versionskew.Input{
		Feature: settledButForReports(feature), To: m.to.String(), Down: m.down,
		Current: versionskew.SpecOf(feature, specs, m.from), Target: c.gates.specAt(feature.Name, m.to),
		Explicit: explicit, Controlled: controlled,
		Dependences: c.dependences(m, feature.Name, lines), Stages: lines.stages,
		Clears: len(entry.OnDisable) > 0, Harmless: harmless(entry),
	}
	if !known {
		// The servers have it and this build does not: it is removed.
		q.Current = statusSpec(&feature.Status)
		if !m.down {
			q.Harmless = harmlessWhenRemoved[feature.Name]
		}
	}
	if feature.Status.Version != "" {
		d := declared(entry)
		q.Tasks = transition.PathTo(&feature.Status, d, q.To)
		q.StartupBlocking = d.StartupBlockingOf(q.Tasks)
	}
	q.Leftovers, q.Unread = versionskew.Found(feature)
	v := versionskew.Evaluate(q)
	var err error
	if moves := v.Reason == v1alpha1.ReasonNeedsTasks && m.down && len(q.Tasks) > 0; moves || v.Status == metav1.ConditionUnknown && q.StartupBlocked() {
		if v, err = c.examineMove(ctx, m, &q, v, entry); err != nil {
			return nil, err
		}
	}
	var unseen gaps
	if fields := m.removedFields(entry); v.Status != metav1.ConditionFalse && feature.Status.State == v1alpha1.StateOn && len(fields) > 0 {
		if v, unseen, err = c.examineFields(ctx, &q, v, fields); err != nil {
			return nil, err
		}
	}
	switch {
	case v.Reason == v1alpha1.ReasonNotInAdjacentVersion,
		v.Reason == v1alpha1.ReasonNeedsTasks && (!m.down || len(q.Tasks) == 0) && !q.StartupBlocked(),
		v.Status == metav1.ConditionTrue && feature.Status.State == v1alpha1.StateOff && len(entry.OnDisable) > 0:
		// The condition Clean may be half an hour old.
		if v, err = c.examine(ctx, q, entry); err != nil {
			return nil, err
		}
	}
	v = unseen.limit(v)
	a := &answer{Name: feature.Name, State: feature.Status.State, Safe: v.Status, Reason: v.Reason, Why: v.Why, Next: v.Next}
	if next := c.gates.ahead(m.to); next != nil {
		next.limit(a, &q)
	}
	return a, nil
}

// dependences are the gates that have to do with one, and what processes set for them.
func (c *checker) dependences(m move, name string, lines *commandLines) []versionskew.Dependence {
	dependences := slices.Clone(c.gates.dependencesAt(name, m.to))
	for i := range dependences {
		d := &dependences[i]
		d.Target, d.Explicit = c.gates.specAt(d.Name, m.to), lines.settings[d.Name]
	}
	return dependences
}

// examineMove requests from the servers the objects that the tasks of the move
// would find, and evaluates the completed input again. Tasks that would find
// nothing need not run, and objects that block startup have to be known. Without a
// response the result stays.
func (c *checker) examineMove(ctx context.Context, m move, q *versionskew.Input, v versionskew.Result, entry catalog.Entry) (versionskew.Result, error) {
	plan, err := c.plan(ctx, q.Feature.Name, v1alpha1.FeaturePlanSpec{TargetVersion: q.To})
	if ctx.Err() != nil {
		return versionskew.Result{}, errInterrupted
	}
	failed := func(err error) (versionskew.Result, error) {
		v.Why += fmt.Sprintf(" (asking the servers for what is stored failed: %v)", err)
		return v, nil
	}
	if q.Down && err != nil {
		return failed(err)
	}
	if !q.Down {
		if err == nil {
			q.Obstacles, q.Looked = obstacles(plan.Status.Tasks, q.StartupBlocking)
		}
		if !q.Looked && c.bare != nil {
			// The servers do not know the tasks of the other version. All that they store is in
			// the form that goes.
			var unseen gaps
			q.Obstacles, unseen = c.bare.visible.collections(ctx, unreadable(m.passed(entry)))
			if ctx.Err() != nil {
				return versionskew.Result{}, errInterrupted
			}
			if q.Obstacles == "" && len(unseen) > 0 {
				v.Why, v.Next = fmt.Sprintf("%s (%s)", v.Why, unseen), unseen.next()
				return v, nil
			}
			q.Looked = true
			return unseen.limit(versionskew.Evaluate(*q)), nil
		}
		if err != nil {
			return failed(err)
		}
		return versionskew.Evaluate(*q), nil
	}
	if !slices.ContainsFunc(plan.Status.Tasks, func(t v1alpha1.PlannedTask) bool {
		// The plan has the tasks of a change of the value, too; they are judged
		// by examine.
		return t.State != v1alpha1.StateTurningOn && t.State != v1alpha1.StateTurningOff && len(t.Leftovers) > 0
	}) {
		q.Tasks = nil
		v = versionskew.Evaluate(*q)
	}
	return v, nil
}

// examineFields looks for fields that the other version does not have, although it has the
// gate, and evaluates the completed input again. The server reads them, and its API shows
// them. Beside what is found it returns what was not examined, which the result does not
// have yet.
func (c *checker) examineFields(ctx context.Context, q *versionskew.Input, v versionskew.Result, fields []task.RemovedField) (versionskew.Result, gaps, error) {
	why, next := "this build of the plugin has no client for them", "look for the fields by other means"
	if c.bare != nil {
		var unseen gaps
		q.Lost, unseen = c.bare.visible.fields(ctx, fields)
		if ctx.Err() != nil {
			return v, nil, errInterrupted
		}
		if q.Lost != "" || len(unseen) == 0 {
			return versionskew.Evaluate(*q), unseen, nil
		}
		why, next = unseen.String(), unseen.next()
	}
	if v.Status == metav1.ConditionUnknown {
		v.Why += fmt.Sprintf(" (stored objects were not examined: %s)", why)
		return v, nil, nil
	}
	var lost []string
	for _, f := range fields {
		lost = append(lost, f.String())
	}
	return versionskew.Result{
		Status: metav1.ConditionUnknown, Reason: v1alpha1.ReasonNotExaminedForVersion,
		Why:  fmt.Sprintf("the feature is on, and %s; stored objects were not examined: %s", strings.Join(lost, "; "), why),
		Next: next,
	}, nil, nil
}

// obstacles returns the objects that some tasks of a plan would find; all is
// false when the server that made the plan does not have one of them.
func obstacles(tasks []v1alpha1.PlannedTask, names []string) (found string, all bool) {
	var parts []string
	for _, name := range names {
		i := slices.IndexFunc(tasks, func(t v1alpha1.PlannedTask) bool { return t.Name == name })
		if i < 0 {
			return "", false
		}
		for _, l := range tasks[i].Leftovers {
			parts = append(parts, describe(l))
		}
	}
	return strings.Join(parts, "; "), true
}

// examine requests from the servers the stored objects that use a feature, and
// evaluates with them. Without a response a feature that is on stays unsafe, and
// one that is off keeps its result.
func (c *checker) examine(ctx context.Context, q versionskew.Input, entry catalog.Entry) (versionskew.Result, error) {
	off := false
	plan, err := c.plan(ctx, q.Feature.Name, v1alpha1.FeaturePlanSpec{Enabled: &off})
	if err != nil {
		if ctx.Err() != nil {
			return versionskew.Result{}, errInterrupted
		}
		v := versionskew.Evaluate(q)
		if v.Status == metav1.ConditionTrue {
			v = versionskew.Result{Status: metav1.ConditionUnknown, Reason: v1alpha1.ReasonNotExaminedForVersion, Why: "the feature is off, and its leftovers were not examined now: the condition Clean may be 30 minutes old"}
		}
		v.Why += fmt.Sprintf(" (asking the servers for what is stored failed: %v)", err)
		return v, nil
	}
	var used, held []string
	removable := false
	for _, t := range plan.Status.Tasks {
		for _, l := range t.Leftovers {
			used = append(used, describe(l))
			if slices.ContainsFunc(entry.OnDisable, func(d task.Task) bool { return d.Name == t.Name && d.Waits }) {
				held = append(held, l.Resource)
			} else {
				removable = true
			}
		}
	}
	q.Examined, q.Used = true, strings.Join(used, "; ")
	if q.Feature.Status.State == v1alpha1.StateOff {
		q.Leftovers = q.Used
	}
	v := versionskew.Evaluate(q)
	if v.Status != metav1.ConditionFalse {
		return v, nil
	}
	var next []string
	if v.Next != "" {
		next = append(next, v.Next)
	}
	if removable && v.Reason == v1alpha1.ReasonNeedsTasks {
		next = append(next, "kubectl feature clean "+q.Feature.Name)
	}
	if len(held) > 0 {
		slices.Sort(held)
		next = append(next, fmt.Sprintf("nothing may remove that from live %s: change or delete them", strings.Join(slices.Compact(held), ", ")))
	}
	v.Next = strings.Join(next, "; ")
	return v, nil
}

// plan requests the effects of a change from the servers. They only read.
func (c *checker) plan(ctx context.Context, name string, spec v1alpha1.FeaturePlanSpec) (*v1alpha1.FeaturePlan, error) {
	return c.client.Features(c.namespace).CreatePlan(ctx, name, &v1alpha1.FeaturePlan{Spec: spec}, metav1.CreateOptions{})
}

// restOf returns the features that servers name in a flag and that are not
// set.
func restOf(controlled map[string][]versionskew.Controlled, settings map[string][]versionskew.Setting) map[string][]versionskew.Setting {
	rest := map[string][]versionskew.Setting{}
	for name := range controlled {
		if _, set := settings[name]; !set {
			rest[name] = nil
		}
	}
	return rest
}

// harmless returns the catalog's reason why the stored data of a feature does
// no harm where it is off, if there is one.
func harmless(entry catalog.Entry) string {
	if entry.Stateless != "" {
		return "it stores nothing"
	}
	if len(entry.OnDisable) > 0 {
		return ""
	}
	var stays []string
	for _, r := range entry.Retained {
		stays = append(stays, fmt.Sprintf("%s %s stays: %s", r.Resource, r.Path, r.Why))
	}
	return strings.Join(stays, "; ")
}

// describe returns a sentence about the objects that one task found.
func describe(l v1alpha1.ResourceLeftovers) string {
	name := l.Resource
	if l.Group != "" {
		name += "." + l.Group
	}
	text := fmt.Sprintf("%d %s", l.Count, name)
	if l.Field != "" {
		text += " have " + l.Field
	}
	if len(l.Examples) > 0 {
		text += ": " + strings.Join(l.Examples, ", ")
	}
	return text
}

// conclude gives the answer for the cluster.
func (r *result) conclude() {
	counts := map[metav1.ConditionStatus]int{}
	for _, a := range r.Features {
		counts[a.Safe]++
	}
	how := fmt.Sprintf("%d of %d features are not safe, %d unknown", counts[metav1.ConditionFalse], len(r.Features), counts[metav1.ConditionUnknown])
	if r.GatesOf != "" {
		how += ", by the gates of " + r.GatesOf
	}
	switch {
	case counts[metav1.ConditionFalse] > 0:
		r.Safe, r.Message = metav1.ConditionFalse, fmt.Sprintf("Not safe to move from %s to %s: %s.", r.From, r.To, how)
	case counts[metav1.ConditionUnknown] > 0 || len(r.Unknown) > 0:
		r.Safe, r.Message = metav1.ConditionUnknown, fmt.Sprintf("Unknown whether it is safe to move from %s to %s: %s.", r.From, r.To, how)
	default:
		r.Safe, r.Message = metav1.ConditionTrue, fmt.Sprintf("Safe to move from %s to %s: all %d features are.", r.From, r.To, len(r.Features))
	}
}

// ofThisBuild are the settings of components whose gates this build knows.
func ofThisBuild(settings []versionskew.Setting) []versionskew.Setting {
	return slices.DeleteFunc(slices.Clone(settings), func(s versionskew.Setting) bool { return !slices.Contains(builtTogether, s.Component) })
}

// statusSpec is a gate as the servers have it.
func statusSpec(status *v1alpha1.FeatureStatus) versionskew.Spec {
	return versionskew.Spec{
		Known: status.Stage != "" && status.Stage != v1alpha1.StagePreAlpha, Stage: status.Stage,
		Default: status.Default != nil && *status.Default, Locked: status.LockedToDefault,
	}
}

// declared has the tasks of an entry for version boundaries.
func declared(entry catalog.Entry) transition.Declared {
	var d transition.Declared
	for _, v := range entry.Versions {
		d.Versions = append(d.Versions, transition.VersionTasks{At: v.At, OnUpgrade: v.Upgrading().Names(), OnDowngrade: v.Downgrading().Names()})
		d.StartupBlocking = append(d.StartupBlocking, v.Upgrading().StartupBlocking()...)
	}
	return d
}
