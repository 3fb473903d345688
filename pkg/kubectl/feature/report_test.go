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
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/version"
	discovery "k8s.io/client-go/discovery/fake"
	clienttesting "k8s.io/client-go/testing"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/feature-lifecycle/lifecycle/tracker"
	"k8s.io/feature-lifecycle/lifecycle/transition"
)

// sampleReport is the page of the sample cluster, with a name that would be markup.
func sampleReport(t *testing.T) string {
	var out string
	inBubble(t, func(t *testing.T) {
		c := newSampleCluster(t)
		f := sample("Markup", v1alpha1.StageAlpha, true, false)
		f.Status.Uses[0].Component = `<script>alert("x")</script>`
		c.add(f, report("kube-apiserver", "a", "v1.36.3", "Markup"), report("kubelet", "n1", "v1.36.3", "Markup"), report("kubelet", "n6", "v1.35.0", "Markup"))
		ended := report("kubelet", "n9", "v1.36.3", "Markup")
		ended.Annotations = map[string]string{v1alpha1.AnnotationTerminating: "true"}
		c.add(ended)
		c.client.Discovery().(*discovery.FakeDiscovery).FakedServerVersion = &version.Info{GitVersion: "v1.36.3"}
		var code int
		if out, code = c.run("report", "-o", "html", "-A"); code != 0 {
			t.Fatalf("exit code %d: %s", code, out)
		}
	})
	return out
}

func TestReport(t *testing.T) {
	out := sampleReport(t)
	golden(t, "report.html", out)
	if strings.Count(out, "<script>") != 1 {
		t.Error("what comes from the cluster is not escaped")
	}
	if found := regexp.MustCompile(`(?i)\bsrc\s*=|href\s*=\s*"[^#]|url\(|@import|https?://`).FindString(out); found != "" {
		t.Errorf("the page is not self-contained: %s", found)
	}
	inBubble(t, func(t *testing.T) {
		c := newSampleCluster(t)
		c.client.PrependReactor("list", "featurereports", func(clienttesting.Action) (bool, runtime.Object, error) {
			return true, nil, apierrors.NewForbidden(schema.GroupResource{Resource: "featurereports"}, "", nil)
		})
		if out, code := c.run("report"); code != 0 || !strings.Contains(out, "not counted: you may not list FeatureReports in kube-system") {
			t.Errorf("without permission to list reports: exit code %d", code)
		}
		if out, code := newSampleCluster(t).run("report", "-o", "json"); code != ExitFailed || out != "error: unknown output format \"json\"; use html\n" {
			t.Errorf("exit code %d: %s", code, out)
		}
	})
}

// TestSameIssueIsShownOnce: a message about many features, such as a missing
// report of a server, is one entry that names them.
func TestSameIssueIsShownOnce(t *testing.T) {
	var features []v1alpha1.Feature
	for _, name := range []string{"A", "B", "C"} {
		f := sample(name, v1alpha1.StageBeta, true, true)
		condition(f, v1alpha1.ConditionConsistent, metav1.ConditionUnknown, v1alpha1.ReasonReportMissing, "d is live and has not reported")
		features = append(features, *f)
	}
	p := pageOf(features, reported{})
	if len(p.Troubles) != 1 || p.Troubles[0].Count != 3 || len(p.Troubles[0].Entries) != 1 || len(p.Troubles[0].Entries[0].Features) != 3 {
		t.Errorf("three features of which the same is said are told as %+v", p.Troubles)
	}
}

// TestPausedFeatureMayBeBlocked: it counts as both, and the refusal is shown.
func TestPausedFeatureMayBeBlocked(t *testing.T) {
	f := turningOff("A")
	feature := *f
	view := transition.View{
		Servers: []tracker.Server{{ID: "a", Reported: true, Knows: true, Version: "1.36", Gate: v1alpha1.ReportedFeature{Name: "A"}}},
	}
	condition(&feature, v1alpha1.ConditionProgressing, metav1.ConditionTrue, v1alpha1.ReasonBlocked, feature.Status.Tasks[0].Name+": shop/web refuses")
	feature.Spec.Paused = true
	// More than once: the first answer is what the second begins with.
	for range 3 {
		feature.Status = transition.Next(&feature, view, transition.DefaultSettings(), time.Now()).Status
	}
	p := pageOf([]v1alpha1.Feature{feature}, reported{})
	counts := map[string]int64{}
	for _, tile := range p.Tiles {
		counts[tile.Label] = tile.Count
	}
	if counts["blocked"] != 1 || counts["paused"] != 1 || counts["moving"] != 1 {
		t.Errorf("counted are %v", counts)
	}
	if len(p.Troubles) == 0 || p.Troubles[0].Key != "blocked" || !strings.HasSuffix(p.Troubles[0].Entries[0].Message, ": shop/web refuses") {
		t.Errorf("what needs attention first is %+v", p.Troubles)
	}
	if colorOf(&feature.Status) != red {
		t.Error("a list does not show it red")
	}
	feature.Spec.Paused = false
	resumed := transition.Next(&feature, view, transition.DefaultSettings(), time.Now()).Status
	if transition.Blocking(&resumed) != "" {
		t.Error("it is blocked before the task was tried again")
	}
}

// TestIssuesComeFirst in the matrix, by its kind, then what moves, then the others in
// their order.
func TestIssuesComeFirst(t *testing.T) {
	well := sample("A", v1alpha1.StageBeta, true, true)
	moves := sample("B", v1alpha1.StageBeta, true, true)
	moves.Status.Transition = &v1alpha1.FeatureTransition{ID: "t"}
	paused := sample("C", v1alpha1.StageBeta, true, true)
	condition(paused, v1alpha1.ConditionProgressing, metav1.ConditionFalse, v1alpha1.ReasonPaused, "paused")
	other := sample("F", v1alpha1.StageBeta, true, true)
	p := pageOf([]v1alpha1.Feature{*well, *moves, *paused, *danglingFeature("D"), *halted("E"), *other}, reported{})
	var names []string
	for _, f := range p.Features {
		names = append(names, f.Name)
	}
	if diff := cmp.Diff([]string{"E", "D", "C", "B", "A", "F"}, names); diff != "" {
		t.Errorf("unexpected order (-want +got):\n%s", diff)
	}
}

// TestCleanIsNotSuggestedWhereItFails: kube-apiserver cleans features of Kubernetes only, and
// those that are off.
func TestCleanIsNotSuggestedWhereItFails(t *testing.T) {
	for _, tc := range []struct {
		namespace, reason string
		on                bool
		want              []string
	}{
		{metav1.NamespaceSystem, v1alpha1.ReasonLeftovers, false, []string{"kubectl feature plan A --disable", "kubectl feature clean A"}},
		{metav1.NamespaceSystem, v1alpha1.ReasonUnreadable, true, []string{"kubectl feature describe A"}},
		{"widgets", v1alpha1.ReasonLeftovers, false, []string{"kubectl feature describe A -n widgets"}},
	} {
		namespace, want := tc.namespace, tc.want
		f := sample("A", v1alpha1.StageBeta, tc.on, tc.on)
		f.Namespace = namespace
		condition(f, v1alpha1.ConditionClean, metav1.ConditionFalse, tc.reason, "1 widgets have spec.color (widgets/lamp)")
		p := pageOf([]v1alpha1.Feature{*f}, reported{})
		if len(p.Troubles) != 1 {
			t.Fatalf("in %s the troubles are %+v, want one", namespace, p.Troubles)
		}
		if diff := cmp.Diff(want, p.Troubles[0].Entries[0].Next); diff != "" {
			t.Errorf("the next step in %s (-want +got):\n%s", namespace, diff)
		}
	}
}

func TestCommandsAreQuoted(t *testing.T) {
	for name, want := range map[string]string{
		"HPAScaleToZero": "HPAScaleToZero",
		"a.b-c_d":        "a.b-c_d",
		"a;reboot":       "'a;reboot'",
		"it's $(x)":      `'it'\''s $(x)'`,
		"":               "''",
	} {
		if got := quoted(name); got != want {
			t.Errorf("%q is written as %s, want %s", name, got, want)
		}
	}
}

func TestNumbers(t *testing.T) {
	for n, want := range map[int64]string{0: "0", 7: "7", 999: "999", 1000: "1,000", 12345: "12,345", 1234567: "1,234,567", -1000: "-1,000", -100: "-100"} {
		if got := number(n); got != want {
			t.Errorf("%d is written as %s, want %s", n, got, want)
		}
	}
}
