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
	"math"
	"strings"
	"testing"
	"time"
	"unicode"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/utils/ptr"
)

// hostile is text with all that a writer may send: color, the window's title, an
// empty screen, a line that imitates one of the command's. It also has a sequence of
// C1, the other direction of writing, and a byte that is no UTF-8.
const hostile = "red\x1b[31m\x1b]0;owned\a\x1b[2J\nfeature.features.k8s.io/Fake: has the state Off\tTAB\r\u009b2J\u202egnp\x9b2J\v\xff"

func TestPrintable(t *testing.T) {
	for text, want := range map[string]string{
		"":              "",
		"größer, 5 ≠ 6": "größer, 5 ≠ 6",
		"\u00a0":        "\u00a0",
		"a\tb\nc":       "a b c",
		"\x1b[31m\a\r":  "^[[31m^G^M",
		"\x7f\u0085":    `^?\u0085`,
		"\u2028\u200b":  `\u2028\u200b`,
		"\x9b2J\xff":    `\x9b2J\xff`,
	} {
		if got := printable(text); got != want || printable(got) != got {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
	if got, want := printableLines("a\r\n\nb\x1b\n\n", "> "), "a\n\n> b^["; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// hostileCluster has a Feature whose every text is hostile, with all related
// objects.
func hostileCluster(t *testing.T) *cluster {
	t.Helper()
	f := turningOff("Evil")
	f.Annotations = map[string]string{v1alpha1.AnnotationRequestedBy: hostile}
	status := &f.Status
	status.Stage, status.Version, status.StoredVersions = hostile, hostile, []string{hostile}
	status.Transition.ID, status.Transition.Reason = hostile, hostile
	status.Tasks[0].Name, status.Tasks[0].Message = hostile, hostile
	status.Uses = []v1alpha1.FeatureUse{
		{Component: hostile, Version: hostile, Enabled: ptr.To(true), Count: 1, Stale: 1, Examples: []string{hostile}},
		{Component: hostile, Version: hostile, Expected: 1, Examples: []string{hostile}},
	}
	f.Spec.Rollout = &v1alpha1.FeatureRollout{Percent: ptr.To[int32](5), Components: []string{hostile}}
	status.Rollout = &v1alpha1.FeatureRolloutStatus{StartTime: metav1.NewMicroTime(time.Now()), Halted: true, Message: hostile, FailedInstances: []string{hostile}}
	for _, kind := range allConditions {
		condition(f, kind, metav1.ConditionFalse, hostile, hostile)
	}
	c := newCluster(t, f)
	r := report(hostile, hostile, hostile, "Evil", on)
	r.Name, r.Spec.NodeName, r.Spec.EmulationVersion = "evil", hostile, hostile
	c.add(r, event("e", "Evil", hostile, hostile, hostile, time.Minute, 1))
	c.client.PrependReactor("create", "features/plan", func(clienttesting.Action) (bool, runtime.Object, error) {
		all := []string{hostile}
		return true, &v1alpha1.FeaturePlan{Status: v1alpha1.FeaturePlanStatus{
			Configured: &v1alpha1.FeatureConfiguration{Source: hostile},
			Tasks: []v1alpha1.PlannedTask{{Name: hostile, State: hostile, Message: hostile, Leftovers: []v1alpha1.ResourceLeftovers{
				{Group: hostile, Resource: hostile, Field: hostile, Count: 1, Examples: all},
			}}},
			Uses: status.Uses, Dependents: all, Dependencies: all, Blockers: all, Unknown: all,
		}}, nil
	})
	c.client.PrependReactor("create", "features/cleanup", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, &v1alpha1.FeatureCleanup{Status: v1alpha1.FeatureCleanupStatus{TransitionID: hostile, Tasks: status.Tasks}}, nil
	})
	return c
}

// TestHostileText shows that no text of the cluster does anything to the screen, nor
// looks like a line of the command's own.
func TestHostileText(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		commands := []string{
			"list", "list -o wide", "describe Evil", "uses Evil", "uses Evil -o wide", "uses Evil -o name", "plan Evil --enable", "rollout Evil",
			"wait Evil --for=state=Off --timeout=1s", "disable Evil", "disable Evil --wait --timeout=1s", "pause Evil", "clean Evil",
			"clean Evil --wait --timeout=1s", "enable Evil --wait --timeout=1s",
		}
		golden(t, "hostile.txt", hostileCluster(t).session(commands...))
		for _, command := range commands {
			out, _ := hostileCluster(t).run(strings.Fields(command)...)
			noEscapes(t, command, out)
			painted, _ := hostileCluster(t).onScreen(strings.Fields(command)...)
			for _, ours := range []color{bold, red, green, yellow, "\x1b[0m", "\r\x1b[K"} {
				painted = strings.ReplaceAll(painted, string(ours), "")
			}
			if strings.Contains(painted, "redfeature") {
				t.Errorf("%s: a color of the cluster's is on the screen:\n%q", command, painted)
			}
			noEscapes(t, command+" on a terminal", painted)
		}
	})
}

// TestHostileErrors covers errors that repeat text from the cluster.
func TestHostileErrors(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		f := dynamic("Evil", v1alpha1.StateOff)
		condition(f, v1alpha1.ConditionKnown, metav1.ConditionFalse, v1alpha1.ReasonNotKnown, hostile)
		out, code := newCluster(t, f).run("enable", "Evil")
		noEscapes(t, "an error", out)
		if code != ExitFailed || !strings.HasPrefix(out, "error: feature Evil: red^[[31m^[]0;owned^G^[[2J\n  feature.") {
			t.Errorf("exit code %d: %q", code, out)
		}
		var text bytes.Buffer
		r := &result{Message: hostile, Unknown: []string{hostile}, Features: []answer{{Name: hostile, State: hostile, Safe: metav1.ConditionFalse, Reason: hostile, Why: hostile, Next: hostile}}}
		for _, print := range []printer{printText, printTable} {
			if err := print(&text, r); err != nil {
				t.Fatal(err)
			}
		}
		noEscapes(t, "upgrade-check", text.String())
	})
}

func noEscapes(t *testing.T, what, out string) {
	t.Helper()
	for line := range strings.Lines(out) {
		if strings.HasPrefix(line, "feature.features.k8s.io/Fake") {
			t.Errorf("%s has a line of the cluster's:\n%s", what, out)
		}
		if at := strings.IndexFunc(strings.TrimSuffix(line, "\n"), func(r rune) bool { return !unicode.IsPrint(r) }); at >= 0 {
			t.Errorf("%s has a control character: %q", what, line)
		}
	}
	if strings.ToValidUTF8(out, "") != out {
		t.Errorf("%s has a byte that is no UTF-8: %q", what, out)
	}
}

// TestBar shows that no number of a status breaks it.
func TestBar(t *testing.T) {
	for _, tc := range []struct {
		done, total int64
		want        string
	}{
		{0, 0, "[....................] 0 of 0"},
		{1, 2, "[##########..........] 1 of 2"},
		{3, 2, "[####################] 3 of 2"},
		{5e17, 6e17, "[################....] 500000000000000000 of 600000000000000000"},
		{math.MaxInt64, 1, "[####################] 9223372036854775807 of 1"},
		{math.MinInt64, -1, "[....................] -9223372036854775808 of -1"},
		{-5, 10, "[....................] -5 of 10"},
	} {
		if got := bar(tc.done, tc.total); got != tc.want {
			t.Errorf("%s, want %s", got, tc.want)
		}
	}
}

// TestFault shows that a fault of the command's own is a failure, and no answer.
func TestFault(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		c := newCluster(t)
		c.client.PrependReactor("get", "features", func(clienttesting.Action) (bool, runtime.Object, error) { panic("an unexpected number") })
		out, code := c.run("rollout", "A")
		if code != ExitFailed || !strings.HasPrefix(out, "error: this is a fault of kubectl-feature, please report it: an unexpected number\n  goroutine ") {
			t.Errorf("exit code %d: %s", code, out)
		}
	})
}

// TestHugeNumbers covers a status that other users may write.
func TestHugeNumbers(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		f := turningOff("Huge")
		f.Status.Tasks[0].Done, f.Status.Tasks[0].Total = 5e17, 6e17
		out, code := newCluster(t, f).run("describe", "Huge")
		if code != ExitSafe || !strings.Contains(out, "[################....] 500000000000000000 of 600000000000000000") {
			t.Errorf("exit code %d: %s", code, out)
		}
	})
}

// TestEventTypes keeps a hostile type out of the colors.
func TestEventTypes(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		c := newSampleCluster(t)
		c.add(event("e", "HPAScaleToZero", corev1.EventTypeWarning, "Reason\u009b31m", hostile, time.Minute, 1))
		out, _ := c.run("describe", "HPAScaleToZero")
		noEscapes(t, "an event", out)
		if !strings.Contains(out, `Reason\u009b31m`) {
			t.Errorf("the reason is not there:\n%s", out)
		}
	})
}
