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
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	corefake "k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/rest"
	clienttesting "k8s.io/client-go/testing"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/feature-lifecycle/client/clientset/versioned"
	"k8s.io/feature-lifecycle/client/clientset/versioned/fake"
	"k8s.io/utils/ptr"
)

var featuresResource = v1alpha1.SchemeGroupVersion.WithResource("features")

// cluster is an API with Features. Only the test answers requests there.
type cluster struct {
	t      *testing.T
	client *fake.Clientset
	// core has the events.
	core *corefake.Clientset
	// patches has all writes, as name: patch.
	patches []string
}

func newCluster(t *testing.T, features ...*v1alpha1.Feature) *cluster {
	t.Helper()
	c := &cluster{t: t, client: fake.NewClientset(), core: corefake.NewSimpleClientset()}
	for _, f := range features {
		if err := c.client.Tracker().Add(f); err != nil {
			t.Fatal(err)
		}
	}
	c.client.PrependReactor("patch", "features", c.patch)
	return c
}

// patch counts generations and judges dry runs, as a server does.
func (c *cluster) patch(action clienttesting.Action) (bool, runtime.Object, error) {
	patch := action.(clienttesting.PatchActionImpl)
	before := c.get(patch.GetName())
	_, object, err := clienttesting.ObjectReaction(c.client.Tracker())(action)
	if err != nil {
		return true, nil, err
	}
	after := object.(*v1alpha1.Feature).DeepCopy()
	if !equality.Semantic.DeepEqual(before.Spec, after.Spec) {
		after.Generation = before.Generation + 1
	}
	stored, how := after, ""
	if len(patch.PatchOptions.DryRun) > 0 {
		stored, how = before, " dry run"
	}
	c.patches = append(c.patches, fmt.Sprintf("%s by %s%s: %s", patch.GetName(), patch.PatchOptions.FieldManager, how, patch.GetPatch()))
	return true, after, c.client.Tracker().Update(featuresResource, stored, stored.Namespace)
}

func (c *cluster) get(name string) *v1alpha1.Feature {
	c.t.Helper()
	// Not through the client, whose lock reactors hold.
	f, err := c.client.Tracker().Get(featuresResource, "kube-system", name)
	if err != nil {
		c.t.Fatal(err)
	}
	return f.(*v1alpha1.Feature).DeepCopy()
}

// answer writes a status, with the reason in the condition Progressing. All
// watchers have observed it when it returns.
func (c *cluster) answer(name string, state v1alpha1.FeatureState, reason, message string) {
	c.t.Helper()
	f := c.get(name)
	progressing(f, reason, message)
	f.Status.State = state
	if f.Spec.Enabled != nil {
		f.Status.Configured = &v1alpha1.FeatureConfiguration{Value: *f.Spec.Enabled, Source: v1alpha1.SourceAPI}
	}
	f.Status.Transition, f.Status.Tasks = nil, nil
	if state != v1alpha1.StateOn && state != v1alpha1.StateOff {
		f.Status.Transition = &v1alpha1.FeatureTransition{ID: "1"}
		f.Status.Tasks = []v1alpha1.FeatureTask{{Name: v1alpha1.TaskWaitForUses, Message: message}}
	}
	c.store(f)
}

func (c *cluster) store(f *v1alpha1.Feature) {
	c.t.Helper()
	if err := c.client.Tracker().Update(featuresResource, f, f.Namespace); err != nil {
		c.t.Fatal(err)
	}
	settle()
}

// settling is the fake time that a server may take to respond before a command waits.
const settling = 200 * time.Millisecond

// settle lets the command get as far as it can.
func settle() {
	<-time.After(settling)
	synctest.Wait()
}

func progressing(f *v1alpha1.Feature, reason, message string) {
	meta.SetStatusCondition(&f.Status.Conditions, metav1.Condition{
		Type: v1alpha1.ConditionProgressing, Status: metav1.ConditionTrue, Reason: reason, Message: message, ObservedGeneration: f.Generation,
	})
}

// dynamic is a feature at rest that may be set through the API.
func dynamic(name string, state v1alpha1.FeatureState, change ...func(*v1alpha1.Feature)) *v1alpha1.Feature {
	f := &v1alpha1.Feature{
		ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: name, Generation: 1},
		Status: v1alpha1.FeatureStatus{
			State: state, Control: v1alpha1.ControlDynamic, Default: ptr.To(false),
			Configured: &v1alpha1.FeatureConfiguration{Value: state == v1alpha1.StateOn, Source: v1alpha1.SourceDefault},
		},
	}
	progressing(f, v1alpha1.ReasonComplete, "state and configured value agree, nothing is left to do")
	for _, c := range change {
		c(f)
	}
	return f
}

// running is a command that was started.
type running struct {
	out  bytes.Buffer
	code int
	done chan struct{}
}

// start starts the command; when it returns, the command waits for something.
func (c *cluster) start(args ...string) *running {
	r := &running{done: make(chan struct{})}
	b := c.base(&r.out)
	go func() {
		defer close(r.done)
		r.code = b.run(c.t.Context(), append(args, "--server=https://localhost"))
	}()
	settle()
	return r
}

// run runs a command to its end.
func (c *cluster) run(args ...string) (string, int) {
	r := c.start(args...)
	<-r.done
	return r.out.String(), r.code
}

// ended is false while the command waits.
func (r *running) ended() bool {
	select {
	case <-r.done:
		return true
	default:
		return false
	}
}

// want compares what a command that has ended wrote, and its exit code.
func (r *running) want(t *testing.T, code int, lines ...string) {
	t.Helper()
	if !r.ended() {
		t.Fatalf("the command has not ended; it wrote:\n%s", r.out.String())
	}
	if diff := cmp.Diff(strings.Join(lines, "\n")+"\n", r.out.String()); diff != "" {
		t.Errorf("unexpected output (-want +got):\n%s", diff)
	}
	if r.code != code {
		t.Errorf("exit code %d, want %d", r.code, code)
	}
}

// inBubble runs a test with fake time, away from the user's kubeconfig.
func inBubble(t *testing.T, test func(*testing.T)) {
	t.Helper()
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "none"))
	synctest.Test(t, test)
}

func TestEnableOutput(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		c := newCluster(t, dynamic("A", v1alpha1.StateOff), dynamic("B", v1alpha1.StateOff))
		r := c.start("enable", "A")
		c.answer("A", v1alpha1.StateTurningOn, v1alpha1.ReasonWaitingForUses, "")
		if r.ended() {
			t.Errorf("it ended when the transition began, and before it is known who is waited for:\n%s", r.out.String())
		}
		c.answer("B", v1alpha1.StateTurningOn, v1alpha1.ReasonWaitingForUses, "another feature")
		c.answer("A", v1alpha1.StateTurningOn, v1alpha1.ReasonWaitingForUses, "waiting for 3 users that have the feature off: a, b, c")
		r.want(t, ExitDone, "feature.features.k8s.io/A enabled: TurningOn, waiting for 3 users that have the feature off: a, b, c")

		// A second request changes nothing.
		out, code := c.run("enable", "feature.features.k8s.io/A", "A")
		if want := "feature.features.k8s.io/A enabled (no change): TurningOn, waiting for 3 users that have the feature off: a, b, c\n"; out != want || code != ExitDone {
			t.Errorf("exit code %d: %s", code, out)
		}
		want := []string{`A by kubectl-feature: {"spec":{"enabled":true}}`, `A by kubectl-feature: {"spec":{"enabled":true}}`}
		if diff := cmp.Diff(want, c.patches); diff != "" {
			t.Errorf("patches (-want +got):\n%s", diff)
		}
	})
}

func TestServersThatDoNotAnswer(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		c := newCluster(t, dynamic("A", v1alpha1.StateOn))
		begun := time.Now()
		r := c.start("disable", "A")
		<-r.done
		if took := time.Since(begun); took != answerTimeout {
			t.Errorf("it took %s", took)
		}
		r.want(t, ExitDone, "feature.features.k8s.io/A disabled: the request is stored; no server has processed it yet (kubectl feature describe A)")
	})
}

func TestWaitFollowsToTheEnd(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		// A condition from before the request does not count.
		c := newCluster(t, dynamic("A", v1alpha1.StateTurningOff, func(f *v1alpha1.Feature) {
			f.Status.Configured.Value = false
			progressing(f, v1alpha1.ReasonBlocked, "WaitForNone: default/sleepy")
		}), dynamic("B", v1alpha1.StateOff))
		r := c.start("enable", "A", "B", "--wait")
		c.answer("A", v1alpha1.StateTurningOn, v1alpha1.ReasonWaitingForUses, "waiting for 2 users")
		c.answer("B", v1alpha1.StateOn, v1alpha1.ReasonComplete, "")
		c.answer("A", v1alpha1.StateTurningOn, v1alpha1.ReasonWaitingForUses, "waiting for 2 users")
		c.answer("A", v1alpha1.StateTurningOn, v1alpha1.ReasonWaitingForAgreement, "a server restarts")
		if r.ended() {
			t.Errorf("it ended:\n%s", r.out.String())
		}
		c.answer("A", v1alpha1.StateOn, v1alpha1.ReasonComplete, "")
		r.want(t, ExitDone,
			"feature.features.k8s.io/A enabled",
			"feature.features.k8s.io/B enabled",
			"feature.features.k8s.io/A: TurningOn, waiting for 2 users",
			"feature.features.k8s.io/A: TurningOn, a server restarts",
			"feature.features.k8s.io/A: On",
			"feature.features.k8s.io/B: On")
	})
}

func TestWaitEndsWhenHeld(t *testing.T) {
	for _, reason := range []string{v1alpha1.ReasonBlocked, v1alpha1.ReasonRolloutHalted, v1alpha1.ReasonPaused} {
		t.Run(reason, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				c := newCluster(t, dynamic("A", v1alpha1.StateOn), dynamic("B", v1alpha1.StateOn))
				r := c.start("disable", "A", "B", "--wait")
				c.answer("A", v1alpha1.StateTurningOff, reason, "what to do")
				c.answer("B", v1alpha1.StateOff, v1alpha1.ReasonComplete, "")
				r.want(t, ExitHeld,
					"feature.features.k8s.io/A disabled",
					"feature.features.k8s.io/B disabled",
					"feature.features.k8s.io/A: TurningOff, what to do",
					"feature.features.k8s.io/A: it needs user action to continue; the request is stored",
					"feature.features.k8s.io/B: Off")
			})
		})
	}
}

func TestWaitTimesOut(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		c := newCluster(t, dynamic("A", v1alpha1.StateOff))
		begun := time.Now()
		r := c.start("enable", "A", "--wait", "--timeout=10m")
		c.answer("A", v1alpha1.StateTurningOn, v1alpha1.ReasonWaitingForUses, "waiting for n1")
		<-r.done
		if took := time.Since(begun); took != 10*time.Minute {
			t.Errorf("it took %s", took)
		}
		r.want(t, ExitTimedOut,
			"feature.features.k8s.io/A enabled",
			"feature.features.k8s.io/A: TurningOn, waiting for n1",
			"feature.features.k8s.io/A: timed out after 10m0s: TurningOn, waiting for n1; the request is stored, and continues")
	})
}

func TestFeatureVanishesMeanwhile(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		c := newCluster(t, dynamic("A", v1alpha1.StateOff))
		r := c.start("enable", "A", "--wait", "--timeout=0")
		if err := c.client.Tracker().Delete(featuresResource, "kube-system", "A"); err != nil {
			t.Fatal(err)
		}
		settle()
		r.want(t, ExitFailed,
			"feature.features.k8s.io/A enabled",
			"error: feature A in kube-system was enabled, and is not followed any more: it was deleted; kube-apiserver recreates it, without a request")
	})
}

func TestReset(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		c := newCluster(t, dynamic("A", v1alpha1.StateOn, func(f *v1alpha1.Feature) {
			f.Spec = v1alpha1.FeatureSpec{Enabled: ptr.To(true), Rollout: &v1alpha1.FeatureRollout{Percent: ptr.To[int32](50)}}
			f.Status.Control = v1alpha1.ControlLocal
		}))
		r := c.start("reset", "A", "--wait")
		// While servers do not agree it is not known what their own value is.
		c.answer("A", v1alpha1.StateOn, v1alpha1.ReasonWaitingForAgreement, "on in a, off in b")
		if r.ended() {
			t.Errorf("it ended:\n%s", r.out.String())
		}
		f := c.get("A")
		f.Status.Configured = &v1alpha1.FeatureConfiguration{Value: false, Source: v1alpha1.SourceDefault}
		c.store(f)
		c.answer("A", v1alpha1.StateOff, v1alpha1.ReasonComplete, "")
		r.want(t, ExitDone, "feature.features.k8s.io/A reset", "feature.features.k8s.io/A: On, on in a, off in b", "feature.features.k8s.io/A: Off")
		if diff := cmp.Diff([]string{`A by kubectl-feature: {"spec":{"enabled":null,"rollout":null}}`}, c.patches); diff != "" {
			t.Errorf("patches (-want +got):\n%s", diff)
		}
		if f := c.get("A"); f.Spec.Enabled != nil || f.Spec.Rollout != nil {
			t.Errorf("spec %+v", f.Spec)
		}
	})
}

// TestRequests covers writes of requests, and the remarks about them.
func TestRequests(t *testing.T) {
	limited := func(f *v1alpha1.Feature) {
		f.Spec.Rollout = &v1alpha1.FeatureRollout{Percent: ptr.To[int32](10), Components: []string{"kubelet"}, Attempt: 3}
	}
	moment, passed := metav1.NewTime(time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)), metav1.NewTime(time.Date(1999, 1, 1, 0, 0, 0, 0, time.UTC))
	for name, tc := range map[string]struct {
		args    []string
		feature *v1alpha1.Feature
		patch   string
		says    string
		rollout *v1alpha1.FeatureRollout
	}{
		"a share": {
			[]string{"enable", "A", "--percent=25"}, dynamic("A", v1alpha1.StateOff),
			`A by kubectl-feature: {"spec":{"enabled":true,"rollout":{"at":null,"components":null,"percent":25}}}`, "",
			&v1alpha1.FeatureRollout{Percent: ptr.To[int32](25)},
		},
		"no instance": {
			[]string{"enable", "A", "--percent=0"}, dynamic("A", v1alpha1.StateOff),
			`A by kubectl-feature: {"spec":{"enabled":true,"rollout":{"at":null,"components":null,"percent":0}}}`, "",
			&v1alpha1.FeatureRollout{Percent: ptr.To[int32](0)},
		},
		"components instead of a share": {
			[]string{"disable", "A", "--components=kube-scheduler,kubelet"}, dynamic("A", v1alpha1.StateOn, limited),
			`A by kubectl-feature: {"spec":{"enabled":false,"rollout":{"at":null,"components":["kube-scheduler","kubelet"],"percent":null}}}`, "",
			&v1alpha1.FeatureRollout{Components: []string{"kube-scheduler", "kubelet"}, Attempt: 3},
		},
		"all together": {
			[]string{"enable", "A", "--at=2030-01-01T01:00:00+01:00"}, dynamic("A", v1alpha1.StateOff, limited),
			`A by kubectl-feature: {"spec":{"enabled":true,"rollout":{"at":"2030-01-01T00:00:00Z","components":null,"percent":null}}}`, "",
			&v1alpha1.FeatureRollout{At: &moment, Attempt: 3},
		},
		"a rollout whose moment has passed": {
			[]string{"enable", "A"}, dynamic("A", v1alpha1.StateOff, func(f *v1alpha1.Feature) { f.Spec.Rollout = &v1alpha1.FeatureRollout{At: &passed} }),
			`A by kubectl-feature: {"spec":{"enabled":true}}`, "",
			&v1alpha1.FeatureRollout{At: &passed},
		},
		"a rollout whose moment is to come": {
			[]string{"enable", "A"}, dynamic("A", v1alpha1.StateOff, func(f *v1alpha1.Feature) { f.Spec.Rollout = &v1alpha1.FeatureRollout{At: &moment} }),
			`A by kubectl-feature: {"spec":{"enabled":true}}`,
			"spec.rollout is left as it is and gives the value to all instances from 2030-01-01T00:00:00Z on; --percent=100 gives it to all",
			&v1alpha1.FeatureRollout{At: &moment},
		},
		"a rollout that is there": {
			[]string{"enable", "A"}, dynamic("A", v1alpha1.StateOff, limited),
			`A by kubectl-feature: {"spec":{"enabled":true}}`,
			"spec.rollout is left as it is and gives the value to 10 percent of the instances of the components kubelet; --percent=100 gives it to all",
			&v1alpha1.FeatureRollout{Percent: ptr.To[int32](10), Components: []string{"kubelet"}, Attempt: 3},
		},
		"a feature that is paused": {
			[]string{"enable", "A"}, dynamic("A", v1alpha1.StateOff, func(f *v1alpha1.Feature) { f.Spec.Paused = true }),
			`A by kubectl-feature: {"spec":{"enabled":true}}`,
			`spec.paused holds the feature: the request is stored, and begins when it is resumed (kubectl feature resume A)`, nil,
		},
		"a dry run": {
			[]string{"enable", "A", "--dry-run=server"}, dynamic("A", v1alpha1.StateOff),
			`A by kubectl-feature dry run: {"spec":{"enabled":true}}`, "feature.features.k8s.io/A enabled (server dry run)\n", nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				c := newCluster(t, tc.feature)
				out, code := c.run(tc.args...)
				if code != ExitDone || !strings.Contains(out, tc.says) {
					t.Errorf("exit code %d, and %q does not say %q", code, out, tc.says)
				}
				if diff := cmp.Diff([]string{tc.patch}, c.patches); diff != "" {
					t.Errorf("patches (-want +got):\n%s", diff)
				}
				if diff := cmp.Diff(tc.rollout, c.get("A").Spec.Rollout); diff != "" {
					t.Errorf("spec.rollout (-want +got):\n%s", diff)
				}
				if f := c.get("A"); (f.Spec.Enabled == nil) != (name == "a dry run") {
					t.Errorf("spec.enabled %v", f.Spec.Enabled)
				}
			})
		})
	}
}

func TestRefusals(t *testing.T) {
	used := []v1alpha1.FeatureUse{{Component: "kube-apiserver", Enabled: ptr.To(false)}, {Component: "kubelet"}, {Component: "kube-scheduler", Version: "a", Enabled: ptr.To(false)}, {Component: "kube-scheduler", Version: "b", Enabled: ptr.To(false)}}
	for name, tc := range map[string]struct {
		change func(*v1alpha1.Feature)
		args   []string
		says   string
	}{
		"a local feature": {
			func(f *v1alpha1.Feature) { f.Status.Control, f.Status.Uses = v1alpha1.ControlLocal, used }, []string{"enable", "A"},
			"feature A is Local, not Dynamic: each process has the value of its own command line; name it in --dynamic-features of all kube-apiservers, if its author permits that, or set --feature-gates=A=true on the components that use it (kube-apiserver, kube-scheduler)",
		},
		"a local feature without a status": {
			func(f *v1alpha1.Feature) { f.Status.Control = "" }, []string{"disable", "A"},
			"feature A is Local, not Dynamic: each process has the value of its own command line; name it in --dynamic-features of all kube-apiservers, if its author permits that, or set --feature-gates=A=false on the components that use it",
		},
		"a central feature": {
			func(f *v1alpha1.Feature) { f.Status.Control = v1alpha1.ControlCentral }, []string{"enable", "A"},
			"feature A is Central, not Dynamic: all take the value that all kube-apiservers have when they start; set --feature-gates=A=true on all kube-apiservers and restart the others, or name it in --dynamic-features of all kube-apiservers, if its author permits that",
		},
		"an operator's": {
			func(f *v1alpha1.Feature) { f.Namespace, f.Status.Control = "widgets", v1alpha1.ControlLocal }, []string{"enable", "A", "-n", "widgets"},
			"feature A is Local, not Dynamic: each process has the value of its own command line; name it in --dynamic-features of all replicas of its operator, if its author permits that, or set --feature-gates=A=true on the components that use it",
		},
		"servers that disagree": {
			func(f *v1alpha1.Feature) {
				f.Status.Control = v1alpha1.ControlLocal
				meta.SetStatusCondition(&f.Status.Conditions, metav1.Condition{Type: v1alpha1.ConditionConsistent, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonServersDisagree, Message: "Dynamic in a, Local in b"})
			}, []string{"enable", "A"},
			"feature A is not Dynamic as long as its servers disagree: Dynamic in a, Local in b",
		},
		"a locked feature": {
			func(f *v1alpha1.Feature) { f.Status.LockedToDefault, f.Status.Default = true, ptr.To(true) }, []string{"disable", "A"},
			"feature A is locked: it is always on and cannot be set",
		},
		"an unknown gate": {
			func(f *v1alpha1.Feature) {
				meta.SetStatusCondition(&f.Status.Conditions, metav1.Condition{Type: v1alpha1.ConditionKnown, Status: metav1.ConditionFalse, Message: "no live process knows the gate"})
			}, []string{"enable", "A"},
			"feature A: no live process knows the gate",
		},
		"no state yet": {
			func(f *v1alpha1.Feature) { f.Status = v1alpha1.FeatureStatus{} }, []string{"enable", "A"},
			"feature A has no state yet: whether it may be set through the API is known once all kube-apiservers have reported; try again then",
		},
		"a name that is near": {nil, []string{"enable", "hpascaletozer"}, "there is no feature hpascaletozer in kube-system; did you mean HPAScaleToZero?"},
		"a name that is not": {nil, []string{"enable", "Widgets"},
			"there is no feature Widgets in kube-system; kubectl feature list -n kube-system lists all; the features of operators are in their own namespaces (--namespace)"},
		"no name":               {nil, []string{"enable"}, "kubectl feature enable needs the NAME of a feature; kubectl feature list shows all"},
		"a percentage too high": {nil, []string{"enable", "A", "--percent=101"}, "--percent=101 is not between 0 and 100"},
		"a moment in words":     {nil, []string{"enable", "A", "--at=noon"}, `--at="noon" is neither a time in RFC 3339, for example 2026-11-30T12:00:00Z, nor a duration such as 5m`},
		"a moment that passed":  {nil, []string{"disable", "A", "--at=1999-12-31T23:59:59Z"}, "--at=1999-12-31T23:59:59Z has passed; leave it out for all instances to take the value now"},
		"a moment before now":   {nil, []string{"enable", "A", "--at=-5m"}, "--at=-5m has passed; leave it out for all instances to take the value now"},
		"a moment for some":     {nil, []string{"enable", "A", "--at=5m", "--components=kubelet"}, "--at is for all instances: until then those have the value that have it now; leave out --percent and --components, or begin a canary with them and give it the moment later (kubectl feature rollout NAME --at)"},
		"a wait that is short":  {nil, []string{"enable", "A", "--at=2999-01-01T00:00:00Z", "--wait"}, "--timeout=5m0s ends before 2999-01-01T00:00:00Z; make it longer, or leave out --wait"},
		"an empty component":    {nil, []string{"enable", "A", "--components=a,"}, "--components has an empty name; write it like kube-scheduler,kube-controller-manager"},
		"another dry run":       {nil, []string{"enable", "A", "--dry-run=client"}, "--dry-run=client is neither none nor server; use --dry-run=server, which has the server judge and stores nothing"},
		"a dry run that waits":  {nil, []string{"enable", "A", "--dry-run=server", "--wait"}, "--wait waits for nothing with --dry-run=server, which stores nothing; leave one of them out"},
		"a time for nothing":    {nil, []string{"enable", "A", "--timeout=1m"}, "--timeout is how long --wait waits; add --wait"},
		"time that runs back":   {nil, []string{"enable", "A", "--wait", "--timeout=-1m"}, "--timeout=-1m0s is negative; 0 is without limit"},
		"a reset in parts":      {nil, []string{"reset", "A", "--percent=1"}, "unknown flag: --percent; kubectl feature reset --help lists the flags"},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				feature := dynamic("A", v1alpha1.StateOff)
				if tc.change != nil {
					tc.change(feature)
				}
				c := newCluster(t, feature, dynamic("HPAScaleToZero", v1alpha1.StateOff))
				args := tc.args
				if feature.Namespace == "kube-system" && len(args) == 2 {
					args = append(args, "HPAScaleToZero") // which could be changed
				}
				out, code := c.run(args...)
				if diff := cmp.Diff("error: "+tc.says+"\n", out); diff != "" || code != ExitFailed {
					t.Errorf("exit code %d (-want +got):\n%s", code, diff)
				}
				if len(c.patches) > 0 {
					t.Errorf("it wrote %s", c.patches)
				}
			})
		})
	}
}

// TestOtherFeaturesFollowedAfterRefusal checks that the others are still followed.
func TestOtherFeaturesFollowedAfterRefusal(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		c := newCluster(t, dynamic("A", v1alpha1.StateOff), dynamic("B", v1alpha1.StateOff))
		c.client.PrependReactor("patch", "features", func(action clienttesting.Action) (bool, runtime.Object, error) {
			refused := action.(clienttesting.PatchAction).GetName() == "A"
			return refused, nil, apierrors.NewForbidden(schema.GroupResource{Group: v1alpha1.GroupName, Resource: "features"}, "A", fmt.Errorf("because"))
		})
		r := c.start("enable", "A", "B", "--wait")
		c.answer("B", v1alpha1.StateOn, v1alpha1.ReasonComplete, "")
		r.want(t, ExitFailed,
			"feature.features.k8s.io/B enabled",
			"feature.features.k8s.io/B: On",
			`error: feature A in kube-system could not be enabled: features.features.k8s.io "A" is forbidden: because; an administrator can permit it; kubectl auth can-i --list shows your permissions`)
	})
}

// TestServerWithoutTheAPI covers all commands but upgrade-check, which examines such a server,
// and those that show what is observed of its components.
func TestServerWithoutTheAPI(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		c := newCluster(t)
		c.client.PrependReactor("*", "*", func(clienttesting.Action) (bool, runtime.Object, error) {
			return true, nil, apierrors.NewGenericServerResponse(http.StatusNotFound, "get", schema.GroupResource{Resource: "features"}, "", "404 page not found", 0, true)
		})
		for _, command := range []string{
			"enable A", "plan A --enable", "rollout A", "rollout A --percent=5", "pause A", "resume A", "wait A --for=state=On", "clean A",
		} {
			out, code := c.run(strings.Fields(command)...)
			if want := "error: the server has no API features.k8s.io/v1alpha1: its kube-apiserver does not have the gate FeatureLifecycle, or has it off; start it with --feature-gates=FeatureLifecycle=true\n"; out != want || code != ExitFailed {
				t.Errorf("%s: exit code %d: %s", command, code, out)
			}
		}
	})
}

func TestNames(t *testing.T) {
	all := []string{"HPAScaleToZero", "HPAConfigurableTolerance", "MaxUnavailableStatefulSet", "StatefulSetA", "StatefulSetB", "StatefulSetC", "A", "TaintTolerationComparisonOperators"}
	for written, want := range map[string][]string{
		"HPAScaleToZero": {"HPAScaleToZero"},
		"HPAScaletoZeor": {"HPAScaleToZero"},
		"hpa":            {"HPAScaleToZero", "HPAConfigurableTolerance"},
		"statefulset":    {"StatefulSetA", "StatefulSetB", "StatefulSetC"},
		"Windows":        nil,
		"unavailable":    {"MaxUnavailableStatefulSet"},
		"Nope":           nil,
	} {
		if diff := cmp.Diff(want, nearest(written, all)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", written, diff)
		}
	}
	for _, tc := range []struct {
		a, b string
		want int
	}{{"", "", 0}, {"", "ab", 2}, {"kitten", "sitting", 3}, {"sitting", "kitten", 3}, {"same", "same", 0}} {
		if got := editDistance(tc.a, tc.b); got != tc.want {
			t.Errorf("from %q to %q: %d, want %d", tc.a, tc.b, got, tc.want)
		}
	}
	if diff := cmp.Diff([]string{"A", "B", "other/C", "D"}, namesOf([]string{"feature/A", "B", "features.features.k8s.io/B", "other/C", "feature.features.k8s.io/D"})); diff != "" {
		t.Errorf("names (-want +got):\n%s", diff)
	}
	for written, want := range map[string]string{
		"feat/A": "A", "Feature/A": "A", "FEATURES/A": "A", "feature.v1alpha1.features.k8s.io/A": "A", "Feature.Features.k8s.io/A": "A",
		"feature.v1.features.k8s.io/A": "feature.v1.features.k8s.io/A", "feature.apps/A": "feature.apps/A", "pods/A": "pods/A", "": "", "feature/": "",
	} {
		if got := namesOf([]string{written}); !slices.Equal(got, []string{want}) {
			t.Errorf("%q names %q, want %q", written, got, want)
		}
	}
}

func TestNamesThatAreNone(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		c := newCluster(t, dynamic("A", v1alpha1.StateOn))
		for name, want := range map[string]string{
			"":         "the name of a feature is empty; kubectl feature list shows all",
			"feature/": "the name of a feature is empty; kubectl feature list shows all",
			"pods/A":   `pods/A names a resource "pods", and not a feature; write NAME, or feature/NAME`,
		} {
			for _, command := range []string{"describe", "uses", "pause", "disable", "rollout", "clean"} {
				if out, code := c.run(command, name); out != "error: "+want+"\n" || code != ExitFailed {
					t.Errorf("%s %q: exit code %d: %s", command, name, code, out)
				}
			}
		}
	})
}

func TestCompletion(t *testing.T) {
	features := []*v1alpha1.Feature{
		dynamic("A1", v1alpha1.StateOff), dynamic("A2", v1alpha1.StateOn), dynamic("B", v1alpha1.StateOff),
		dynamic("A3", v1alpha1.StateOff, func(f *v1alpha1.Feature) {
			f.Status.Control, f.Spec.Enabled = v1alpha1.ControlLocal, ptr.To(true)
		}),
		danglingFeature("Dangling"),
		dynamic("Paused", v1alpha1.StateOn, func(f *v1alpha1.Feature) { f.Spec.Paused = true }),
		dynamic("Used", v1alpha1.StateOn, func(f *v1alpha1.Feature) {
			f.Status.Uses = []v1alpha1.FeatureUse{{Component: "kubelet"}, {Component: "kube-proxy"}, {Component: "kubelet"}}
		}),
		dynamic("Gadgets", v1alpha1.StateOn, func(f *v1alpha1.Feature) { f.Namespace = "widgets" }),
	}
	const kubeconfig = `{apiVersion: v1, kind: Config, contexts: [{name: left, context: {cluster: here, user: alice}}, {name: right, context: {cluster: here}}],
		clusters: [{name: here, cluster: {server: "https://localhost"}}], users: [{name: alice, user: {token: x}}]}`
	for name, tc := range map[string]struct {
		args []string
		want string
	}{
		"dynamic features":           {[]string{"enable", "A"}, "A1\tOff\nA2\tOn\n:4\n"},
		"those that are not there":   {[]string{"disable", "A1", ""}, "A2\tOn\nB\tOff\nPaused\tOn\nUsed\tOn\n:4\n"},
		"what something is asked of": {[]string{"reset", ""}, "A3\tOff\n:4\n"},
		"kinds of dry run":           {[]string{"enable", "--dry-run", ""}, "none\nserver\n:4\n"},
		"one feature":                {[]string{"plan", "B"}, "B\tOff\n:4\n"},
		"no second one":              {[]string{"plan", "B", ""}, ":4\n"},
		"all features":               {[]string{"describe", "A"}, "A1\tOff\nA2\tOn\nA3\tOff\n:4\n"},
		"what something is left of":  {[]string{"clean", ""}, "Dangling\tOff\n:4\n"},
		"what is paused":             {[]string{"resume", ""}, "Paused\tOn\n:4\n"},
		"what can be rolled out":     {[]string{"rollout", "A"}, "A1\tOff\nA2\tOn\n:4\n"},
		"formats":                    {[]string{"uses", "A1", "-o", "w"}, "wide\njson\nyaml\nname\n:4\n"},
		"another state":              {[]string{"list", "--state=On,T"}, "On,TurningOn\nOn,TurningOff\n:4\n"},
		"no state twice":             {[]string{"list", "--state=on,off,O"}, ":4\n"},
		"orders":                     {[]string{"list", "--sort-by=S"}, "state\nstage\nsince\n:4\n"},
		"namespaces":                 {[]string{"list", "-n", ""}, "kube-system\nwidgets\n:4\n"},
		"contexts":                   {[]string{"list", "--context", ""}, "left\nright\n:4\n"},
		"contexts to compare":        {[]string{"diff", "--context=left", "--context", "r"}, "right\n:4\n"},
		"clusters":                   {[]string{"list", "--cluster", ""}, "here\n:4\n"},
		"users":                      {[]string{"list", "--user", ""}, "alice\n:4\n"},
		"components that use it":     {[]string{"enable", "Used", "--components", ""}, "kube-proxy\nkubelet\n:4\n"},
		"another component":          {[]string{"rollout", "Used", "--components=kubelet,"}, "kubelet,kube-proxy\n:4\n"},
		"components of Kubernetes":   {[]string{"disable", "A1", "--components=kube-c"}, "kube-controller-manager\n:4\n"},
		"versions to check":          {[]string{"upgrade-check", "--to", ""}, "1.35\n1.37\n:4\n"},
		"versions to plan":           {[]string{"plan", "A1", "--to=1.37"}, "1.37\n:4\n"},
		"formats of upgrade-check":   {[]string{"upgrade-check", "-o", "j"}, "json\n:4\n"},
		"formats of report":          {[]string{"report", "-o", ""}, "html\n:4\n"},
		"states":                     {[]string{"list", "--state", ""}, "On\nOff\nTurningOn\nTurningOff\nUpgrading\nDowngrading\n:4\n"},
		"goals": {[]string{"wait", "A1", "--for", ""}, "state=On\nstate=Off\nstate=TurningOn\nstate=TurningOff\nstate=Upgrading\nstate=Downgrading\ncondition=Known\ncondition=Consistent\n" +
			"condition=Progressing\ncondition=UsesMatch\ncondition=Clean\ncondition=UpgradeSafe\ncondition=DowngradeSafe\n:4\n"},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				if err := os.WriteFile(os.Getenv("KUBECONFIG"), []byte(kubeconfig), 0o600); err != nil {
					t.Fatal(err)
				}
				var out bytes.Buffer
				b := newBase(genericiooptions.IOStreams{In: &bytes.Buffer{}, Out: &out, ErrOut: io.Discard})
				b.connect = func(*rest.Config) (versioned.Interface, error) { return newCluster(t, features...).client, nil }
				if code := b.run(t.Context(), append([]string{"__complete", "--server=https://localhost"}, tc.args...)); code != 0 {
					t.Errorf("exit code %d", code)
				}
				if diff := cmp.Diff(tc.want, out.String()); diff != "" {
					t.Errorf("completions (-want +got):\n%s", diff)
				}
			})
		})
	}
}

// TestCompletionDoesNotWait for a server that takes the request and never answers.
func TestCompletionDoesNotWait(t *testing.T) {
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "none"))
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }))
	defer server.Close()
	for _, args := range [][]string{{"describe", ""}, {"enable", "A", "--components", ""}} {
		var out bytes.Buffer
		b := newBase(genericiooptions.IOStreams{In: &bytes.Buffer{}, Out: &out, ErrOut: io.Discard})
		if b.completionTimeout != completionTimeout || completionTimeout > 5*time.Second {
			t.Errorf("it waits %s", b.completionTimeout)
		}
		b.completionTimeout = 10 * time.Millisecond
		b.run(t.Context(), append([]string{"__complete", "--server=" + server.URL}, args...))
		if want := map[string]string{"describe": ":1\n", "enable": strings.Join(builtTogether, "\n") + "\n:4\n"}[args[0]]; out.String() != want {
			t.Errorf("%s: %q", args, out.String())
		}
	}
}

// TestRequestsOnTheWire checks the requests that reach a server, and that its
// warnings and refusals are printed.
func TestRequestsOnTheWire(t *testing.T) {
	var asked []string
	refuse := false
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		asked = append(asked, strings.TrimSpace(fmt.Sprintf("%s %s %s %s", r.Method, r.URL, r.Header.Get("Content-Type"), body)))
		f := dynamic("A", v1alpha1.StateOff)
		f.TypeMeta = metav1.TypeMeta{APIVersion: v1alpha1.SchemeGroupVersion.String(), Kind: "Feature"}
		w.Header().Set("Content-Type", "application/json")
		var answer any = f
		if r.Method == http.MethodPatch {
			w.Header().Set("Warning", `299 - "spec.rollout: has no effect"`)
			f.Spec.Enabled = ptr.To(true)
			if refuse {
				w.WriteHeader(http.StatusUnprocessableEntity)
				status := apierrors.NewInvalid(schema.GroupKind{Group: v1alpha1.GroupName, Kind: "Feature"}, "A", nil).Status()
				status.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}
				answer = status
			}
		}
		if err := json.NewEncoder(w).Encode(answer); err != nil {
			t.Error(err)
		}
	}))
	defer server.Close()
	kubeconfig := filepath.Join(t.TempDir(), "none")
	if err := os.WriteFile(kubeconfig, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	const path = "/apis/features.k8s.io/v1alpha1/namespaces/kube-system/features/A"
	for _, tc := range []struct {
		refuse bool
		code   int
		says   string
	}{
		{false, ExitDone, "Warning: spec.rollout: has no effect\nfeature.features.k8s.io/A enabled (server dry run)\n"},
		{true, ExitFailed, "Warning: spec.rollout: has no effect\nerror: feature A in kube-system could not be enabled: Feature.features.k8s.io \"A\" is invalid\n"},
	} {
		asked, refuse = nil, tc.refuse
		var out bytes.Buffer
		code := Run([]string{"enable", "A", "--percent=5", "--dry-run=server", "--server", server.URL, "--kubeconfig", kubeconfig},
			genericiooptions.IOStreams{In: &bytes.Buffer{}, Out: &out, ErrOut: &out})
		if diff := cmp.Diff(tc.says, out.String()); diff != "" || code != tc.code {
			t.Errorf("exit code %d (-want +got):\n%s", code, diff)
		}
		want := []string{
			"GET " + path,
			"PATCH " + path + `?dryRun=All&fieldManager=kubectl-feature&fieldValidation=Strict application/merge-patch+json {"spec":{"enabled":true,"rollout":{"at":null,"components":null,"percent":5}}}`,
		}
		if diff := cmp.Diff(want, asked); diff != "" {
			t.Errorf("requests (-want +got):\n%s", diff)
		}
	}
}
