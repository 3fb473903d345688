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
	"slices"
	"time"

	"github.com/spf13/cobra"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/feature-lifecycle/client/clientset/versioned"
)

const (
	cleanLong = `Remove what a feature that is off left behind in stored objects.

Starts a transition that clears it, as turning the feature off would have done. This cannot be undone: look first, with
"kubectl feature plan NAME --disable". It needs permission to create features/cleanup, which administrators have. It is refused
where nothing is left, or only what nothing may remove from live objects: the message names what to delete or replace.

With --wait the command follows the transition until nothing is left, or user action is needed.

With --client this command removes it, as the caller, in a cluster whose servers do not have the API, such as one of upstream's. It
refuses where a component has the gate on, or cannot be observed. First the server tries the change of each object (dry run); one that
is refused, or in which the server would change something else, too, ends the command before anything is changed. Then objects are
changed page by page, at most --max-writes a second, until the first surprise. Repeat a command that was interrupted: it continues with what is left.

With --output the Feature is printed, as it is once the clean-up has started or, with --wait, has ended.

Exit codes: 0 started, with --wait: nothing is left; 1 started, and user action is needed, also if the feature is on again; 2 started,
and the time to wait was over, or servers had not looked by then whether something is left;
3 the command failed or was refused. With --client: 0 nothing is left; 1 user action is needed, before anything was changed or
where the text says so; 2 done, or tried, and not everything could be examined; 3 refused, or stopped at the first surprise.`

	cleanExample = `  # What is left, and where?
  kubectl feature list --dangling
  kubectl feature plan ContainerStopSignals --disable

  # Remove it
  kubectl feature clean ContainerStopSignals --wait

  # In a cluster of upstream's servers: try it, then do it
  kubectl feature clean ContainerStopSignals --client --dry-run
  kubectl feature clean ContainerStopSignals --client`
)

// cleanOptions are the options of clean.
type cleanOptions struct {
	wait    bool
	timeout time.Duration
	objects *objects
	// byClient are the options of --client.
	byClient clientCleaning

	namespace string
	progress  *progress
	client    versioned.Interface
	genericiooptions.IOStreams
}

func newClean(b *base) *cobra.Command {
	o := &cleanOptions{objects: newObjects(), IOStreams: b.IOStreams}
	cmd := &cobra.Command{
		Use:               "clean NAME",
		Short:             "Remove what a feature that is off left behind",
		Long:              cleanLong,
		Example:           cleanExample,
		Args:              oneName,
		ValidArgsFunction: b.completeName(func(f *v1alpha1.Feature) bool { return dangling(&f.Status) }),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if err := o.byClient.validate(cmd); err != nil {
				return err
			}
			if o.byClient.wanted {
				o.namespace, o.progress = b.namespace(), b.progress()
				return o.runClient(cmd.Context(), b, namesOf(args)[0])
			}
			if err := checkTimeout(cmd, o.timeout, o.wait); err != nil {
				return err
			}
			if err := o.objects.complete(); err != nil {
				return err
			}
			o.namespace, o.progress = b.namespace(), b.progressBeside(o.objects)
			if o.client, err = b.client(); err != nil {
				return err
			}
			return o.run(cmd.Context(), namesOf(args)[0])
		},
	}
	o.objects.addFlags(cmd)
	o.byClient.addFlags(cmd)
	cmd.Flags().BoolVar(&o.wait, "wait", false, "Follow the transition until its end, or until user action is needed.")
	cmd.Flags().DurationVar(&o.timeout, "timeout", 5*time.Minute, "How long --wait waits; 0 is without limit.")
	return cmd
}

// run starts the transition, and follows it.
func (o *cleanOptions) run(ctx context.Context, name string) error {
	limit := time.Duration(0)
	if o.wait {
		limit = o.timeout
	}
	w, cancel := newFollower(ctx, o.client, limit)
	defer cancel()
	before, err := w.lookUp(o.namespace, name)
	switch {
	case errors.Is(err, errTimedOut):
		return fmt.Errorf("the server did not answer within %s; nothing was started", o.timeout)
	case err != nil:
		return err
	}
	started, err := o.client.FeaturesV1alpha1().Features(o.namespace).CreateCleanup(w.limited, name, &v1alpha1.FeatureCleanup{}, metav1.CreateOptions{})
	switch {
	case apierrors.IsForbidden(err):
		return fmt.Errorf("cleaning up after feature %s in %s needs permission to create features/cleanup: %w", name, o.namespace, err)
	case err != nil && w.limited.Err() != nil:
		return fmt.Errorf("cleaning up after feature %s in %s: the server did not answer, so it is not known whether it was started; kubectl feature describe %s%s shows it: %w",
			name, o.namespace, name, namespaceFlag(before), err)
	case err != nil:
		return fmt.Errorf("cleaning up after feature %s in %s: %w", name, o.namespace, err)
	}
	if err := o.show(ctx, name, &started.Status); err != nil || !o.wait {
		return err
	}
	return o.follow(w, before, started.Status.TransitionID)
}

// show prints what was started. With -o and --wait it prints at the end only.
func (o *cleanOptions) show(ctx context.Context, name string, started *v1alpha1.FeatureCleanupStatus) error {
	switch {
	case !o.objects.wanted():
		fmt.Fprintf(o.Out, "%s: clean-up started (transition %s)\n", title(name), printable(started.TransitionID))
		for i, task := range started.Tasks {
			fmt.Fprintf(o.Out, "  %d. %s\n", i+1, printable(task.Name))
		}
		return nil
	case o.wait:
		return nil
	}
	f, err := lookUp(ctx, o.client.FeaturesV1alpha1().Features(o.namespace), o.namespace, name)
	if err != nil {
		return fmt.Errorf("the clean-up after feature %s was started; %w", name, err)
	}
	return o.objects.print(o.Out, f)
}

// follow prints the progress of a transition until it ends, needs user action, or
// is superseded.
func (o *cleanOptions) follow(w *follower, before *v1alpha1.Feature, id string) error {
	c := &cleanup{id: id, before: before.Status.StateSince}
	last, name := before, before.Name
	err := w.until(before, func(f *v1alpha1.Feature) bool {
		last = f
		ended := c.see(f)
		if c.ours(f) {
			o.progress.of(f)
		}
		return ended
	})
	o.progress.end()
	switch {
	case errors.Is(err, errInterrupted):
		return fmt.Errorf("%w; the clean-up continues", err)
	case errors.Is(err, errTimedOut) && c.begun && !c.ours(last):
		fmt.Fprintf(o.ErrOut, "%s: timed out after %s: the clean-up is done, and whether something is left is not known: %s\n", title(name), o.timeout, cleanMessage(last))
		return exitError(ExitTimedOut)
	case errors.Is(err, errTimedOut):
		fmt.Fprintf(o.ErrOut, "%s: timed out after %s: %s; the clean-up continues\n", title(name), o.timeout, progressOf(last))
		return exitError(ExitTimedOut)
	case err != nil:
		return fmt.Errorf("feature %s in %s is being cleaned up, and is not followed any more: %w", name, o.namespace, err)
	case c.held != "":
		fmt.Fprintf(o.ErrOut, "%s: %s\n", title(name), c.held)
		return exitError(ExitHeld)
	case o.objects.wanted():
		return o.objects.print(o.Out, last)
	default:
		_, err := fmt.Fprintf(o.Out, "%s: nothing is left\n", title(name))
		return err
	}
}

// cleanup is the progress of a transition that was started.
type cleanup struct {
	id string
	// before is the time since which the feature had its state when the transition was
	// requested. Its state changes when the transition begins.
	before *metav1.Time
	// begun is true once it was observed: the first read may be outdated.
	begun bool
	// held has the reason why user action is needed, "" when it is not.
	held string
}

func (c *cleanup) ours(f *v1alpha1.Feature) bool {
	return f.Status.Transition != nil && f.Status.Transition.ID == c.id
}

// see judges a feature, and is true at the end. That nothing is left is true only
// where the servers have looked, of a feature that is off.
func (c *cleanup) see(f *v1alpha1.Feature) bool {
	status := &f.Status
	c.held = ""
	clean := meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionClean)
	switch {
	case c.ours(f):
		c.begun = true
		progress := meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionProgressing)
		if progress != nil && slices.Contains(holds, progress.Reason) {
			c.held = "it needs user action to continue; the clean-up is stored"
		}
		return c.held != ""
	case c.begun && status.Transition != nil:
		c.held = "another transition took the place of the clean-up: " + progressOf(f)
	case c.begun && clean != nil && clean.Reason == v1alpha1.ReasonStillUsed:
		c.held = "the clean-up is done: " + cleanMessage(f)
	case clean == nil || clean.Status == metav1.ConditionUnknown && clean.Reason != v1alpha1.ReasonInUse:
		return false
	case clean.Reason == v1alpha1.ReasonInUse || c.begun && status.State == v1alpha1.StateOn:
		c.held = fmt.Sprintf("the feature is %s again, so what is stored is in use: %s", printable(string(status.State)), cleanMessage(f))
	case c.begun && clean.Status == metav1.ConditionFalse:
		c.held = "the clean-up is done, and something was left again meanwhile: " + cleanMessage(f)
	default:
		past := c.begun || !c.before.Equal(status.StateSince)
		return past && status.State == v1alpha1.StateOff && status.Transition == nil && clean.Reason == v1alpha1.ReasonNothingLeft && clean.Status == metav1.ConditionTrue
	}
	return true
}

// cleanMessage returns the message of the condition Clean.
func cleanMessage(f *v1alpha1.Feature) string {
	clean := meta.FindStatusCondition(f.Status.Conditions, v1alpha1.ConditionClean)
	if clean == nil {
		return "no server has reported it yet"
	}
	return printable(cmp.Or(clean.Message, clean.Reason))
}
