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
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/feature-lifecycle/client/clientset/versioned"
)

const (
	waitLong = `Wait until features reach a state or a condition, and print their progress.

It waits for a state (--for=state=Off) or a condition (--for=condition=Clean, or --for=condition=UsesMatch=False for another status
than True). A condition counts once it is about the present spec. Nothing is changed. It also waits for a blocked task, since
a user may act.

With --output each Feature is printed when it has come to it, and progress goes to the error stream.

Exit codes: 0 all have come to it; 2 the time to wait was over for some; 3 the command failed.`

	waitExample = `  # Until nothing of it is left
  kubectl feature wait ContainerStopSignals --for=state=Off --timeout=10m

  # Until all users have the same value, however long that takes
  kubectl feature wait ContainerStopSignals PodDeletionCost --for=condition=UsesMatch --timeout=0`
)

var allConditions = []string{
	v1alpha1.ConditionKnown, v1alpha1.ConditionConsistent, v1alpha1.ConditionProgressing, v1alpha1.ConditionUsesMatch,
	v1alpha1.ConditionClean, v1alpha1.ConditionUpgradeSafe, v1alpha1.ConditionDowngradeSafe,
}

// goal is the target of wait: a state, or a condition with a status.
type goal struct {
	state     v1alpha1.FeatureState
	condition string
	status    metav1.ConditionStatus
}

// goalOf reads a value of --for.
func goalOf(text string) (goal, error) {
	wrong := fmt.Errorf("--for=%s is no goal; write it like state=Off, condition=Clean or condition=UsesMatch=False", text)
	kind, value, found := strings.Cut(text, "=")
	if !found {
		return goal{}, wrong
	}
	switch kind {
	case "state":
		for _, state := range allStates {
			if strings.EqualFold(value, string(state)) {
				return goal{state: state}, nil
			}
		}
		return goal{}, fmt.Errorf("--for=%s: there is no such state; use %s", text, strings.Join(texts(allStates), ", "))
	case "condition":
		return conditionGoal(text, value)
	default:
		return goal{}, wrong
	}
}

// conditionGoal reads a type with or without status.
func conditionGoal(text, value string) (goal, error) {
	kind, status, given := strings.Cut(value, "=")
	if !given {
		status = string(metav1.ConditionTrue)
	}
	statuses := []metav1.ConditionStatus{metav1.ConditionTrue, metav1.ConditionFalse, metav1.ConditionUnknown}
	for _, known := range allConditions {
		if !strings.EqualFold(known, kind) {
			continue
		}
		for _, s := range statuses {
			if strings.EqualFold(string(s), status) {
				return goal{condition: known, status: s}, nil
			}
		}
		return goal{}, fmt.Errorf("--for=%s: there is no such status; use %s", text, strings.Join(texts(statuses), ", "))
	}
	return goal{}, fmt.Errorf("--for=%s: there is no such condition; use %s", text, strings.Join(allConditions, ", "))
}

// reached returns true when a feature has reached the goal. A condition about an
// earlier generation does not count, as for "kubectl wait".
func (g goal) reached(f *v1alpha1.Feature) bool {
	if g.condition == "" {
		return f.Status.State == g.state
	}
	c := meta.FindStatusCondition(f.Status.Conditions, g.condition)
	return c != nil && c.Status == g.status && (c.ObservedGeneration == 0 || c.ObservedGeneration >= f.Generation)
}

func (g goal) String() string {
	if g.condition == "" {
		return "state " + string(g.state)
	}
	return fmt.Sprintf("condition %s=%s", g.condition, g.status)
}

// waitOptions are the options of wait.
type waitOptions struct {
	goal    goal
	timeout time.Duration
	objects *objects

	namespace string
	progress  *progress
	client    versioned.Interface
	genericiooptions.IOStreams
}

func newWait(b *base) *cobra.Command {
	o := &waitOptions{objects: newObjects(), IOStreams: b.IOStreams}
	var what string
	cmd := &cobra.Command{
		Use:               "wait NAME... --for=(state=STATE | condition=TYPE[=STATUS])",
		Short:             "Wait for a state or a condition of features",
		Long:              waitLong,
		Example:           waitExample,
		Args:              someNames,
		ValidArgsFunction: b.completeNames(func(*v1alpha1.Feature) bool { return true }),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if err := required(cmd, "for", "--for=state=Off or --for=condition=Clean"); err != nil {
				return err
			}
			if o.goal, err = goalOf(what); err != nil {
				return err
			}
			if err := checkTimeout(cmd, o.timeout, true); err != nil {
				return err
			}
			if err := o.objects.complete(); err != nil {
				return err
			}
			o.namespace, o.progress = b.namespace(), b.progressBeside(o.objects)
			if o.client, err = b.client(); err != nil {
				return err
			}
			return o.run(cmd.Context(), namesOf(args))
		},
	}
	cmd.Flags().StringVar(&what, "for", "", "What to wait for: state=STATE, or condition=TYPE, or condition=TYPE=STATUS.")
	cmd.Flags().DurationVar(&o.timeout, "timeout", 5*time.Minute, "How long to wait for all features together; 0 is without limit.")
	o.objects.addFlags(cmd)
	_ = cmd.RegisterFlagCompletionFunc("for", cobra.FixedCompletions(goals(), cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

// goals returns completions of --for.
func goals() []cobra.Completion {
	var all []cobra.Completion
	for _, state := range allStates {
		all = append(all, "state="+string(state))
	}
	for _, kind := range allConditions {
		all = append(all, "condition="+kind)
	}
	return all
}

// run waits for one feature after the other; all share one time limit.
func (o *waitOptions) run(ctx context.Context, names []string) error {
	w, cancel := newFollower(ctx, o.client, o.timeout)
	defer cancel()
	seen := map[string]*v1alpha1.Feature{}
	for _, name := range names {
		f, err := w.lookUp(o.namespace, name)
		if errors.Is(err, errTimedOut) {
			fmt.Fprintf(o.ErrOut, "%s: timed out after %s waiting for the %s: the server did not answer\n", title(name), o.timeout, o.goal)
			return exitError(ExitTimedOut)
		}
		if err != nil {
			return err
		}
		seen[name] = f
	}
	late := false
	err := forAll(names, func(name string) error {
		reached, err := o.waitFor(w, seen[name])
		late = late || !reached
		return err
	})
	switch {
	case errors.Is(err, errInterrupted):
		return errInterrupted
	case err != nil:
		return err
	case late:
		return exitError(ExitTimedOut)
	default:
		return nil
	}
}

// waitFor waits for one feature, and is false when the time is over.
func (o *waitOptions) waitFor(w *follower, seen *v1alpha1.Feature) (bool, error) {
	name, last := seen.Name, seen
	err := w.until(seen, func(f *v1alpha1.Feature) bool {
		last = f
		if o.goal.reached(f) {
			return true
		}
		o.progress.of(f)
		return false
	})
	o.progress.end()
	switch {
	case err == nil && o.objects.wanted():
		return true, o.objects.print(o.Out, last)
	case err == nil:
		_, err = fmt.Fprintf(o.Out, "%s: has the %s\n", title(name), o.goal)
		return true, err
	case errors.Is(err, errTimedOut):
		fmt.Fprintf(o.ErrOut, "%s: timed out after %s waiting for the %s: %s\n", title(name), o.timeout, o.goal, progressOf(last))
		return false, nil
	case errors.Is(err, errInterrupted):
		return false, err
	default:
		return false, fmt.Errorf("feature %s in %s is not followed any more: %w", name, o.namespace, err)
	}
}
