//go:build linux

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

package gates

import (
	"context"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/feature-lifecycle/lifecycle/task"
	"k8s.io/feature-lifecycle/lifecycletest"
	"k8s.io/kubernetes-features/pkg/featurelifecycle/catalog"
	"k8s.io/kubernetes-features/test/e2e_features/framework"
	"k8s.io/kubernetes-features/test/utils/localcluster"
)

// TestLeftoversOfUpstream writes what features store with upstream's unchanged
// kube-apiserver, all gates on, and starts ours on the same etcd with all of them
// off: condition Clean and the subresource plan count every leftover, and nothing
// is touched. Features whose fields are in a collection that is not served are
// reported as not examined.
func TestLeftoversOfUpstream(t *testing.T) {
	t.Parallel()
	entries, all := cases(t)
	binary := framework.Upstream(t, "kube-apiserver")
	entries, all = ofUpstream(t, binary, entries, all)
	stateful := slices.DeleteFunc(slices.Clone(all), func(c *lifecycletest.Case) bool { return len(c.Feature.OnDisable) == 0 })
	if len(stateful) == 0 {
		t.Skip("the gate stores nothing, or upstream does not have it")
	}
	on, _ := together(names(entries)...)
	server := func(values gates, upstream bool) []string {
		arguments := values.arguments()[localcluster.APIServer]
		if upstream {
			arguments = slices.DeleteFunc(arguments, func(a string) bool {
				return strings.HasPrefix(a, "--feature-settle") || strings.HasPrefix(a, "--feature-grace")
			})
		}
		// Service accounts are made by the controller manager, which is not here.
		return append(arguments, "--disable-admission-plugins=ServiceAccount")
	}
	config := localcluster.Config{
		Only:      []string{localcluster.Etcd, localcluster.APIServer},
		ExtraArgs: map[string][]string{localcluster.APIServer: server(on, true)},
		Binaries:  map[string]string{localcluster.APIServer: binary},
	}
	w := start(t, config)
	for _, c := range stateful {
		if err := w.Use(t.Context(), c); err != nil {
			t.Errorf("with upstream's kube-apiserver: %v", err)
		}
	}
	delete(config.Binaries, localcluster.APIServer)
	turns, err := inTurn(entries, all)
	if err != nil {
		t.Fatal(err)
	}
	providers := slices.Concat(turns[1:]...)
	unserved := slices.DeleteFunc(slices.Clone(stateful), func(c *lifecycletest.Case) bool { return !looksInto(c, providers) })
	served := slices.DeleteFunc(slices.Clone(stateful), func(c *lifecycletest.Case) bool { return looksInto(c, providers) })
	off := map[gate]bool{}
	values := w.turnOff(off, on, all)
	before := w.adopt(t, server(values, false))
	w.examined(t, served, before)
	w.untouched(t, stateful, before)

	// Those with fields in a collection that is not served report that, and are
	// counted when it is served again.
	if len(providers) == 0 || len(unserved) == 0 {
		return
	}
	for _, c := range unserved {
		w.WaitForFeature(string(c.Feature.Name), "not examined", func(f *v1alpha1.Feature) bool {
			clean := meta.FindStatusCondition(f.Status.Conditions, v1alpha1.ConditionClean)
			return clean != nil && clean.Status == metav1.ConditionUnknown && notServed(clean.Message)
		})
	}
	for _, c := range providers {
		values[c.Feature.Name] = true
	}
	// One that serves a collection is on then.
	unserved = slices.DeleteFunc(unserved, func(c *lifecycletest.Case) bool { return values[c.Feature.Name] })
	before = w.adopt(t, server(values, false))
	w.examined(t, unserved, before)
	w.untouched(t, stateful, before)
}

// ofUpstream are those of the cases whose gates a binary of upstream has, as its help says:
// it refuses to start with others.
func ofUpstream(t *testing.T, binary string, entries []catalog.Entry, all []*lifecycletest.Case) ([]catalog.Entry, []*lifecycletest.Case) {
	t.Helper()
	help, err := exec.CommandContext(t.Context(), binary, "--help").Output()
	if err != nil {
		t.Fatalf("asking upstream's kube-apiserver for its gates: %v", err)
	}
	unknown := func(name gate) bool { return !strings.Contains(string(help), string(name)+"=true|false") }
	known := slices.DeleteFunc(slices.Clone(entries), func(e catalog.Entry) bool { return unknown(e.Name) })
	if len(entries) > 1 && len(known) == 0 {
		t.Fatal("upstream's kube-apiserver names none of the gates; this test does not understand its help any more")
	}
	return known, slices.DeleteFunc(slices.Clone(all), func(c *lifecycletest.Case) bool { return unknown(c.Feature.Name) })
}

// notServed is true for the message of a task that cannot look at a collection.
func notServed(message string) bool {
	return strings.Contains(message, "is not served and objects of it may be stored")
}

// adopt starts our kube-apiserver in the place of the one that runs, and returns
// what was stored before it.
func (w *world) adopt(t *testing.T, arguments []string) *lifecycletest.View {
	t.Helper()
	if err := w.Stop(t.Context(), localcluster.APIServer); err != nil {
		t.Fatal(err)
	}
	before := w.stored(t)
	w.SetArgs(localcluster.APIServer, arguments...)
	if err := w.Restart(t.Context(), nil, localcluster.APIServer); err != nil {
		t.Fatal(err)
	}
	w.Mapper.Reset()
	return before
}

// untouched compares the revisions of everything that fixtures made.
func (w *world) untouched(t *testing.T, made []*lifecycletest.Case, before *lifecycletest.View) {
	t.Helper()
	after := w.stored(t).ByID()
	for _, c := range made {
		for _, was := range c.Own(before).Objects {
			if is := after[was.ID()]; is.Revision != was.Revision {
				t.Errorf("%s was written unasked: revision %d, now %d", was.ID(), was.Revision, is.Revision)
			}
		}
	}
}

// looksInto reports whether a feature has fields in a collection that goes with
// another one.
func looksInto(c *lifecycletest.Case, providers []*lifecycletest.Case) bool {
	for _, provider := range providers {
		for _, t := range provider.Feature.OnDisable {
			for _, collection := range t.Fields {
				if collection.Path == "" && provider != c && slices.ContainsFunc(c.Feature.OnDisable, func(own task.Task) bool {
					return slices.ContainsFunc(own.Fields, func(f task.Field) bool { return f.Resource == collection.Resource })
				}) {
					return true
				}
			}
		}
	}
	return false
}

// examined waits until leftovers of all features were looked for and compares what
// is said of them with what the finders see in etcd.
func (w *world) examined(t *testing.T, stateful []*lifecycletest.Case, before *lifecycletest.View) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), framework.Patience)
	defer cancel()
	err := w.WaitFor(ctx, v1alpha1.StateOff, func(f *v1alpha1.Feature) error {
		if f.Status.Transition != nil {
			t.Errorf("a transition of %s runs unasked: %+v", f.Name, f.Status)
		}
		return nil
	}, stateful...)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range stateful {
		name := c.Feature.Name
		f := w.WaitForFeature(string(name), "examined", func(f *v1alpha1.Feature) bool {
			clean := meta.FindStatusCondition(f.Status.Conditions, v1alpha1.ConditionClean)
			return clean != nil && (clean.Reason == v1alpha1.ReasonLeftovers || clean.Reason == v1alpha1.ReasonNothingLeft)
		})
		removed, waitedFor := w.planned(t, c, before)
		counted(t, f, removed, waitedFor)
		if len(removed)+len(waitedFor) == 0 {
			t.Errorf("%s: its fixture leaves nothing behind, so nothing is proved of its finders; write to %s what controllers would write, too (status is written through the subresource)", name, c.Fixture)
		}
	}
}

// planned compares what the subresource plan says that turning a feature off
// would look after, task by task, with what the finders see in etcd, and returns
// that: what tasks remove, and what they wait for.
func (w *world) planned(t *testing.T, c *lifecycletest.Case, before *lifecycletest.View) (removed, waitedFor []v1alpha1.ResourceLeftovers) {
	t.Helper()
	name, off := string(c.Feature.Name), false
	plan, err := w.Cluster.Features.FeaturesV1alpha1().Features(w.Namespace).CreatePlan(t.Context(), name,
		&v1alpha1.FeaturePlan{Spec: v1alpha1.FeaturePlanSpec{Enabled: &off}}, metav1.CreateOptions{})
	if err != nil {
		t.Errorf("%s: planning to turn it off: %v", name, err)
		return nil, nil
	}
	says := map[string][]v1alpha1.ResourceLeftovers{}
	for _, planned := range plan.Status.Tasks {
		says[planned.Name] = planned.Leftovers
	}
	for _, task := range c.Feature.OnDisable {
		found, err := task.Find(t.Context(), before.Clients())
		if err != nil {
			t.Errorf("%s: task %s over etcd: %v", name, task.Name, err)
		}
		if diff := cmp.Diff(found, says[task.Name], cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%s: the plan of task %s does not count what is stored (-stored +planned); does its finder ask for the version that is stored?\n%s", name, task.Name, diff)
		}
		if task.Waits {
			waitedFor = append(waitedFor, found...)
		} else {
			removed = append(removed, found...)
		}
	}
	return removed, waitedFor
}

// namedInClean is how many resources the message of condition Clean names before
// it counts the rest (lifecycle/transition), of those that are removed and of the others.
const namedInClean = 5

// counted compares condition Clean with what is stored.
func counted(t *testing.T, f *v1alpha1.Feature, groups ...[]v1alpha1.ResourceLeftovers) {
	t.Helper()
	clean := meta.FindStatusCondition(f.Status.Conditions, v1alpha1.ConditionClean)
	status, reason := metav1.ConditionTrue, v1alpha1.ReasonNothingLeft
	var says []string
	places := 0
	for _, stored := range groups {
		places += len(stored)
		for _, left := range stored[:min(len(stored), namedInClean)] {
			text := fmt.Sprintf(" %d %s ", left.Count, schema.GroupResource{Group: left.Group, Resource: left.Resource})
			if left.Field != "" {
				text += "have " + left.Field + " "
			}
			says = append(says, text+"("+left.Examples[0])
		}
		if n := len(stored) - namedInClean; n > 0 {
			says = append(says, fmt.Sprintf(" and %d more;", n))
		}
	}
	if places > 0 {
		status, reason = metav1.ConditionFalse, v1alpha1.ReasonLeftovers
	}
	if clean.Status != status || clean.Reason != reason {
		t.Errorf("%s: leftovers are stored in %d places and Clean is %s (%s): %s", f.Name, places, clean.Status, clean.Reason, clean.Message)
	}
	for _, text := range says {
		if !strings.Contains(" "+clean.Message, text) {
			t.Errorf("%s: Clean does not say %q but %q", f.Name, text, clean.Message)
		}
	}
}
