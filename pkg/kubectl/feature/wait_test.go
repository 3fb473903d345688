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
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clienttesting "k8s.io/client-go/testing"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/utils/ptr"
)

func TestWaitForAState(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		c := newCluster(t, dynamic("A", v1alpha1.StateTurningOff), dynamic("B", v1alpha1.StateOn))
		r := c.start("wait", "A", "B", "--for=state=off")
		c.answer("A", v1alpha1.StateTurningOff, v1alpha1.ReasonBlocked, "pods are left")
		c.answer("A", v1alpha1.StateTurningOff, v1alpha1.ReasonRunningTask, "clearing")
		c.answer("A", v1alpha1.StateOff, v1alpha1.ReasonComplete, "")
		if r.ended() {
			t.Errorf("it ended without B:\n%s", r.out.String())
		}
		c.answer("B", v1alpha1.StateOff, v1alpha1.ReasonComplete, "")
		r.want(t, ExitDone,
			"feature.features.k8s.io/A: TurningOff",
			"feature.features.k8s.io/A: TurningOff, pods are left",
			"feature.features.k8s.io/A: TurningOff, clearing",
			"feature.features.k8s.io/A: has the state Off",
			"feature.features.k8s.io/B: On",
			"feature.features.k8s.io/B: has the state Off")
	})
}

// TestWaitForACondition that is about the present spec.
func TestWaitForACondition(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		f := danglingFeature("A")
		f.Generation = 2
		old := *f.DeepCopy()
		old.Generation = 1
		condition(&old, v1alpha1.ConditionClean, metav1.ConditionTrue, v1alpha1.ReasonNothingLeft, "nothing is left")
		f.Status.Conditions = old.Status.Conditions
		c := newCluster(t, f)
		r := c.start("wait", "feature/A", "--for=condition=clean")
		if r.ended() {
			t.Errorf("it believed a condition of before:\n%s", r.out.String())
		}
		condition(f, v1alpha1.ConditionClean, metav1.ConditionTrue, v1alpha1.ReasonNothingLeft, "nothing is left")
		c.store(f)
		r.want(t, ExitDone, "feature.features.k8s.io/A: Off", "feature.features.k8s.io/A: has the condition Clean=True")
		golden(t, "wait.txt", c.session(
			"wait A --for=condition=Clean=False --timeout=1m",
			"wait A --for=condition=UpgradeSafe=unknown",
			"wait A --for=state=Off",
			"wait A --for=Off",
			"wait A --for=state=Sideways",
			"wait A --for=condition=Ready",
			"wait A --for=condition=Clean=Maybe",
			"wait A --for=color=red",
			"wait A --for=state=Off --timeout=-1s",
			"wait A",
			"wait A Missing --for=state=On",
			"wait --for=state=On",
		))
	})
}

func TestWaitForDeletedFeature(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		c := newCluster(t, dynamic("A", v1alpha1.StateOff))
		r := c.start("wait", "A", "--for=state=On", "--timeout=0")
		if err := c.client.Tracker().Delete(featuresResource, "kube-system", "A"); err != nil {
			t.Fatal(err)
		}
		settle()
		r.want(t, ExitFailed, "feature.features.k8s.io/A: Off",
			"error: feature A in kube-system is not followed any more: it was deleted; kube-apiserver recreates it, without a request")
	})
}

// cleaning has the servers start a transition for the subresource cleanup.
func (c *cluster) cleaning() {
	c.client.PrependReactor("create", "features/cleanup", func(action clienttesting.Action) (bool, runtime.Object, error) {
		name := action.(clienttesting.CreateActionImpl).Name
		if name == "Refused" {
			return true, nil, apierrors.NewConflict(schema.GroupResource{Group: v1alpha1.GroupName, Resource: "features"}, name, errors.New("nothing is left of the feature"))
		}
		if name == "Forbidden" {
			return true, nil, apierrors.NewForbidden(schema.GroupResource{Group: v1alpha1.GroupName, Resource: "features/cleanup"}, name, errors.New("because"))
		}
		f := c.get(name)
		f.Status.State = v1alpha1.StateTurningOff
		f.Status.Transition = &v1alpha1.FeatureTransition{ID: "c1", Reason: v1alpha1.TransitionClean}
		f.Status.Tasks = []v1alpha1.FeatureTask{{Name: v1alpha1.TaskWaitForUses}, {Name: "ClearField/x"}}
		progressing(f, v1alpha1.ReasonWaitingForUses, "")
		if err := c.client.Tracker().Update(featuresResource, f, f.Namespace); err != nil {
			return true, nil, err
		}
		return true, &v1alpha1.FeatureCleanup{Status: v1alpha1.FeatureCleanupStatus{TransitionID: "c1", Tasks: f.Status.Tasks}}, nil
	})
}

// cleaned ends, or holds, the transition.
func (c *cluster) cleaned(change func(*v1alpha1.Feature)) {
	f := c.get("A")
	change(f)
	c.store(f)
}

func atRest(f *v1alpha1.Feature) {
	f.Status.State, f.Status.Transition, f.Status.Tasks = v1alpha1.StateOff, nil, nil
	progressing(f, v1alpha1.ReasonComplete, "")
}

func TestClean(t *testing.T) {
	begun := []string{
		"feature.features.k8s.io/A: clean-up started (transition c1)", "  1. WaitForUses", "  2. ClearField/x",
	}
	for name, tc := range map[string]struct {
		change func(*v1alpha1.Feature)
		code   int
		says   []string
	}{
		"nothing is left": {func(f *v1alpha1.Feature) {
			atRest(f)
			condition(f, v1alpha1.ConditionClean, metav1.ConditionTrue, v1alpha1.ReasonNothingLeft, "")
		}, ExitDone, []string{"feature.features.k8s.io/A: nothing is left"}},
		"something is left again": {atRest, ExitHeld, []string{
			"feature.features.k8s.io/A: the clean-up is done, and something was left again meanwhile: 12 horizontalpodautoscalers.autoscaling: shop/web, shop/api, …; create features/cleanup to remove them",
		}},
		"in use again": {func(f *v1alpha1.Feature) {
			atRest(f)
			f.Status.State = v1alpha1.StateOn
			condition(f, v1alpha1.ConditionClean, metav1.ConditionUnknown, v1alpha1.ReasonInUse, "the feature is on")
		}, ExitHeld, []string{"feature.features.k8s.io/A: the feature is On again, so what is stored is in use: the feature is on"}},
		"blocked": {func(f *v1alpha1.Feature) { progressing(f, v1alpha1.ReasonBlocked, "delete the pods") }, ExitHeld, []string{
			"feature.features.k8s.io/A: TurningOff, delete the pods", "feature.features.k8s.io/A: it needs user action to continue; the clean-up is stored",
		}},
		"turned on instead": {func(f *v1alpha1.Feature) {
			f.Status.State, f.Status.Transition = v1alpha1.StateTurningOn, &v1alpha1.FeatureTransition{ID: "t2"}
			progressing(f, v1alpha1.ReasonWaitingForUses, "waiting for n1")
		}, ExitHeld, []string{"feature.features.k8s.io/A: another transition took the place of the clean-up: TurningOn, waiting for n1"}},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				c := newCluster(t, danglingFeature("A"))
				c.cleaning()
				r := c.start("clean", "A", "--wait")
				if r.ended() {
					t.Fatalf("it ended:\n%s", r.out.String())
				}
				c.cleaned(tc.change)
				r.want(t, tc.code, append(append(begun, "feature.features.k8s.io/A: TurningOff"), tc.says...)...)
			})
		})
	}
}

// TestCleanReportsNothingLeft only after servers have examined the objects.
func TestCleanReportsNothingLeft(t *testing.T) {
	begun := []string{
		"feature.features.k8s.io/A: clean-up started (transition c1)", "  1. WaitForUses", "  2. ClearField/x", "feature.features.k8s.io/A: TurningOff",
	}
	notExamined := func(f *v1alpha1.Feature) {
		atRest(f)
		condition(f, v1alpha1.ConditionClean, metav1.ConditionUnknown, v1alpha1.ReasonNotExamined, "looking for leftovers")
	}
	inBubble(t, func(t *testing.T) {
		c := newCluster(t, danglingFeature("A"))
		c.cleaning()
		r := c.start("clean", "A", "--wait")
		c.cleaned(notExamined)
		if r.ended() {
			t.Fatalf("it ended before servers had looked:\n%s", r.out.String())
		}
		c.cleaned(func(f *v1alpha1.Feature) {
			condition(f, v1alpha1.ConditionClean, metav1.ConditionTrue, v1alpha1.ReasonNothingLeft, "")
		})
		r.want(t, ExitDone, append(begun, "feature.features.k8s.io/A: nothing is left")...)
	})
	inBubble(t, func(t *testing.T) {
		c := newCluster(t, danglingFeature("A"))
		c.cleaning()
		r := c.start("clean", "A", "--wait")
		c.cleaned(notExamined)
		<-r.done
		r.want(t, ExitTimedOut, append(begun, "feature.features.k8s.io/A: timed out after 5m0s: the clean-up is done, and whether something is left is not known: looking for leftovers")...)
	})
}

// TestCleanOutputFormats shows that the output is the Feature and nothing else.
func TestCleanOutputFormats(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		c := newCluster(t, danglingFeature("A"))
		c.cleaning()
		r := c.start("clean", "A", "--wait", "-o", "jsonpath={.metadata.name} is {.status.state}{\"\\n\"}")
		c.cleaned(func(f *v1alpha1.Feature) {
			f.Status.State, f.Status.Transition = v1alpha1.StateOff, nil
			condition(f, v1alpha1.ConditionClean, metav1.ConditionTrue, v1alpha1.ReasonNothingLeft, "nothing is left")
		})
		// The run has one stream: progress is on the error stream.
		r.want(t, ExitDone, "feature.features.k8s.io/A: TurningOff", "A is Off")
	})
}

func TestCleanWithoutWait(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		c := newCluster(t, danglingFeature("A"), danglingFeature("B"), danglingFeature("Refused"), danglingFeature("Forbidden"))
		c.cleaning()
		golden(t, "clean.txt", c.session(
			"clean A",
			"clean B --wait --timeout=1m",
			"clean Refused",
			"clean Forbidden",
			"clean Missing",
			"clean A --timeout=1m",
			"clean A --wait --timeout=-1m",
			"clean A B",
		))
	})
}

func TestProgressOnTerminal(t *testing.T) {
	var out bytes.Buffer
	p := &progress{w: &out, live: true}
	f := turningOff("A")
	p.of(f)
	f.Status.Tasks[0].Done = 2000
	p.of(f)
	p.of(f)
	p.end()
	p.end()
	lines := strings.Split(out.String(), "\r\x1b[K")
	if len(lines) != 3 || !strings.Contains(lines[1], "[######..............] 1200 of 4000") || !strings.Contains(lines[2], "[##########..........] 2000 of 4000") {
		t.Errorf("%d lines: %q", len(lines)-1, lines)
	}
	if last := lines[len(lines)-1]; !strings.HasSuffix(last, "\n") || strings.Count(out.String(), "\n") != 1 || len([]rune(strings.TrimSpace(last))) > 79 {
		t.Errorf("the last line is %q", last)
	}
}

// TestEnableOnTerminal shows that those that watch see the bar.
func TestEnableOnTerminal(t *testing.T) {
	t.Setenv("TERM", "xterm")
	inBubble(t, func(t *testing.T) {
		c := newCluster(t, dynamic("A", v1alpha1.StateOn))
		var out string
		done := make(chan struct{})
		go func() {
			defer close(done)
			out, _ = c.onScreen("disable", "A", "--wait")
		}()
		settle()
		f := c.get("A")
		f.Status = turningOff("A").Status
		f.Status.Configured.Value = false
		progressing(f, v1alpha1.ReasonRunningTask, "clearing")
		c.store(f)
		atRest(f)
		f.Status.StateSince = ptr.To(before(time.Second))
		progressing(f, v1alpha1.ReasonComplete, "")
		c.store(f)
		<-done
		if want := "\r\x1b[Kfeature.features.k8s.io/A: TurningOff [######..............] 1200 of 4000, cle…\r\x1b[Kfeature.features.k8s.io/A: Off\n"; !strings.HasSuffix(out, want) {
			t.Errorf("it wrote %q", out)
		}
	})
}

// TestInterrupted checks that an interrupt ends the wait, with a message about the
// request.
func TestInterrupted(t *testing.T) {
	const name = "feature.features.k8s.io/A"
	for command, want := range map[string]string{
		"wait A --for=state=On":   name + ": Off\nerror: interrupted\n",
		"wait A B --for=state=On": name + ": Off\nerror: interrupted\n",
		"clean A --wait":          name + ": clean-up started (transition c1)\n  1. WaitForUses\n  2. ClearField/x\n" + name + ": TurningOff\nerror: interrupted; the clean-up continues\n",
		"resume A":                "error: interrupted; " + name + " resumed\n",
		"enable A B --wait": name + " enabled\n" + name + ": spec.paused holds the feature: the request is stored, and begins when it is resumed (kubectl feature resume A)\n" +
			"feature.features.k8s.io/B enabled\nerror: interrupted; what was requested is stored, and continues\n",
	} {
		t.Run(command, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				c := newCluster(t, dynamic("A", v1alpha1.StateOff, func(f *v1alpha1.Feature) { f.Spec.Paused = true }), dynamic("B", v1alpha1.StateOff))
				c.cleaning()
				var out bytes.Buffer
				ctx, interrupt := context.WithCancel(t.Context())
				done := make(chan int)
				go func() {
					done <- c.base(&out).run(ctx, append(strings.Fields(command), "--server=https://localhost"))
				}()
				settle()
				interrupt()
				if code := <-done; code != ExitFailed || out.String() != want {
					t.Errorf("exit code %d: %s\nwant:\n%s", code, out.String(), want)
				}
			})
		})
	}
}
