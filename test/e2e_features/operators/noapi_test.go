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

package operators

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/feature-lifecycle/agent"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/feature-lifecycle/examples/everywhere"
	"k8s.io/feature-lifecycle/lifecycle/control"
	"k8s.io/feature-lifecycle/operator"
	"k8s.io/kubernetes-features/test/e2e_features/framework"
	"k8s.io/kubernetes-features/test/utils/localcluster"
	"k8s.io/utils/ptr"
)

// notFound is how a client words that a server does not know a path.
const notFound = "could not find the requested resource"

// TestWithoutTheAPI runs an operator on upstream's kube-apiserver, and on one with the
// gate FeatureLifecycle off: it works as if the library were not there. When the server
// has the API, the operator begins with what it could not do before, and when the API goes
// under it, it rests until that is back.
func TestWithoutTheAPI(t *testing.T) {
	t.Parallel()
	binaries := map[string]string{localcluster.APIServer: framework.Upstream(t, "kube-apiserver")}
	w := newWorld(t, framework.Start(t, localcluster.Config{Only: []string{localcluster.Etcd, localcluster.APIServer}, Binaries: binaries}))
	if version := w.Version(); version != framework.UpstreamVersion {
		t.Fatalf("the server is %s, want upstream's", version)
	}
	o := w.install(t, "alone")
	before := w.keys(t, o.namespace)
	r := o.worksAlone(t, "upstream", before)
	r.end(t)
	w.nothingMade(t, o.namespace, before)

	delete(binaries, localcluster.APIServer)
	restart := func(gates string) {
		t.Helper()
		if err := w.Restart(t.Context(), &gates, localcluster.APIServer); err != nil {
			t.Fatalf("restarting kube-apiserver with gates %q: %v", gates, err)
		}
	}
	restart("FeatureLifecycle=false")
	if version := w.Version(); version == framework.UpstreamVersion {
		t.Fatalf("the server is %s, want ours", version)
	}
	r = o.worksAlone(t, "off", before)

	restart("")
	w.WaitForFeatureIn(t, o.namespace, colors, "On by the command line", func(f *v1alpha1.Feature) bool {
		return f.Status.State == v1alpha1.StateOn && f.Status.Configured != nil && f.Status.Configured.Source == v1alpha1.SourceCommandLine && users(f, o.component, true) == 1
	})
	w.WaitForFeatureIn(t, o.namespace, borrowed, "Off", func(f *v1alpha1.Feature) bool { return f.Status.State == v1alpha1.StateOff })
	if _, err := r.Plan(t.Context(), colors, &v1alpha1.FeaturePlan{Spec: v1alpha1.FeaturePlanSpec{Enabled: ptr.To(false)}}); err != nil {
		t.Errorf("a plan, once the server flow runs: %v", err)
	}

	said := len(r.lines(notFound))
	restart("FeatureLifecycle=false")
	r.rests(t)
	r.answeredOnce(t, said)
	restart("")
	framework.Eventually(t, "the replica to plan again", func() error {
		_, err := r.Plan(t.Context(), colors, &v1alpha1.FeaturePlan{Spec: v1alpha1.FeaturePlanSpec{Enabled: ptr.To(false)}})
		return err
	})
	w.WaitForFeatureIn(t, o.namespace, colors, "On as before", func(f *v1alpha1.Feature) bool {
		return f.Status.State == v1alpha1.StateOn && users(f, o.component, true) == 1
	})
	if diff := cmp.Diff([]string{without, with, without, with}, r.turns()); diff != "" {
		t.Errorf("the API came twice, and the replica says something else (-want +got):\n%s\n%s", diff, r.logs)
	}
	// An end has three seconds for the report, which are for a server that has no more
	// to do than to answer.
	w.WaitForRest()
	r.end(t)
}

const (
	without = "Not reporting feature gates: the server does not have the API"
	with    = "Reporting feature gates again"
)

// turns are what the replica has said of the API. Servers that restart are also away, and
// may refuse reports for a while: of that only the end is said, as of an API that comes
// back, and none of it counts here.
func (r *replica) turns() []string {
	const ofReports = "eporting feature gates"
	var turns []string
	troubled := false
	for _, line := range r.lines(ofReports) {
		last := ""
		if len(turns) > 0 {
			last = turns[len(turns)-1]
		}
		switch {
		case strings.Contains(line, without):
			turns, troubled = append(turns, without), false
		case !strings.Contains(line, with):
			troubled = true
		case troubled && last == with:
			troubled = false
		default:
			turns, troubled = append(turns, with), false
		}
	}
	return turns
}

// lines are those with a text that the replica has logged.
func (r *replica) lines(text string) []string {
	var lines []string
	for line := range strings.Lines(r.logs.String()) {
		if strings.Contains(line, text) {
			lines = append(lines, line)
		}
	}
	return lines
}

// answeredOnce checks that the replica said once in each of two places what a server
// without the API answered, after so many lines that said it before: the reporter always,
// the follower of values if it looked meanwhile.
func (r *replica) answeredOnce(t *testing.T, before int) {
	t.Helper()
	reporter, follower, others := 0, 0, []string{}
	for _, line := range r.lines(notFound)[before:] {
		switch {
		case strings.Contains(line, without):
			reporter++
		case strings.Contains(line, "Central feature values unavailable"):
			follower++
		default:
			others = append(others, line)
		}
	}
	if reporter != 1 || follower > 1 || len(others) > 0 {
		t.Errorf("without the API the reporter says %d times what it was answered, want once; the follower %d times, want at most once; others say %q, want nothing:\n%s", reporter, follower, others, r.logs)
	}
}

// rests checks that a replica under which the API has gone stops its flow and its Lease,
// and says so once.
func (r *replica) rests(t *testing.T) {
	t.Helper()
	framework.Eventually(t, "the server flow to stop", func() error {
		if n := r.said("Feature lifecycle controller stopped"); n != 1 {
			return fmt.Errorf("it has stopped %d times, want once; the replica says:\n%s", n, r.logs)
		}
		return nil
	})
	_, planErr := r.Plan(t.Context(), colors, &v1alpha1.FeaturePlan{Spec: v1alpha1.FeaturePlanSpec{Enabled: ptr.To(false)}})
	_, cleanErr := r.Clean(t.Context(), colors)
	for what, err := range map[string]error{"Plan": planErr, "Clean": cleanErr} {
		if !errors.Is(err, operator.ErrNotRunning) {
			t.Errorf("%s when the API has gone: %v, want %v", what, err, operator.ErrNotRunning)
		}
	}
	begun := len(r.requests.after(0))
	// What was under way has ended by then.
	r.hears(t, begun, 1)
	begun = len(r.requests.after(0))
	r.hears(t, begun, 2)
	for _, sent := range r.requests.after(begun) {
		if sent.method != http.MethodGet || strings.Contains(sent.path, "/leases") || strings.HasSuffix(sent.path, "/featurereports") {
			t.Errorf("without the API the replica sent %s %s", sent.method, sent.path)
		}
	}
	// Once when it started on such a server, and once now. One that has just started may refuse
	// reports besides.
	if n := r.said(without); n != 2 {
		t.Errorf("the replica says %d times that the server does not have the API, want twice:\n%s", n, r.logs)
	}
}

// hears waits until the replica has heard so many times that there is no API, after its
// first requests.
func (r *replica) hears(t *testing.T, first, times int) {
	t.Helper()
	framework.Eventually(t, "the replica to hear that there is no API", func() error {
		sent := r.requests.after(first)
		heard := count(sent, func(sent request) bool {
			return strings.Contains(sent.path, "/featurereports/") && sent.code == http.StatusNotFound
		})
		if heard < times {
			return fmt.Errorf("it has heard it %d times, want %d; it sent %+v", heard, times, sent)
		}
		return nil
	})
}

// worksAlone starts a replica on a server without the API, and checks that it has the
// values of its command line and does nothing else.
func (o *thirdParty) worksAlone(t *testing.T, instance string, before []string) *replica {
	t.Helper()
	r := o.start(t, instance, func(c *operator.Config) {
		c.Control = control.Options{}
		// The owner is looked up once there is an API.
		c.OwnedByServiceAccount = true
		if err := c.Gate.Set(colors + "=true"); err != nil {
			t.Fatal(err)
		}
	})
	if r.origin != agent.FromNowhere {
		t.Errorf("%s: the values come from %s, want %s", instance, r.origin, agent.FromNowhere)
	}
	if got, want := r.found(), colors+"=true,"+borrowed+"=false"; got != want {
		t.Errorf("%s: the operator finds %s, want the values of its command line, %s", instance, got, want)
	}
	r.hears(t, 0, 2)
	select {
	case <-r.ended:
		t.Fatalf("%s: Start has returned: %v", instance, r.err)
	default:
	}
	_, planErr := r.Plan(t.Context(), colors, &v1alpha1.FeaturePlan{Spec: v1alpha1.FeaturePlanSpec{Enabled: ptr.To(false)}})
	_, cleanErr := r.Clean(t.Context(), colors)
	for what, err := range map[string]error{"Plan": planErr, "Clean": cleanErr} {
		if !errors.Is(err, operator.ErrNotRunning) {
			t.Errorf("%s: %s: %v, want %v", instance, what, err, operator.ErrNotRunning)
		}
	}
	if n := r.said("Not reporting feature gates"); n != 1 {
		t.Errorf("%s: the replica says %d times that it does not report, want once:\n%s", instance, n, r.logs)
	}
	// It may not read Features, which it is told, and not that there are none.
	if _, err := features(o.features, metav1.NamespaceSystem).Get(t.Context(), borrowed, metav1.GetOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("%s: the operator reads a Feature of Kubernetes: %v, want it refused", instance, err)
	}
	if on, why, err := everywhere.Ask(t.Context(), o.features, metav1.NamespaceSystem, borrowed); on || why == "" || err != nil {
		t.Errorf("%s: asked whether %s is on everywhere the answer is %t, %q, %v; want no, and no error", instance, borrowed, on, why, err)
	}
	for _, sent := range r.requests.after(0) {
		if sent.method != http.MethodGet {
			t.Errorf("%s: the replica sent %s %s", instance, sent.method, sent.path)
		}
	}
	o.w.nothingMade(t, o.namespace, before)
	return r
}

// nothingMade is an error if there is more in a namespace than before, or something of
// the API anywhere.
func (w *world) nothingMade(t *testing.T, namespace string, before []string) {
	t.Helper()
	if diff := cmp.Diff(before, w.keys(t, namespace)); diff != "" {
		t.Errorf("the namespace has other objects than before (-before +now):\n%s", diff)
	}
	features := w.keysWith(t, func(key string) bool {
		return strings.HasPrefix(key, "/registry/features/") || strings.HasPrefix(key, "/registry/featurereports/") || strings.HasPrefix(key, "/registry/featurevalues/")
	})
	if len(features) > 0 {
		t.Errorf("without the API there are %v", features)
	}
}
