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

package versions

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/kubernetes-features/test/e2e_features/framework"
	"k8s.io/kubernetes-features/test/utils/localcluster"
)

// TestBinariesUnderLoad exchanges the binaries of kube-apiservers between minor versions, in
// both directions, while clients write, read and watch through all servers. Servers are killed
// (kill -9) instead of being ended, right after they were exchanged, and when they lead a
// transition. The short form has two servers, the whole one three.
func TestBinariesUnderLoad(t *testing.T) {
	t.Parallel()
	t.Run("unmodified 1.36.3, ours, unmodified 1.36.3, ours", func(t *testing.T) {
		t.Parallel()
		b := startPrevious(t, serversUnderLoad())
		b.fromUpstream(t)
	})
	t.Run("ours of 1.36, ours, ours of 1.36", func(t *testing.T) {
		t.Parallel()
		b := startBinaries(t, framework.PreviousFeatures(t, "kube-apiserver"), serversUnderLoad(), append(dynamicFlags(workload+"=true"), allAPIs)...)
		b.fromFeatures(t)
	})
}

func serversUnderLoad() int {
	if short {
		return 2
	}
	return 3
}

// fromUpstream moves from upstream's binary to ours, back, and straight to ours.
func (b *binaries) fromUpstream(t *testing.T) {
	b.use(t, "inuse.yaml")
	b.use(t, "workloads.yaml")
	b.old(t, common()...)
	b.keys(t, "with the gate off", workloadsKey, "inuse/old")
	stay := b.inUse(t)
	l := b.startLoad(t)
	b.killing = true

	b.ours(t, lower, common()...)
	b.settled(t, lower, workload)
	uids := b.uids(t)
	mark := b.history.mark()
	b.oursLed(t, upper, common()...)
	b.stages(t, mark, workload, []string{"Off@" + lower, "Upgrading@" + lower, "Off@" + upper})
	b.keys(t, "at "+upper, workloadsKey)
	b.keys(t, "at "+upper, podGroupsKey)

	b.oursLed(t, lower, common()...)
	b.old(t, common()...)
	if _, err := b.Features.FeaturesV1alpha1().Features(metav1.NamespaceSystem).List(t.Context(), metav1.ListOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("listing Features of %s: %v, want that there is no such API", framework.PreviousVersion, err)
	}
	b.same(t, "with "+framework.PreviousVersion+" again", stay)

	// Features that stayed decide which tasks run, also without the step of emulation.
	b.storeOlder(t, "again")
	b.ours(t, upper, common()...)
	b.settled(t, upper)
	b.keys(t, "at "+upper+" again", workloadsKey)
	b.finish(t, l, stay, uids, 5)
}

// oursLed replaces the servers by ours of a version, and kills those that lead the transition
// of Workloads. Meanwhile the feature is paused: a transition begins when the last of the
// old servers has ended, and would be over before its successor is ready.
func (b *binaries) oursLed(t *testing.T, version string, args ...string) {
	t.Helper()
	b.Request(workload, `{"paused":true}`)
	b.ours(t, version, args...)
	led := b.leading
	b.Request(workload, `{"paused":null}`)
	b.crash(t, []string{workload}, version)
	if b.leading == led {
		t.Errorf("no server was killed while it led the transition of %s to %s", workload, version)
	}
	b.settled(t, version)
}

// dynamicFlags are the flags of servers with Features: the value of one of them is set through the
// API, and goes with the cluster.
func dynamicFlags(gates ...string) []string {
	return slices.Concat(common(gates...), flags, []string{"--dynamic-features=" + scaleToZero})
}

// fromFeatures moves from a binary that has Features to ours, and back.
func (b *binaries) fromFeatures(t *testing.T) {
	b.use(t, "inuse.yaml")
	b.use(t, "workloads.yaml")
	b.settled(t, lower)
	b.Request(scaleToZero, `{"enabled":true}`)
	b.history.wait(t, scaleToZero+" is on", func(last map[string]v1alpha1.FeatureStatus) bool { return last[scaleToZero].State == v1alpha1.StateOn })
	framework.Eventually(t, "an autoscaler with a minimum of 0", func() error {
		_, err := b.Kube.AutoscalingV2().HorizontalPodAutoscalers("inuse").Create(t.Context(), framework.AutoscalerToZero("to-zero"), metav1.CreateOptions{})
		return err
	})
	b.old(t, dynamicFlags()...)
	b.settled(t, lower)
	b.keys(t, "with the gate off", workloadsKey)
	// A server that still has the gate on stores what OnDisable would have cleared.
	b.storeOlder(t, "old")
	stay, uids, mark := b.inUse(t), b.uids(t), b.history.mark()
	l := b.startLoad(t)
	b.killing = true

	b.ours(t, lower, dynamicFlags()...)
	b.settled(t, lower, workload)
	b.oursLed(t, upper, dynamicFlags()...)
	b.stages(t, mark, workload, []string{"Off@" + lower, "Upgrading@" + lower, "Off@" + upper})
	b.keys(t, "at "+upper, workloadsKey)

	b.oursLed(t, lower, dynamicFlags()...)
	b.old(t, dynamicFlags()...)
	b.settled(t, lower)
	for _, s := range b.history.since(mark, scaleToZero) {
		if s.State != v1alpha1.StateOn || s.Configured == nil || s.Configured.Source != v1alpha1.SourceAPI {
			t.Errorf("%s was set through the API, and is %s at %s, configured %+v", scaleToZero, s.State, s.Version, s.Configured)
		}
	}
	b.finish(t, l, stay, uids, 4)
}

// inUse is what is stored of objects that have nothing to do with versions.
func (b *binaries) inUse(t *testing.T) map[string][]byte {
	t.Helper()
	stay := b.stored(t, "/registry/")
	maps.DeleteFunc(stay, func(key string, _ []byte) bool {
		ofVersion := strings.HasPrefix(key, workloadsKey) || strings.HasPrefix(key, podGroupsKey)
		return ofVersion || !strings.Contains(key, "/inuse/") && !strings.HasSuffix(key, "/stays")
	})
	if len(stay) < 10 {
		t.Fatalf("only %d objects are in use", len(stay))
	}
	return stay
}

// settled waits until each Feature that a server knows is at rest in the form of a version and
// nothing is wrong with it, but that something is left over of some, and until exactly the
// servers that run have reported.
func (b *binaries) settled(t *testing.T, version string, leftovers ...string) {
	t.Helper()
	var wrong []string
	defer func() {
		if len(wrong) > 0 {
			t.Logf("at %s this is wrong:\n%s", version, strings.Join(wrong, "\n"))
		}
	}()
	b.history.wait(t, "Features are in order at "+version, func(last map[string]v1alpha1.FeatureStatus) bool {
		wrong = nil
		for name, status := range last {
			if what := disorder(&status, version, slices.Contains(leftovers, name)); what != "" {
				wrong = append(wrong, name+": "+what)
			}
		}
		slices.Sort(wrong)
		return len(wrong) == 0 && len(last) > 200
	})
	for _, name := range leftovers {
		if clean := meta.FindStatusCondition(b.history.last()[name].Conditions, v1alpha1.ConditionClean); clean == nil {
			t.Errorf("at %s %s has no condition Clean", version, name)
		}
	}
	b.reported(t, version)
}

// disorder returns what is wrong with a Feature at a version, "" when nothing is.
func disorder(s *v1alpha1.FeatureStatus, version string, leftover bool) string {
	condition := func(kind string) *metav1.Condition {
		if c := meta.FindStatusCondition(s.Conditions, kind); c != nil {
			return c
		}
		return &metav1.Condition{Type: kind, Status: metav1.ConditionUnknown}
	}
	describe := func(c *metav1.Condition) string {
		return fmt.Sprintf("%s is %s (%s): %s", c.Type, c.Status, c.Reason, c.Message)
	}
	if s.Transition != nil || len(s.Tasks) > 0 {
		return fmt.Sprintf("it is %s with %d tasks", s.State, len(s.Tasks))
	}
	if condition(v1alpha1.ConditionKnown).Status == metav1.ConditionFalse {
		// A gate that only the other version has.
		return ""
	}
	if s.State != v1alpha1.StateOn && s.State != v1alpha1.StateOff || s.Version != version || s.Configured == nil || s.Configured.Value != (s.State == v1alpha1.StateOn) {
		return fmt.Sprintf("it is %q at %s, configured %+v", s.State, s.Version, s.Configured)
	}
	if c := condition(v1alpha1.ConditionConsistent); c.Status != metav1.ConditionTrue {
		return describe(c)
	}
	if c := condition(v1alpha1.ConditionUsesMatch); c.Status == metav1.ConditionFalse {
		return describe(c)
	}
	if c := condition(v1alpha1.ConditionClean); c.Status == metav1.ConditionFalse && !leftover {
		return describe(c)
	}
	if c := condition(v1alpha1.ConditionProgressing); c.Reason == v1alpha1.ReasonBlocked {
		return describe(c)
	}
	return ""
}

// reported waits until there is one report of each server, with its binary and the version that
// it emulates, and no other.
func (b *binaries) reported(t *testing.T, version string) {
	t.Helper()
	binary := b.Version()
	want := map[string]string{}
	for id := range b.byID {
		want[localcluster.APIServer+"."+id] = binary + " at " + version
	}
	b.WaitForReports(fmt.Sprintf("as %v, and no others", want), func(reports []v1alpha1.FeatureReport) bool {
		is := map[string]string{}
		for _, r := range reports {
			is[r.Name] = r.Spec.BinaryVersion + " at " + r.Spec.EmulationVersion
			if len(r.Spec.Features) < 150 {
				return false
			}
		}
		return maps.Equal(want, is)
	})
}

// finish ends the load, and checks that nothing was lost in all moves, that transitions
// were in order, and that each exchange killed a server of either binary.
func (b *binaries) finish(t *testing.T, l *load, stay map[string][]byte, uids map[string]types.UID, exchanges int) {
	t.Helper()
	b.endLoad(t, l)
	b.same(t, "in the end", stay)
	b.sound(t)
	for name, uid := range b.uids(t) {
		if was, ok := uids[name]; ok && was != uid {
			t.Errorf("Feature %s was made again", name)
		}
		delete(uids, name)
	}
	if len(uids) > 0 {
		t.Errorf("these Features are gone: %q", slices.Sorted(maps.Keys(uids)))
	}
	for _, p := range b.Processes() {
		if lines, err := framework.Panics(p); err != nil || len(lines) > 0 {
			t.Errorf("%s: %v: %q", p.Name, err, lines)
		}
	}
	if kills := b.kills - b.leading; kills != 2*exchanges {
		t.Errorf("%d servers were killed in %d exchanges, want two in each", kills, exchanges)
	}
	fmt.Fprintf(t.Output(), "%d kills, %d of servers that led a transition\n", b.kills, b.leading)
}
