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
	"errors"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/utils/ptr"
)

// TestManagedFieldsAreNotPrinted, since they are noise for users and for diff.
func TestManagedFieldsAreNotPrinted(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		f := sample("A", v1alpha1.StageBeta, true, true)
		f.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "manager"}}
		c := newCluster(t, f)
		c.add(event("e", "A", "Normal", "Reason", "message", time.Minute, 1))
		for _, command := range []string{"list -o json", "list -o yaml", "describe A -o json", "rollout A -o yaml"} {
			if out, code := c.run(strings.Fields(command)...); code != 0 || strings.Contains(out, "managedFields") {
				t.Errorf("%s: exit code %d: %s", command, code, out)
			}
		}
	})
}

// TestNoProgressWithOutputFormat, also where a terminal shows what they would read.
func TestNoProgressWithOutputFormat(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		c := newSampleCluster(t)
		c.plans(map[string]v1alpha1.FeaturePlanStatus{})
		for _, format := range []string{"json", "yaml", "name"} {
			if out, code := c.onScreen("plan", "PodDeletionCost", "--enable", "-o", format); code != 0 || strings.Contains(out, "\x1b") || strings.Contains(out, "looking for") {
				t.Errorf("-o %s: exit code %d: %q", format, code, out)
			}
		}
	})
}

// TestNoSuggestionWithoutPermission to list: the first error is the one that counts.
func TestNoSuggestionWithoutPermission(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		c := newCluster(t, dynamic("A", v1alpha1.StateOn))
		forbid(&c.client.Fake, "features")
		out, code := c.run("rollout", "B")
		if want := "error: reading feature B in kube-system: features.features.k8s.io \"B\" not found\n"; out != want || code != ExitFailed {
			t.Errorf("exit code %d: %s", code, out)
		}
	})
}

// TestHeldHasPrecedenceOverTimeout: its exit code means that waiting longer does not
// help.
func TestHeldHasPrecedenceOverTimeout(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		c := newCluster(t, dynamic("A", v1alpha1.StateOn), dynamic("B", v1alpha1.StateOn))
		r := c.start("disable", "A", "B", "--wait", "--timeout=1m")
		c.answer("A", v1alpha1.StateTurningOff, v1alpha1.ReasonBlocked, "what to do")
		c.answer("B", v1alpha1.StateTurningOff, v1alpha1.ReasonRunningTask, "clearing")
		<-r.done
		if r.code != ExitHeld || !strings.Contains(r.out.String(), "B: timed out after 1m0s") {
			t.Errorf("exit code %d: %s", r.code, r.out.String())
		}
	})
}

// TestLateFeatureTimesOut although another feature has reached the goal.
func TestLateFeatureTimesOut(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		c := newCluster(t, dynamic("A", v1alpha1.StateOn), dynamic("B", v1alpha1.StateOff))
		for _, names := range []string{"A B", "B A"} {
			if out, code := c.run(strings.Fields("wait " + names + " --for=state=On --timeout=2s")...); code != ExitTimedOut || !strings.Contains(out, "B: timed out after 2s") {
				t.Errorf("%s: exit code %d: %s", names, code, out)
			}
		}
	})
}

// TestListsFailUntilTheEnd: the time to wait is over while there is nothing to watch.
func TestListsFailUntilTheEnd(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		c := newCluster(t, dynamic("A", v1alpha1.StateOff))
		c.client.PrependReactor("list", "features", func(clienttesting.Action) (bool, runtime.Object, error) {
			return true, nil, apierrors.NewInternalError(errors.New("etcd has no leader"))
		})
		// How long it takes is not judged: apimachinery's HandleError sleeps by the
		// clock from before the bubble.
		out, code := c.run("wait", "A", "--for=state=On", "--timeout=10s")
		want := "feature.features.k8s.io/A: Off\nfeature.features.k8s.io/A: timed out after 10s waiting for the state On: Off\n"
		if code != ExitTimedOut || out != want {
			t.Errorf("exit code %d: %s", code, out)
		}
	})
}

// TestFeatureDeletedBeforeWatch covers a feature that is deleted between read and watch.
func TestFeatureDeletedBeforeWatch(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		c := newCluster(t)
		c.client.PrependReactor("get", "features", func(clienttesting.Action) (bool, runtime.Object, error) {
			return true, dynamic("A", v1alpha1.StateOff), nil
		})
		out, code := c.run("wait", "A", "--for=state=On", "--timeout=1m")
		if code != ExitFailed || !strings.Contains(out, "feature A in kube-system is not followed any more: it was deleted") {
			t.Errorf("exit code %d: %s", code, out)
		}
	})
}

// TestCleanUpEndsBeforeItIsWatched, as one that finds nothing does. An earlier condition is
// not its end, such as for a feature whose leftovers were restored from a backup.
func TestCleanUpEndsBeforeItIsWatched(t *testing.T) {
	for name, delay := range map[string]time.Duration{"at once": 0, "later": 10 * time.Second} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				clean := danglingFeature("A")
				condition(clean, v1alpha1.ConditionClean, metav1.ConditionTrue, v1alpha1.ReasonNothingLeft, "")
				atRest(clean)
				c := newCluster(t, clean)
				end := func() {
					f := c.get("A")
					f.Status.StateSince = ptr.To(metav1.Now())
					if err := c.client.Tracker().Update(featuresResource, f, f.Namespace); err != nil {
						t.Error(err)
					}
				}
				c.client.PrependReactor("create", "features/cleanup", func(clienttesting.Action) (bool, runtime.Object, error) {
					if delay == 0 {
						end()
					} else {
						time.AfterFunc(delay, end)
					}
					return true, &v1alpha1.FeatureCleanup{Status: v1alpha1.FeatureCleanupStatus{TransitionID: "c1"}}, nil
				})
				begun := time.Now()
				out, code := c.run("clean", "A", "--wait", "--timeout=1m")
				if want := "feature.features.k8s.io/A: clean-up started (transition c1)\nfeature.features.k8s.io/A: nothing is left\n"; out != want || code != ExitDone {
					t.Errorf("exit code %d: %s", code, out)
				}
				if took := time.Since(begun); took < delay {
					t.Errorf("it ended after %s, and the clean-up after %s", took, delay)
				}
			})
		})
	}
}
