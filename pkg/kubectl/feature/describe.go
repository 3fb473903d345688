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
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/cli-runtime/pkg/printers"
	"k8s.io/client-go/kubernetes"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/feature-lifecycle/client/clientset/versioned"
	"k8s.io/feature-lifecycle/lifecycle/transition"
	"k8s.io/kubernetes-features/pkg/kubectl/observe"
)

const (
	describeLong = `Show details of features: the value and its source, the state, the transition under way with its tasks, who uses the
feature and who differs, a rollout, whether other versions are safe, conditions and recent events.

With --output json or yaml it is one document for each feature: the Feature, the processes that use it, and the events.

Exit codes: 0 shown; 3 the command failed, at least for one feature.`

	describeExample = `  kubectl feature describe ContainerStopSignals

  # Which processes that use it are unreachable?
  kubectl feature describe ContainerStopSignals -o json | jq '.uses.processes[] | select(.alive == false)'`

	// maxDiffering limits the list of processes that differ; "uses" has all.
	maxDiffering = 10
	// maxEvents limits the list of the latest events.
	maxEvents = 10
)

var describeFormats = []string{"json", "yaml"}

// describeOptions are the options of describe.
type describeOptions struct {
	output    string
	observing observing

	namespace string
	palette   palette
	client    versioned.Interface
	core      kubernetes.Interface
	genericiooptions.IOStreams
}

func newDescribe(b *base) *cobra.Command {
	o := &describeOptions{IOStreams: b.IOStreams}
	cmd := &cobra.Command{
		Use:               "describe NAME...",
		Short:             "Show details of features",
		Long:              describeLong,
		Example:           describeExample,
		Args:              someNames,
		ValidArgsFunction: b.completeNames(func(*v1alpha1.Feature) bool { return true }),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if err := checkOutput(o.output, describeFormats...); err != nil {
				return err
			}
			o.namespace, o.palette = b.namespace(), b.palette()
			if o.client, o.core, err = b.readers(cmd.Context(), &o.observing); err != nil {
				return err
			}
			return o.run(cmd.Context(), namesOf(args))
		},
	}
	o.observing.addFlags(cmd.Flags())
	addOutput(cmd, &o.output, describeFormats...)
	return cmd
}

// run describes all features, and fails with what could not be read.
func (o *describeOptions) run(ctx context.Context, names []string) error {
	all, err := gatherReports(ctx, o.client, o.namespace)
	if err != nil {
		return err
	}
	show, err := o.printer()
	if err != nil {
		return err
	}
	signs := newSigns(o.core)
	return forAll(names, func(name string) error {
		f, err := lookUp(ctx, o.client.FeaturesV1alpha1().Features(o.namespace), o.namespace, name)
		if err != nil {
			return err
		}
		d := &description{palette: o.palette, feature: f}
		if d.used, err = all.of(ctx, signs, f); err != nil {
			return err
		}
		d.events, d.noEvents = o.events(ctx, f)
		return show(d)
	})
}

// events are the latest of a feature, oldest first, or why they could not be read.
func (o *describeOptions) events(ctx context.Context, f *v1alpha1.Feature) ([]corev1.Event, string) {
	of := fields.Set{"involvedObject.kind": "Feature", "involvedObject.name": f.Name}.AsSelector().String()
	list, err := o.core.CoreV1().Events(f.Namespace).List(ctx, metav1.ListOptions{FieldSelector: of})
	switch {
	case apierrors.IsForbidden(err):
		return nil, fmt.Sprintf("you may not list events in %s", f.Namespace)
	case err != nil:
		return nil, fmt.Sprintf("could not be read: %v", err)
	}
	// A feature that was deleted and recreated has the events of both.
	events := slices.DeleteFunc(list.Items, func(e corev1.Event) bool {
		return e.InvolvedObject.Name != f.Name || e.InvolvedObject.Kind != "Feature"
	})
	slices.SortStableFunc(events, func(a, b corev1.Event) int {
		return cmp.Or(lastSeen(&a).Compare(lastSeen(&b)), cmp.Compare(a.Name, b.Name))
	})
	return events[max(0, len(events)-maxEvents):], ""
}

func lastSeen(e *corev1.Event) time.Time {
	if !e.LastTimestamp.IsZero() {
		return e.LastTimestamp.Time
	}
	return e.EventTime.Time
}

// description is the data about one feature.
type description struct {
	palette palette
	feature *v1alpha1.Feature
	used    *usage
	events  []corev1.Event
	// noEvents has the reason why there are none, "" when they were read.
	noEvents string
}

// print writes the sections that are not empty.
func (d *description) print(w io.Writer) error {
	for _, section := range []func(io.Writer) error{
		d.printValues, d.printTransition, d.printUses, d.printRollout, d.printSafety, d.printConditions, d.printEvents,
	} {
		var text bytes.Buffer
		if err := section(&text); err != nil {
			return err
		}
		if _, err := w.Write(text.Bytes()); err != nil {
			return err
		}
	}
	return nil
}

// printValues prints the feature's value and its sources.
func (d *description) printValues(w io.Writer) error {
	f, status := d.feature, &d.feature.Status
	to := printers.GetNewTabWriter(w)
	line := fieldsOf(to)
	line("Name", f.Name)
	line("Namespace", f.Namespace)
	stage := orNone(string(status.Stage))
	if status.Default != nil {
		stage += ", " + transition.OnOff(*status.Default) + " by default"
	}
	if status.LockedToDefault {
		stage += ", locked: it cannot be set"
	}
	line("Stage", stage)
	line("Control", controlOf(f))
	line("Configured", configuredOf(f))
	if isObserved(f) {
		line("State", "not known: only servers with the API know it")
		line("Observed by", orNone(f.Annotations[observe.AnnotationFrom]))
	} else {
		line("State", stateOf(status))
	}
	if f.Spec.Paused {
		line("Paused", "yes: no transition starts and no task runs (kubectl feature resume "+f.Name+namespaceFlag(f)+")")
	}
	if status.Version != "" {
		stored := status.Version
		if len(status.StoredVersions) > 0 {
			stored += ", and perhaps " + strings.Join(status.StoredVersions, ", ")
		}
		line("Stored version", stored)
	}
	return to.Flush()
}

// printTransition prints the transition and its remaining tasks.
func (d *description) printTransition(w io.Writer) error {
	status := &d.feature.Status
	t := status.Transition
	if t == nil {
		return nil
	}
	text := fmt.Sprintf("%s, begun %s ago (id %s)", begun(t), ago(t.StartTime.Time), t.ID)
	if t.Interrupted {
		text += "; interrupted by a server of another version, and restarts"
	}
	fmt.Fprintf(w, "%s\n  %s\n", d.heading("Transition"), printable(text))
	for i, task := range status.Tasks {
		fmt.Fprintf(w, "  %d. %s%s\n", i+1, printable(task.Name), progressOfTask(&task))
		if task.Message != "" {
			fmt.Fprintf(w, "     %s\n", printableLines(task.Message, "     "))
		}
	}
	return nil
}

// begun returns the reason why a transition began.
func begun(t *v1alpha1.FeatureTransition) string {
	why := map[v1alpha1.FeatureTransitionReason]string{
		v1alpha1.TransitionConfiguration: "the configured value changed",
		v1alpha1.TransitionClean:         "a user requested the removal of leftovers",
		v1alpha1.TransitionVersion:       fmt.Sprintf("the version changed from %s to %s", t.FromVersion, t.ToVersion),
	}[t.Reason]
	return orNone(cmp.Or(why, string(t.Reason)))
}

// progressOfTask returns the progress of a task, and the number of its
// attempts.
func progressOfTask(task *v1alpha1.FeatureTask) string {
	text := ""
	if task.Total > 0 {
		text += "  " + bar(task.Done, task.Total)
	}
	if task.Attempts > 0 {
		text += fmt.Sprintf("  tried %s", count(int64(task.Attempts), "time"))
	}
	if task.LastAttemptTime != nil {
		text += fmt.Sprintf(", last %s ago", ago(task.LastAttemptTime.Time))
	}
	return text
}

// bar draws how much of something is done.
func bar(done, total int64) string {
	const width = 20
	// A writer of status may write any number, also one whose product overflows.
	share := float64(done) / float64(max(total, 1))
	filled := int(min(max(share, 0), 1) * width)
	return fmt.Sprintf("[%s%s] %d of %d", strings.Repeat("#", filled), strings.Repeat(".", width-filled), done, total)
}

// printUses prints the users of the feature, and those that differ.
func (d *description) printUses(w io.Writer) error {
	fmt.Fprintln(w, d.heading("Uses"))
	var counts bytes.Buffer
	if err := printCounts(&counts, d.palette, d.feature, false, false); err != nil {
		return err
	}
	indent(w, counts.String())
	// What was not observed is said once, for all features.
	unknown := slices.Clone(d.used.Unknown)
	if isObserved(d.feature) {
		unknown = nil
	}
	for _, why := range append(unknown, d.used.Unread) {
		if why != "" {
			fmt.Fprintf(w, "  Not known: %s\n", printable(why))
		}
	}
	d.printDiffering(w)
	d.printJoining(w)
	return nil
}

// printDiffering prints the first users of another value.
func (d *description) printDiffering(w io.Writer) {
	differing := slices.DeleteFunc(slices.Clone(d.used.Processes), func(p process) bool { return !p.Differs })
	if len(differing) == 0 {
		return
	}
	fmt.Fprintf(w, "  %s\n", d.palette.paint(red, fmt.Sprintf("Another value than that of %s: %d", expectedFrom(d.feature), len(differing))))
	for _, p := range differing[:min(maxDiffering, len(differing))] {
		who := printable(fmt.Sprintf("%s/%s %s", p.Component, p.Instance, p.Version))
		fmt.Fprintf(w, "    %s: %s, set: %s%s\n", who, transition.OnOff(p.Enabled), p.set(), printable(observedBy(p.Observed)))
	}
	if more := len(differing) - maxDiffering; more > 0 {
		fmt.Fprintf(w, "    and %d more: kubectl feature uses %s --mismatched%s\n", more, d.feature.Name, namespaceFlag(d.feature))
	}
}

// printJoining prints what nodes get when they join.
func (d *description) printJoining(w io.Writer) {
	if len(d.used.Joining) == 0 {
		return
	}
	fmt.Fprintln(w, "  Nodes that join:")
	for _, j := range d.used.Joining {
		text := printable(fmt.Sprintf("%s: %s%s", j.Component, transition.OnOff(j.Enabled), observedBy(j.Observed)))
		if j.Differs {
			text = d.palette.paint(red, text+"; another value than that of "+expectedFrom(d.feature))
		}
		fmt.Fprintf(w, "    %s\n", text)
	}
}

// printRollout prints a canary.
func (d *description) printRollout(w io.Writer) error {
	if d.feature.Spec.Rollout == nil && d.feature.Status.Rollout == nil {
		return nil
	}
	fmt.Fprintln(w, d.heading("Rollout"))
	var text bytes.Buffer
	if err := printRollout(&text, d.palette, d.feature); err != nil {
		return err
	}
	indent(w, text.String())
	return nil
}

// printSafety prints whether the adjacent versions are safe for the feature.
func (d *description) printSafety(w io.Writer) error {
	var text strings.Builder
	for _, side := range []struct{ name, kind string }{{"Upgrade", v1alpha1.ConditionUpgradeSafe}, {"Downgrade", v1alpha1.ConditionDowngradeSafe}} {
		c := meta.FindStatusCondition(d.feature.Status.Conditions, side.kind)
		if c == nil {
			continue
		}
		mark := map[metav1.ConditionStatus]color{metav1.ConditionTrue: green, metav1.ConditionFalse: red, metav1.ConditionUnknown: yellow}[c.Status]
		fmt.Fprintf(&text, "  %s: %s (%s): %s\n", side.name, d.palette.paint(mark, words[c.Status]), printable(c.Reason), printableLines(c.Message, "    "))
	}
	if text.Len() > 0 {
		fmt.Fprintf(w, "%s\n%s", d.heading("Other versions"), text.String())
	}
	return nil
}

// heading is that of a section.
func (d *description) heading(text string) string { return d.palette.paint(bold, text+":") }

// printConditions prints them with the whole message, which has the next step.
func (d *description) printConditions(w io.Writer) error {
	fmt.Fprintln(w, d.heading("Conditions"))
	if len(d.feature.Status.Conditions) == 0 {
		fmt.Fprintf(w, "  %s\n", none)
		return nil
	}
	var rows [][]string
	var colors []color
	for _, c := range d.feature.Status.Conditions {
		if c.Type == v1alpha1.ConditionUpgradeSafe || c.Type == v1alpha1.ConditionDowngradeSafe {
			continue // printed above
		}
		rows = append(rows, []string{c.Type, string(c.Status), c.Reason, ago(c.LastTransitionTime.Time), c.Message})
		mark := plain
		switch {
		case c.Type != v1alpha1.ConditionProgressing && c.Status == metav1.ConditionFalse, c.Reason == v1alpha1.ReasonBlocked, c.Reason == v1alpha1.ReasonRolloutHalted, c.Reason == v1alpha1.ReasonNotServed,
			c.Type == v1alpha1.ConditionProgressing && transition.Blocking(&d.feature.Status) != "":
			mark = red
		case c.Reason == v1alpha1.ReasonPaused:
			mark = yellow
		}
		colors = append(colors, mark)
	}
	text, err := table(d.palette, []string{"TYPE", "STATUS", "REASON", "SINCE", "MESSAGE"}, rows, colors)
	indent(w, text)
	return err
}

// printEvents prints the events.
func (d *description) printEvents(w io.Writer) error {
	fmt.Fprintln(w, d.heading("Events"))
	switch {
	case d.noEvents != "":
		fmt.Fprintf(w, "  %s\n", printable(d.noEvents))
		return nil
	case len(d.events) == 0:
		fmt.Fprintf(w, "  %s\n", none)
		return nil
	}
	var rows [][]string
	var colors []color
	for _, e := range d.events {
		age := ago(lastSeen(&e))
		if e.Count > 1 {
			age += fmt.Sprintf(" (x%d)", e.Count)
		}
		mark := plain
		if e.Type == corev1.EventTypeWarning {
			mark = yellow
		}
		rows, colors = append(rows, []string{age, e.Type, e.Reason, e.Message}), append(colors, mark)
	}
	text, err := table(d.palette, []string{"AGO", "TYPE", "REASON", "MESSAGE"}, rows, colors)
	indent(w, text)
	return err
}

// indent writes lines two columns further right.
func indent(w io.Writer, text string) {
	for line := range strings.Lines(text) {
		fmt.Fprint(w, "  ", line)
	}
}
