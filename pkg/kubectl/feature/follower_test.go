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
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	clienttesting "k8s.io/client-go/testing"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/klog/v2"
	"k8s.io/utils/ptr"
)

// TestOtherFeaturesAfterTimeout shows that features are judged also if one before them
// took all the time.
func TestOtherFeaturesAfterTimeout(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		c := newCluster(t, dynamic("A", v1alpha1.StateOff), dynamic("B", v1alpha1.StateOn))
		r := c.start("wait", "A", "B", "--for=state=On", "--timeout=2s")
		<-r.done
		r.want(t, ExitTimedOut, "feature.features.k8s.io/A: Off", "feature.features.k8s.io/A: timed out after 2s waiting for the state On: Off", "feature.features.k8s.io/B: has the state On")
	})
	inBubble(t, func(t *testing.T) {
		c := newCluster(t, dynamic("A", v1alpha1.StateOn), dynamic("B", v1alpha1.StateOn), dynamic("C", v1alpha1.StateOn))
		r := c.start("disable", "A", "B", "C", "--wait", "--timeout=2s")
		c.answer("B", v1alpha1.StateTurningOff, v1alpha1.ReasonBlocked, "delete the pods")
		c.answer("C", v1alpha1.StateOff, v1alpha1.ReasonComplete, "")
		<-r.done
		r.want(t, ExitHeld,
			"feature.features.k8s.io/A disabled", "feature.features.k8s.io/B disabled", "feature.features.k8s.io/C disabled",
			"feature.features.k8s.io/A: timed out after 2s: On; the request is stored, and continues",
			"feature.features.k8s.io/B: TurningOff, delete the pods",
			"feature.features.k8s.io/B: it needs user action to continue; the request is stored",
			"feature.features.k8s.io/C: Off")
	})
}

// TestFeatureRecreatedWhileNotWatched covers another feature of the same name,
// without the request.
func TestFeatureRecreatedWhileNotWatched(t *testing.T) {
	for command, said := range map[string]string{
		"enable A --wait --timeout=0":               "feature.features.k8s.io/A enabled\nerror: feature A in kube-system was enabled, and is not followed any more: ",
		"wait A --for=state=TurningOn":              "feature.features.k8s.io/A: Off\nerror: feature A in kube-system is not followed any more: ",
		"pause A":                                   "error: feature.features.k8s.io/A paused, and is not followed any more: ",
		"wait A --for=state=TurningOn -o name":      "feature.features.k8s.io/A: Off\nerror: feature A in kube-system is not followed any more: ",
		"wait A --for=condition=Clean=Unknown":      "feature.features.k8s.io/A: Off\nerror: feature A in kube-system is not followed any more: ",
		"disable A --wait --percent=5 --timeout=1h": "feature.features.k8s.io/A disabled\nerror: feature A in kube-system was disabled, and is not followed any more: ",
	} {
		t.Run(command, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				c := newCluster(t, dynamic("A", v1alpha1.StateOff, func(f *v1alpha1.Feature) { f.UID = "1" }))
				r := c.start(strings.Fields(command)...)
				c.store(dynamic("A", v1alpha1.StateOff, func(f *v1alpha1.Feature) { f.UID = "2" }))
				r.want(t, ExitFailed, said+"it was deleted; kube-apiserver recreates it, without a request")
			})
		})
	}
}

// TestSeveralErrors shows that each has its line.
func TestSeveralErrors(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		in := func(f *v1alpha1.Feature) { f.Namespace = "widgets" }
		c := newCluster(t, dynamic("A", v1alpha1.StateOff, in), dynamic("B", v1alpha1.StateOff, in))
		c.client.PrependReactor("patch", "features", clienttesting.ObjectReaction(c.client.Tracker()))
		r := c.start("enable", "A", "B", "--wait", "-n", "widgets")
		for _, name := range []string{"A", "B"} {
			if err := c.client.Tracker().Delete(featuresResource, "widgets", name); err != nil {
				t.Fatal(err)
			}
		}
		settle()
		settle()
		const deleted = " in widgets was enabled, and is not followed any more: it was deleted; its operator recreates it while it runs, without a request"
		r.want(t, ExitFailed, "feature.features.k8s.io/A enabled", "feature.features.k8s.io/B enabled", "feature.features.k8s.io/A: Off", "error: feature A"+deleted, "error: feature B"+deleted)
	})
	both := fmt.Errorf("%w; %w", errors.New("a"), errors.New("b"))
	got := allOf(errors.Join(errors.New("1"), errors.Join(errors.New("2"), both)))
	if len(got) != 3 || got[2].Error() != "a; b" {
		t.Errorf("%q", got)
	}
}

// TestRefusedToFollow checks that the command does not wait after a refusal, and that
// only the error is on the screen. With permission to list, and not to watch, the
// current state is known, which can suffice.
func TestRefusedToFollow(t *testing.T) {
	var log bytes.Buffer
	klog.LogToStderr(false)
	klog.SetOutput(&log)
	defer func() {
		klog.LogToStderr(true)
		klog.SetOutput(os.Stderr)
	}()
	// The handler after the one that logs sleeps, by a clock that bubbles share.
	handlers := utilruntime.ErrorHandlers
	utilruntime.ErrorHandlers = handlers[:1]
	defer func() { utilruntime.ErrorHandlers = handlers }()
	features := schema.GroupResource{Group: v1alpha1.GroupName, Resource: "features"}
	for _, verb := range []string{"list", "watch"} {
		for _, tc := range []struct {
			err  error
			says string
		}{
			{apierrors.NewForbidden(features, "", errors.New("because")), `following it needs permission to list and watch features in kube-system: features.features.k8s.io is forbidden: because` + "; " + advice(apierrors.NewForbidden(features, "", nil))},
			{apierrors.NewUnauthorized("expired"), "the server does not know you any more: expired; " + advice(apierrors.NewUnauthorized(""))},
			{apierrors.NewGenericServerResponse(http.StatusNotFound, verb, features, "", "404 page not found", 0, true), errNoAPI.Error()},
		} {
			for command, said := range map[string]string{
				"wait A --for=state=On --timeout=0": "error: feature A in kube-system is not followed any more: ",
				"enable A --wait --timeout=0":       "feature.features.k8s.io/A enabled\nerror: feature A in kube-system was enabled, and is not followed any more: ",
				"reset A":                           "error: feature A in kube-system was reset, and is not followed any more: ",
				"pause A":                           "error: feature.features.k8s.io/A paused, and is not followed any more: ",
			} {
				t.Run(verb+" "+command, func(t *testing.T) {
					inBubble(t, func(t *testing.T) {
						c := newCluster(t, dynamic("A", v1alpha1.StateOff))
						if verb == "watch" {
							c.client.PrependWatchReactor("features", func(clienttesting.Action) (bool, watch.Interface, error) {
								// Listed features are evaluated before.
								<-time.After(settling / 2)
								return true, nil, tc.err
							})
						} else {
							c.client.PrependReactor("list", "features", func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, tc.err })
						}
						r := c.start(strings.Fields(command)...)
						switch said = said + tc.says; {
						case verb == "watch" && command == "reset A":
							r.want(t, ExitDone, "feature.features.k8s.io/A reset (no change): Off")
						case verb == "watch" && strings.HasPrefix(command, "wait"):
							r.want(t, ExitFailed, "feature.features.k8s.io/A: Off", said)
						default:
							r.want(t, ExitFailed, said)
						}
					})
				})
			}
		}
	}
	klog.Flush()
	if log.Len() > 0 {
		t.Errorf("it logged:\n%s", log.String())
	}
}

// TestServerThatNeverAnswers checks that --timeout limits all requests of a
// command.
func TestServerThatNeverAnswers(t *testing.T) {
	var reads atomic.Bool
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !reads.Load() || r.Method != http.MethodGet {
			// A server notices a closed connection only after it has read the body.
			if _, err := io.Copy(io.Discard, r.Body); err != nil {
				return
			}
			<-r.Context().Done()
			return
		}
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `{"kind":"Feature","apiVersion":"features.k8s.io/v1alpha1","metadata":{"name":"A","namespace":"kube-system"},"status":{"state":"Off","control":"Dynamic"}}`)
	}))
	defer server.Close()
	kubeconfig := filepath.Join(t.TempDir(), "none")
	if err := os.WriteFile(kubeconfig, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		reads   bool
		command string
		code    int
		says    string
	}{
		{false, "wait A --for=state=Off", ExitTimedOut, "feature.features.k8s.io/A: timed out after 100ms waiting for the state Off: the server did not answer\n"},
		{false, "enable A --wait", ExitFailed, "error: the server did not answer within 100ms; nothing was requested\n"},
		{false, "clean A --wait", ExitFailed, "error: the server did not answer within 100ms; nothing was started\n"},
		{true, "enable A --wait", ExitFailed, "error: feature A in kube-system: the server did not answer, so it is not known whether it was enabled; kubectl feature describe A shows it: "},
		{true, "clean A --wait", ExitFailed, "error: cleaning up after feature A in kube-system: the server did not answer, so it is not known whether it was started; kubectl feature describe A shows it: "},
	} {
		reads.Store(tc.reads)
		var out bytes.Buffer
		code := Run(append(strings.Fields(tc.command), "--timeout=100ms", "--server", server.URL, "--kubeconfig", kubeconfig), genericiooptions.IOStreams{In: &bytes.Buffer{}, Out: &out, ErrOut: &out})
		if code != tc.code || !strings.HasPrefix(out.String(), tc.says) {
			t.Errorf("%s: exit code %d: %s", tc.command, code, out.String())
		}
	}
}

// TestDumbTerminal checks that a terminal that cannot rewrite a line gets
// lines.
func TestDumbTerminal(t *testing.T) {
	b := newBase(genericiooptions.IOStreams{Out: &bytes.Buffer{}})
	b.isTerminal = func() bool { return true }
	for kind, live := range map[string]bool{"dumb": false, "xterm": true} {
		t.Setenv("TERM", kind)
		if p := b.progress(); p.live != live {
			t.Errorf("TERM=%s: a line that is rewritten: %t", kind, p.live)
		}
	}
}

// TestFeatureWithoutStatus covers features without a status, also of
// operators.
func TestFeatureWithoutStatus(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		fresh := &v1alpha1.Feature{ObjectMeta: metav1.ObjectMeta{Namespace: "widgets", Name: "Fresh"}}
		fresh.Spec.Rollout = &v1alpha1.FeatureRollout{Percent: ptr.To[int32](5)}
		c := newCluster(t, fresh)
		for command, says := range map[string]string{
			"wait Fresh --for=state=Off --timeout=1s": "feature.features.k8s.io/Fresh: none yet\nfeature.features.k8s.io/Fresh: timed out after 1s waiting for the state Off: none yet\n",
			"rollout Fresh": "feature.features.k8s.io/Fresh: none yet; configured: not known yet: the replicas of its operator have not reported, or do not agree\n" +
				"Percent:      5\nComponents:   all\nAttempt:      0\nUnder way:    no: the replicas of its operator have not reported, so it is not known whether spec.rollout has an effect\n" +
				"No process that reported uses the feature.\n",
			"describe Fresh": "Control:      not known yet: the replicas of its operator have not reported\n",
		} {
			out, _ := c.run(append(strings.Fields(command), "-n", "widgets")...)
			if !strings.Contains(out, says) {
				t.Errorf("%s:\n%s\nwant:\n%s", command, out, says)
			}
		}
	})
}

// TestWaitForAPart checks that a value for a part of the instances is reached
// when that part has it. Without permission to see that, the output has a
// message.
func TestWaitForAPart(t *testing.T) {
	const name = "feature.features.k8s.io/A"
	const widen = "kubectl feature rollout A --percent=100 --components= gives it to all"
	limited := func(c *cluster, spec v1alpha1.FeatureRollout) {
		f := c.get("A")
		f.Status.Rollout = &v1alpha1.FeatureRolloutStatus{Value: true, Observed: spec}
		c.store(f)
		c.answer("A", v1alpha1.StateTurningOn, v1alpha1.ReasonWaitingForUses, "waiting for 2 users")
	}
	schedulers := v1alpha1.FeatureRollout{Components: []string{"kube-scheduler"}}
	start := func(t *testing.T, args ...string) (*cluster, *running) {
		c := newCluster(t, dynamic("A", v1alpha1.StateOff))
		c.add(report("kube-scheduler", "s1", "v1.36.3", "A", on), report("kube-scheduler", "s2", "v1.36.3", "A"), report("kube-scheduler", "s3", "v1.36.3", "A", explicit),
			report("kube-scheduler", "s4", "v1.36.3", "A", notAsked), report("kubelet", "n1", "v1.36.3", "A"))
		return c, c.start(append([]string{"enable", "A", "--wait"}, args...)...)
	}
	inBubble(t, func(t *testing.T) {
		c, r := start(t, "--components=kube-scheduler")
		limited(c, schedulers)
		if r.ended() {
			t.Fatalf("it ended without s2:\n%s", r.out.String())
		}
		if err := c.client.Tracker().Update(v1alpha1.SchemeGroupVersion.WithResource("featurereports"), report("kube-scheduler", "s2", "v1.36.3", "A", on), "kube-system"); err != nil {
			t.Fatal(err)
		}
		c.answer("A", v1alpha1.StateTurningOn, v1alpha1.ReasonWaitingForUses, "waiting for 1 user")
		r.want(t, ExitDone, name+" enabled", name+": TurningOn, waiting for 2 users", name+": TurningOn, waiting for 1 user",
			name+": all of 2 instances that it is for have the feature on, since spec.rollout limits it to the components kube-scheduler; "+widen)
	})
	inBubble(t, func(t *testing.T) {
		c, r := start(t, "--components=kube-scheduler", "--timeout=1m")
		limited(c, schedulers)
		<-r.done
		r.want(t, ExitTimedOut, name+" enabled", name+": TurningOn, waiting for 2 users",
			name+": timed out after 1m0s: TurningOn, waiting for 2 users; 1 of 2 instances that it is for have it; the request is stored, and continues")
	})
	inBubble(t, func(t *testing.T) {
		c, r := start(t, "--percent=0", "--timeout=0")
		limited(c, v1alpha1.FeatureRollout{Percent: ptr.To[int32](0)})
		r.want(t, ExitDone, name+" enabled", name+": TurningOn, waiting for 2 users",
			name+": it is for none of the instances that use the feature, since spec.rollout limits it to 0 percent of the instances; "+widen)
	})
	inBubble(t, func(t *testing.T) {
		c, r := start(t, "--percent=50", "--timeout=0")
		forbid(&c.client.Fake, "featurereports")
		limited(c, v1alpha1.FeatureRollout{Percent: ptr.To[int32](50)})
		r.want(t, ExitHeld, name+" enabled", name+": TurningOn, waiting for 2 users",
			name+": spec.rollout limits it to 50 percent of the instances, and whether they have the value is not known: you may not list FeatureReports in kube-system, which have the value of each process; "+widen)
	})
}
