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
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/component-base/featuregate"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/feature-lifecycle/client/clientset/versioned"
	"k8s.io/feature-lifecycle/lifecycle/transition"
	"k8s.io/kubernetes-features/pkg/featurelifecycle/catalog"
	"k8s.io/utils/ptr"
)

const (
	planLong = `Show what a change of a feature would do, and change nothing.

The servers look for the objects that the tasks of the change would touch, who would have to follow, which gates depend on the
feature, and what would hold the change until a user acts. That needs permission to create features/plan, which administrators
have, and takes a while where there are many objects.

Exit codes: 0 nothing would hold it; 1 blocked: user action would be needed; 2 nothing is known to hold it, but the server that
answered cannot know everything, as right after processes have started; 3 the command failed.`

	planExample = `  # What would be removed?
  kubectl feature plan ContainerStopSignals --disable

  # What would a move of the cluster to 1.36 mean for it?
  kubectl feature plan HPAScaleToZero --to=1.36

  # May a script continue?
  kubectl feature plan ContainerStopSignals --enable -o json > plan.json`
)

var planFormats = []string{"json", "yaml", outputName}

// planOptions are the options of plan.
type planOptions struct {
	enable, disable bool
	to              string
	output          string

	namespace string
	palette   palette
	progress  *progress
	client    versioned.Interface
	genericiooptions.IOStreams
}

func newPlan(b *base) *cobra.Command {
	o := &planOptions{IOStreams: b.IOStreams}
	cmd := &cobra.Command{
		Use:               "plan NAME (--enable | --disable | --to=MINOR)",
		Short:             "Show what a change of a feature would do",
		Long:              planLong,
		Example:           planExample,
		Args:              oneName,
		ValidArgsFunction: b.completeName(func(*v1alpha1.Feature) bool { return true }),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if err := o.validate(cmd); err != nil {
				return err
			}
			o.namespace, o.palette, o.progress = b.namespace(), b.palette(), b.progress()
			if o.client, err = b.client(); err != nil {
				return err
			}
			return o.run(cmd.Context(), namesOf(args)[0])
		},
	}
	cmd.Flags().BoolVar(&o.enable, "enable", false, "Plan to turn the feature on.")
	cmd.Flags().BoolVar(&o.disable, "disable", false, "Plan to turn the feature off.")
	cmd.Flags().StringVar(&o.to, "to", "", "Plan to move the cluster to this minor version, for example 1.37.")
	complete(cmd, "to", b.adjacentVersions)
	addOutput(cmd, &o.output, planFormats...)
	return cmd
}

// validate fails unless the flags select a plan.
func (o *planOptions) validate(cmd *cobra.Command) error {
	asked := 0
	for _, yes := range []bool{o.enable, o.disable, cmd.Flags().Changed("to")} {
		if yes {
			asked++
		}
	}
	if asked != 1 {
		return errors.New("specify the change: --enable, --disable or --to=MINOR, one of them")
	}
	if !o.enable && !o.disable {
		if _, err := minorVersion(o.to, "1.37"); err != nil {
			return err
		}
	}
	return checkOutput(o.output, planFormats...)
}

// spec is the change.
func (o *planOptions) spec() v1alpha1.FeaturePlanSpec {
	if o.enable || o.disable {
		return v1alpha1.FeaturePlanSpec{Enabled: ptr.To(o.enable)}
	}
	return v1alpha1.FeaturePlanSpec{TargetVersion: o.to}
}

// wanted is the change in words.
func (o *planOptions) wanted() string {
	switch {
	case o.enable:
		return "turn it on"
	case o.disable:
		return "turn it off"
	default:
		return "move the cluster to " + o.to
	}
}

// run requests the plan, prints it, and fails with the exit code.
func (o *planOptions) run(ctx context.Context, name string) error {
	features := o.client.FeaturesV1alpha1().Features(o.namespace)
	f, err := lookUp(ctx, features, o.namespace, name)
	if err != nil {
		return err
	}
	if o.progress.live && o.output == "" {
		o.progress.say("the servers are looking for what the change would touch …")
	}
	plan, err := features.CreatePlan(ctx, name, &v1alpha1.FeaturePlan{Spec: o.spec()}, metav1.CreateOptions{})
	o.progress.clear()
	switch {
	case apierrors.IsForbidden(err):
		return fmt.Errorf("planning to %s for feature %s in %s needs permission to create features/plan: %w", o.wanted(), name, o.namespace, err)
	case err != nil:
		return fmt.Errorf("planning to %s for feature %s in %s: %w", o.wanted(), name, o.namespace, err)
	}
	switch {
	case structured(o.output):
		plan.APIVersion, plan.Kind = v1alpha1.SchemeGroupVersion.String(), "FeaturePlan"
		err = printStructured(o.Out, o.output, plan)
	case o.output == outputName:
		_, err = fmt.Fprintln(o.Out, title(name))
	default:
		err = o.print(f, &plan.Status)
	}
	switch {
	case err != nil:
		return err
	case len(plan.Status.Blockers) > 0:
		return exitError(ExitBlocked)
	case len(plan.Status.Unknown) > 0:
		return exitError(ExitUnknown)
	default:
		return nil
	}
}

// print writes the plan as text; its last line is the answer.
func (o *planOptions) print(f *v1alpha1.Feature, plan *v1alpha1.FeaturePlanStatus) error {
	w := o.Out
	heading := func(text string) { fmt.Fprintln(w, o.palette.paint(bold, text+":")) }
	fmt.Fprintf(w, "%s: %s; now it is %s.\n", title(f.Name), o.wanted(), stateOf(&f.Status))
	if c := plan.Configured; c != nil {
		fmt.Fprintf(w, "The value would be %s (%s).\n", transition.OnOff(c.Value), printable(string(c.Source)))
	}
	if len(plan.Tasks) > 0 {
		heading("Tasks")
		for i := range plan.Tasks {
			printPlanned(w, o.palette, i+1, &plan.Tasks[i])
		}
	}
	if len(plan.Uses) > 0 {
		heading("Users of another value")
		for _, use := range plan.Uses {
			fmt.Fprintf(w, "  %s\n", printable(planned(use)))
		}
	}
	for _, list := range []struct {
		heading string
		lines   []string
		color   color
	}{
		{"Gates that would be on, and depend on it", plan.Dependents, plain},
		{"Gates that would be off, and that it depends on", plan.Dependencies, plain},
		{"What would hold it until a user acts", plan.Blockers, red},
		{"Not known", plan.Unknown, yellow},
	} {
		if len(list.lines) > 0 {
			heading(list.heading)
			for _, line := range list.lines {
				fmt.Fprintf(w, "  %s\n", o.palette.paint(list.color, "* "+printableLines(line, "    ")))
			}
		}
	}
	if o.disable {
		o.printPods(f)
	}
	_, err := fmt.Fprintln(w, answerOf(plan))
	return err
}

// printPods prints what becomes of running Pods that use a gate of Kubernetes once kubelets
// start with it off, as it was seen on nodes. No server knows it.
func (o *planOptions) printPods(f *v1alpha1.Feature) {
	trial, ok := catalog.Trials[featuregate.Feature(f.Name)]
	if ok && f.Namespace == metav1.NamespaceSystem {
		fmt.Fprintf(o.Out, "%s\n  Each %s.\n", o.palette.paint(bold, "Running Pods that use it, once their kubelet starts with it off:"), trial.Pods)
	}
}

// printPlanned prints a task, and the objects that it would find.
func printPlanned(w io.Writer, palette palette, number int, task *v1alpha1.PlannedTask) {
	state := string(task.State)
	if state == "" {
		state = "would not run; what it finds is left over"
	}
	fmt.Fprintf(w, "  %d. %s (%s)\n", number, printable(task.Name), printable(state))
	if task.Message != "" {
		fmt.Fprintf(w, "     %s\n", printableLines(task.Message, "     "))
	}
	for _, found := range task.Leftovers {
		resource := found.Resource
		if found.Group != "" {
			resource += "." + found.Group
		}
		text := fmt.Sprintf("%d %s", found.Count, resource)
		if found.Field != "" {
			text += " with " + found.Field
		}
		if len(found.Examples) > 0 {
			text += ": " + strings.Join(found.Examples, ", ")
		}
		if int64(len(found.Examples)) < found.Count && len(found.Examples) > 0 {
			text += ", …"
		}
		fmt.Fprintf(w, "     %s\n", palette.paint(yellow, "- "+printable(text)))
	}
}

// planned returns the processes that would have to follow.
func planned(use v1alpha1.FeatureUse) string {
	who := strings.TrimSpace(use.Component + " " + use.Version)
	examples := ""
	if len(use.Examples) > 0 {
		examples = ": " + strings.Join(use.Examples, ", ")
	}
	if use.Enabled == nil {
		return fmt.Sprintf("%d of %s that did not report%s", use.Expected, who, examples)
	}
	stale := ""
	if use.Stale > 0 {
		stale = fmt.Sprintf(", and %d unreachable", use.Stale)
	}
	return fmt.Sprintf("%d of %s with the feature %s%s%s", use.Count, who, transition.OnOff(*use.Enabled), stale, examples)
}

// objectsOf counts the objects that tasks handle, each once: the least and the most that
// there can be. Both are the same if no two tasks handle one resource, or if the tasks
// name all that they find. Otherwise two tasks may have found the same ones.
func objectsOf(tasks []v1alpha1.PlannedTask) (least, most int64) {
	type objects struct {
		names        sets.Set[string]
		largest, sum int64
		// named is true if all are, single if one task alone handles the resource.
		named, single bool
	}
	found := map[schema.GroupResource]*objects{}
	for _, task := range tasks {
		for _, l := range task.Leftovers {
			resource := schema.GroupResource{Group: l.Group, Resource: l.Resource}
			o, again := found[resource]
			if !again {
				o = &objects{names: sets.New[string](), named: true}
				found[resource] = o
			}
			o.single = !again
			o.names.Insert(l.Examples...)
			o.largest, o.sum = max(o.largest, l.Count), o.sum+l.Count
			o.named = o.named && int64(len(l.Examples)) == l.Count
		}
	}
	for _, o := range found {
		names := int64(o.names.Len())
		switch {
		case o.single:
			least, most = least+o.sum, most+o.sum
		case o.named:
			least, most = least+names, most+names
		default:
			least, most = least+max(o.largest, names), most+o.sum
		}
	}
	return least, most
}

// answerOf is the plan in a line.
func answerOf(plan *v1alpha1.FeaturePlanStatus) string {
	least, most := objectsOf(plan.Tasks)
	objects := count(most, "object")
	if least < most {
		objects = fmt.Sprintf("%d to %s", least, objects)
	}
	work := cmp.Or(map[bool]string{true: "no task would run"}[len(plan.Tasks) == 0],
		fmt.Sprintf("%s, %s", count(int64(len(plan.Tasks)), "task"), objects))
	switch {
	case len(plan.Blockers) > 0:
		return fmt.Sprintf("Blocked by %s: %s.", count(int64(len(plan.Blockers)), "cause"), work)
	case len(plan.Unknown) > 0:
		return fmt.Sprintf("Nothing is known to hold it, but not everything is known: %s.", work)
	default:
		return fmt.Sprintf("Nothing would hold it: %s.", work)
	}
}
