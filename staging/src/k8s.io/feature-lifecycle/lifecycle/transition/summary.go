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
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
)

// MaxProgress is the number of characters to which tables cut Progress. They stay readable,
// and the whole message is in the object.
const MaxProgress = 60

// troubling lists the reasons that need attention when no task runs, the most important
// first.
var troubling = []struct {
	kind    string
	reasons []string
}{
	{v1alpha1.ConditionKnown, []string{v1alpha1.ReasonNotKnown}},
	{v1alpha1.ConditionConsistent, []string{v1alpha1.ReasonServersDisagree, v1alpha1.ReasonReportMissing}},
	{v1alpha1.ConditionProgressing, []string{v1alpha1.ReasonPaused, v1alpha1.ReasonMixedVersions, v1alpha1.ReasonRolloutHalted, v1alpha1.ReasonNotServed}},
	{v1alpha1.ConditionUsesMatch, []string{v1alpha1.ReasonUsersDiffer}},
	{v1alpha1.ConditionClean, []string{v1alpha1.ReasonUnreadable, v1alpha1.ReasonLeftovers, v1alpha1.ReasonMisdeclared}},
}

// Progress summarizes a feature: the task that runs and its progress, or why it needs
// attention, "" when all is well. The server's columns and tools show the same.
func Progress(status *v1alpha1.FeatureStatus) string {
	if len(status.Tasks) > 0 {
		task := &status.Tasks[0]
		text, _, _ := strings.Cut(task.Name, "/")
		if task.Total > 0 {
			text = fmt.Sprintf("%s %d/%d", text, task.Done, task.Total)
		}
		if task.Message != "" {
			text += ": " + task.Message
		}
		return text
	}
	for _, t := range troubling {
		c := meta.FindStatusCondition(status.Conditions, t.kind)
		if c != nil && slices.Contains(t.reasons, c.Reason) {
			return c.Reason
		}
	}
	return ""
}

// LiveUsers counts the live users of status.uses by the value that they found. Those
// that are unreachable, or have not reported, are in neither number.
func LiveUsers(counts []v1alpha1.FeatureUse) (on, off int64) {
	for _, use := range counts {
		switch {
		case use.Enabled == nil:
		case *use.Enabled:
			on += int64(use.Count)
		default:
			off += int64(use.Count)
		}
	}
	return on, off
}

// Shorten cuts a text to a number of characters, at least 1, of which the last one
// shows that it was cut.
func Shorten(text string, most int) string {
	characters := []rune(text)
	if len(characters) <= most {
		return text
	}
	return string(characters[:most-1]) + "…"
}
