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

package transition

import (
	"strings"
	"testing"
	"unicode/utf8"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/utils/ptr"
)

func TestProgress(t *testing.T) {
	// conditions are pairs of type and reason.
	conditions := func(pairs ...string) v1alpha1.FeatureStatus {
		var s v1alpha1.FeatureStatus
		for i := 0; i < len(pairs); i += 2 {
			s.Conditions = append(s.Conditions, metav1.Condition{Type: pairs[i], Reason: pairs[i+1]})
		}
		return s
	}
	tasks := func(tasks ...v1alpha1.FeatureTask) v1alpha1.FeatureStatus {
		s := conditions(v1alpha1.ConditionUsesMatch, v1alpha1.ReasonUsersDiffer)
		s.Tasks = tasks
		return s
	}
	for name, tc := range map[string]struct {
		status v1alpha1.FeatureStatus
		want   string
	}{
		"nothing is known":      {v1alpha1.FeatureStatus{}, ""},
		"all is well":           {conditions(v1alpha1.ConditionProgressing, v1alpha1.ReasonComplete, v1alpha1.ConditionClean, v1alpha1.ReasonNothingLeft), ""},
		"a task":                {tasks(v1alpha1.FeatureTask{Name: v1alpha1.TaskWaitForUses}), "WaitForUses"},
		"its progress":          {tasks(v1alpha1.FeatureTask{Name: "ClearField/pods/spec.x", Total: 3, Message: "clearing"}, v1alpha1.FeatureTask{Name: "Next"}), "ClearField 0/3: clearing"},
		"no process knows it":   {conditions(v1alpha1.ConditionKnown, v1alpha1.ReasonNotKnown), v1alpha1.ReasonNotKnown},
		"servers disagree":      {conditions(v1alpha1.ConditionConsistent, v1alpha1.ReasonServersDisagree), v1alpha1.ReasonServersDisagree},
		"a report is missing":   {conditions(v1alpha1.ConditionConsistent, v1alpha1.ReasonReportMissing), v1alpha1.ReasonReportMissing},
		"paused":                {conditions(v1alpha1.ConditionProgressing, v1alpha1.ReasonPaused), v1alpha1.ReasonPaused},
		"versions are mixed":    {conditions(v1alpha1.ConditionProgressing, v1alpha1.ReasonMixedVersions), v1alpha1.ReasonMixedVersions},
		"a canary is halted":    {conditions(v1alpha1.ConditionProgressing, v1alpha1.ReasonRolloutHalted), v1alpha1.ReasonRolloutHalted},
		"its API is missing":    {conditions(v1alpha1.ConditionProgressing, v1alpha1.ReasonNotServed), v1alpha1.ReasonNotServed},
		"users differ":          {conditions(v1alpha1.ConditionUsesMatch, v1alpha1.ReasonUsersDiffer), v1alpha1.ReasonUsersDiffer},
		"something is left":     {conditions(v1alpha1.ConditionClean, v1alpha1.ReasonLeftovers), v1alpha1.ReasonLeftovers},
		"a reason of another":   {conditions(v1alpha1.ConditionClean, v1alpha1.ReasonPaused), ""},
		"the most important is": {conditions(v1alpha1.ConditionClean, v1alpha1.ReasonLeftovers, v1alpha1.ConditionUsesMatch, v1alpha1.ReasonUsersDiffer), v1alpha1.ReasonUsersDiffer},
	} {
		if got := Progress(&tc.status); got != tc.want {
			t.Errorf("%s: Progress returns %q, want %q", name, got, tc.want)
		}
	}
}

func TestLiveUsers(t *testing.T) {
	on, off := LiveUsers([]v1alpha1.FeatureUse{
		{Enabled: ptr.To(true), Count: 2, Stale: 9}, {Enabled: ptr.To(true), Count: 1}, {Enabled: ptr.To(false), Count: 4}, {Count: 16, Expected: 16},
	})
	if on != 3 || off != 4 {
		t.Errorf("%d on and %d off, want 3 and 4", on, off)
	}
}

func TestShortenCutsBetweenCharacters(t *testing.T) {
	for name, text := range map[string]string{
		"of one byte each":    strings.Repeat("a", 80),
		"of three bytes each": strings.Repeat("…", 80),
		"of mixed length":     "a" + strings.Repeat("é", 80),
	} {
		got := Shorten(text, MaxProgress)
		if !utf8.ValidString(got) || utf8.RuneCountInString(got) != MaxProgress || !strings.HasSuffix(got, "…") {
			t.Errorf("%s: %d characters, %q", name, utf8.RuneCountInString(got), got)
		}
	}
	if short := strings.Repeat("é", MaxProgress); Shorten(short, MaxProgress) != short {
		t.Errorf("%d characters are cut", MaxProgress)
	}
}
