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
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/feature-lifecycle/client/clientset/versioned"
	"k8s.io/feature-lifecycle/lifecycle/transition"
	"k8s.io/utils/ptr"
)

var update = flag.Bool("update", false, "write the golden files in testdata again")

// testdata is found also by tests that run somewhere else.
var testdata = func() string {
	dir, err := filepath.Abs("testdata")
	if err != nil {
		panic(err)
	}
	return dir
}()

// golden compares what commands print, and their exit codes, with a file.
func golden(t *testing.T, file, got string) {
	t.Helper()
	path := filepath.Join(testdata, file)
	if *update {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("%v; go test ./pkg/kubectl/feature -update writes it", err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s, which go test ./pkg/kubectl/feature -update rewrites (-want +got):\n%s", path, diff)
	}
}

// session runs commands one after the other, in a cluster of its own, and writes
// them with what they printed, like a terminal.
func (c *cluster) session(commands ...string) string {
	c.t.Helper()
	var all strings.Builder
	for _, command := range commands {
		out, code := c.run(strings.Fields(command)...)
		fmt.Fprintf(&all, "$ kubectl feature %s\n%s[exit code %d]\n\n", command, out, code)
	}
	return all.String()
}

// onScreen runs a command with a terminal as its output.
func (c *cluster) onScreen(args ...string) (string, int) {
	var out bytes.Buffer
	b := c.base(&out)
	b.isTerminal = func() bool { return true }
	code := b.run(c.t.Context(), append(args, "--server=https://localhost"))
	return out.String(), code
}

// base has this cluster's clients.
func (c *cluster) base(out *bytes.Buffer) *base {
	b := newBase(genericiooptions.IOStreams{In: &bytes.Buffer{}, Out: out, ErrOut: out})
	b.connect = func(*rest.Config) (versioned.Interface, error) { return c.client, nil }
	b.connectCore = func(*rest.Config) (kubernetes.Interface, error) { return c.core, nil }
	return b
}

// add adds objects of all kinds.
func (c *cluster) add(objects ...runtime.Object) {
	c.t.Helper()
	for _, object := range objects {
		tracker := c.client.Tracker()
		switch object.(type) {
		case *corev1.Event, *corev1.Node, *coordinationv1.Lease:
			tracker = c.core.Tracker()
		}
		if err := tracker.Add(object); err != nil {
			c.t.Fatal(err)
		}
	}
}

func before(d time.Duration) metav1.Time { return metav1.NewTime(time.Now().Add(-d)) }

// condition sets one that has been so for an hour.
func condition(f *v1alpha1.Feature, kind string, status metav1.ConditionStatus, reason, message string) {
	meta.SetStatusCondition(&f.Status.Conditions, metav1.Condition{
		Type: kind, Status: status, Reason: reason, Message: message, LastTransitionTime: before(time.Hour), ObservedGeneration: f.Generation,
	})
}

// sample is a feature at rest, as a server shows it.
func sample(name string, stage v1alpha1.FeatureStage, on, byDefault bool) *v1alpha1.Feature {
	state, source := v1alpha1.StateOff, v1alpha1.SourceCommandLine
	if on {
		state = v1alpha1.StateOn
	}
	if on == byDefault {
		source = v1alpha1.SourceDefault
	}
	f := &v1alpha1.Feature{
		ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: name, Generation: 1, CreationTimestamp: before(48 * time.Hour)},
		Status: v1alpha1.FeatureStatus{
			Stage: stage, Default: ptr.To(byDefault), Control: v1alpha1.ControlLocal, Version: "1.36",
			State: state, StateSince: ptr.To(before(26 * time.Hour)),
			Configured: &v1alpha1.FeatureConfiguration{Value: on, Source: source},
			Uses:       []v1alpha1.FeatureUse{{Component: "kube-apiserver", Version: "v1.36.3", Enabled: ptr.To(on), Count: 3, Expected: 3, Examples: []string{"a", "b", "c"}}},
		},
	}
	condition(f, v1alpha1.ConditionKnown, metav1.ConditionTrue, v1alpha1.ReasonKnownToServers, "live servers know the gate")
	condition(f, v1alpha1.ConditionConsistent, metav1.ConditionTrue, v1alpha1.ReasonServersAgree, "all 3 live servers configure the same value")
	condition(f, v1alpha1.ConditionProgressing, metav1.ConditionFalse, v1alpha1.ReasonComplete, "state and configured value agree, nothing is left to do")
	condition(f, v1alpha1.ConditionUsesMatch, metav1.ConditionTrue, v1alpha1.ReasonAllUsersMatch, "all live users have the feature "+transition.OnOff(on))
	condition(f, v1alpha1.ConditionUpgradeSafe, metav1.ConditionUnknown, v1alpha1.ReasonNotExaminedForVersion, "use kubectl feature upgrade-check of 1.37")
	condition(f, v1alpha1.ConditionDowngradeSafe, metav1.ConditionTrue, v1alpha1.ReasonSafe, "1.35 can read and change what is stored")
	return f
}

// turningOff is a dynamic feature in the middle of a transition.
func turningOff(name string) *v1alpha1.Feature {
	f := sample(name, v1alpha1.StageBeta, false, true)
	f.Spec.Enabled = ptr.To(false)
	f.Annotations = map[string]string{v1alpha1.AnnotationRequestedBy: "alice"}
	status := &f.Status
	status.Control, status.State, status.StateSince = v1alpha1.ControlDynamic, v1alpha1.StateTurningOff, ptr.To(before(5*time.Minute))
	status.Configured = &v1alpha1.FeatureConfiguration{Value: false, Source: v1alpha1.SourceAPI, Previous: ptr.To(true)}
	status.StoredVersions = []string{"1.35"}
	status.Transition = &v1alpha1.FeatureTransition{ID: "9b2f", StartTime: metav1.NewMicroTime(time.Now().Add(-5 * time.Minute)), Reason: v1alpha1.TransitionConfiguration}
	status.Tasks = []v1alpha1.FeatureTask{
		{Name: "ClearField/statefulsets.apps/spec.updateStrategy.rollingUpdate.maxUnavailable", Message: "clearing", Done: 1200, Total: 4000, Attempts: 2, LastAttemptTime: ptr.To(metav1.NewMicroTime(time.Now().Add(-90 * time.Second)))},
		{Name: "WaitForNone/pods", Message: ""},
	}
	status.Uses = append(status.Uses,
		v1alpha1.FeatureUse{Component: "kube-controller-manager", Version: "v1.36.3", Enabled: ptr.To(false), Count: 2, Stale: 1, Examples: []string{"m1", "m2", "m3"}},
		v1alpha1.FeatureUse{Component: "kubelet", Version: "v1.36.3", Enabled: ptr.To(false), Count: 5, Expected: 5, Examples: []string{"n1", "n2", "n3", "n4", "n5"}},
		v1alpha1.FeatureUse{Component: "kubelet", Version: "v1.35.0", Enabled: ptr.To(true), Count: 1, Expected: 1, Examples: []string{"n6"}},
		v1alpha1.FeatureUse{Component: "kubelet", Version: "v1.33.1", Expected: 2, Examples: []string{"n7", "n8"}},
	)
	condition(f, v1alpha1.ConditionProgressing, metav1.ConditionTrue, v1alpha1.ReasonRunningTask, "ClearField/statefulsets.apps/spec.updateStrategy.rollingUpdate.maxUnavailable: clearing")
	condition(f, v1alpha1.ConditionUsesMatch, metav1.ConditionFalse, v1alpha1.ReasonUsersDiffer, "1 live user has the feature on: kubelet/n6; they follow by themselves")
	condition(f, v1alpha1.ConditionDowngradeSafe, metav1.ConditionFalse, v1alpha1.ReasonInTransition, "the feature is being turned off; wait until it is Off")
	return f
}

// danglingFeature is off and left something behind.
func danglingFeature(name string) *v1alpha1.Feature {
	f := sample(name, v1alpha1.StageAlpha, false, false)
	condition(f, v1alpha1.ConditionClean, metav1.ConditionFalse, v1alpha1.ReasonLeftovers, "12 horizontalpodautoscalers.autoscaling: shop/web, shop/api, …; create features/cleanup to remove them")
	return f
}

// halted is a canary that was taken back.
func halted(name string) *v1alpha1.Feature {
	f := sample(name, v1alpha1.StageBeta, false, false)
	limits := v1alpha1.FeatureRollout{Percent: ptr.To[int32](25), Components: []string{"kube-scheduler", "kubelet"}, Attempt: 1}
	f.Spec.Enabled, f.Spec.Rollout = ptr.To(true), &limits
	status := &f.Status
	status.Control, status.State = v1alpha1.ControlDynamic, v1alpha1.StateTurningOn
	status.StateSince = ptr.To(before(20 * time.Minute))
	status.Configured = &v1alpha1.FeatureConfiguration{Value: true, Source: v1alpha1.SourceAPI, Previous: ptr.To(false)}
	status.Transition = &v1alpha1.FeatureTransition{ID: "77aa", StartTime: metav1.NewMicroTime(time.Now().Add(-20 * time.Minute)), Reason: v1alpha1.TransitionConfiguration}
	status.Tasks = []v1alpha1.FeatureTask{{Name: v1alpha1.TaskWaitForUses, Message: "held"}}
	status.Uses = append(status.Uses, v1alpha1.FeatureUse{Component: "kubelet", Version: "v1.36.3", Enabled: ptr.To(true), Count: 1, Stale: 2, Expected: 3, Examples: []string{"n1", "n2", "n3"}})
	status.Rollout = &v1alpha1.FeatureRolloutStatus{
		Value: true, Observed: limits, StartTime: metav1.NewMicroTime(time.Now().Add(-20 * time.Minute)), Halted: true,
		HaltTime: ptr.To(before(10 * time.Minute)), Message: "2 of 3 instances that took the value failed, 0 of 9 others", FailedInstances: []string{"kubelet/n2", "kubelet/n3"},
	}
	condition(f, v1alpha1.ConditionProgressing, metav1.ConditionFalse, v1alpha1.ReasonRolloutHalted, "the rollout was halted: 2 of 3 instances that took the value failed; change spec.rollout to resume it")
	return f
}

// newSampleCluster returns a cluster with features of every kind.
func newSampleCluster(t *testing.T) *cluster {
	t.Helper()
	disagreeing := sample("PodDeletionCost", v1alpha1.StageBeta, true, true)
	condition(disagreeing, v1alpha1.ConditionConsistent, metav1.ConditionFalse, v1alpha1.ReasonServersDisagree, "on in a and b, off in c; restart them with the same --feature-gates")
	locked := sample("InPlacePodVerticalScaling", v1alpha1.StageGA, true, true)
	locked.Status.LockedToDefault = true
	paused := sample("GenericWorkload", v1alpha1.StageAlpha, true, false)
	paused.Spec.Paused = true
	paused.Status.StateSince = ptr.To(before(3 * time.Hour))
	condition(paused, v1alpha1.ConditionProgressing, metav1.ConditionFalse, v1alpha1.ReasonPaused, "spec.paused holds the feature; set it to false to let it continue")
	operators := sample("Gadgets", v1alpha1.StageAlpha, false, false)
	operators.Namespace = "widgets"
	return newCluster(t, turningOff("MaxUnavailableStatefulSet"), danglingFeature("HPAScaleToZero"), halted("SchedulerAsyncPreemption"), disagreeing, locked, paused, operators)
}

// report returns the report of one process about a gate.
func report(component, instance, version, feature string, change ...func(*v1alpha1.ReportedFeature)) *v1alpha1.FeatureReport {
	found := v1alpha1.ReportedFeature{Name: feature, Queried: true}
	for _, c := range change {
		c(&found)
	}
	return &v1alpha1.FeatureReport{
		ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: component + "." + instance},
		Spec:       v1alpha1.FeatureReportSpec{Component: component, Instance: instance, BinaryVersion: version, Features: []v1alpha1.ReportedFeature{{Name: "Another", Enabled: true, Queried: true}, found}},
	}
}

// event returns one of a feature.
func event(name, feature, kind, reason, message string, age time.Duration, times int32) *corev1.Event {
	return &corev1.Event{
		ObjectMeta:     metav1.ObjectMeta{Namespace: "kube-system", Name: name},
		InvolvedObject: corev1.ObjectReference{Kind: "Feature", Namespace: "kube-system", Name: feature, APIVersion: v1alpha1.SchemeGroupVersion.String()},
		Type:           kind, Reason: reason, Message: message, LastTimestamp: before(age), Count: times,
	}
}
