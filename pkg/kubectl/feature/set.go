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
	"time"

	"github.com/spf13/cobra"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/kubernetes"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/feature-lifecycle/client/clientset/versioned"
	featuresclient "k8s.io/feature-lifecycle/client/clientset/versioned/typed/features/v1alpha1"
	"k8s.io/utils/ptr"
)

const (
	setLong = `

The request is stored in spec.enabled of each Feature, and all processes follow within seconds. Only features that kube-apiserver
names in --dynamic-features can be changed so; for any other the command names the next step. Nothing is written unless all
features can be changed.

An existing spec.rollout is left as it is. --percent, --components and --at replace it as a whole: what is not given does not limit.
With --at all instances get to know the moment and confirm it, and switch together then; until then those have the value that a
canary gave it to, none without one.

The command ends when the servers have answered what becomes of the request. With --wait it follows the transition until the
feature has its final state, or user action is needed: a task is blocked, the rollout was halted, or the feature is paused. Where
spec.rollout limits the value it is done when all instances that it is for have it, which takes permission to list FeatureReports.

Features are looked for in kube-system, where those of Kubernetes are, whatever the namespace of the context is.
`
	exitCodesOfSet = `
Exit codes: 0 stored, with --wait: the final state is reached; 1 stored, and user action is needed; 2 stored, and the time to wait
was over; 3 the command failed or was refused.`

	enableExample = `  # Turn a feature on everywhere
  kubectl feature enable ContainerStopSignals

  # Turn it on and wait until all processes use it
  kubectl feature enable ContainerStopSignals --wait --timeout=10m

  # Turn it on in a quarter of all controller managers and schedulers
  kubectl feature enable ContainerStopSignals --percent=25 --components=kube-controller-manager,kube-scheduler

  # Turn it on everywhere together, in five minutes
  kubectl feature enable ContainerStopSignals --at=5m --wait --timeout=10m

  # Ask the server whether it would accept that
  kubectl feature enable ContainerStopSignals --dry-run=server`

	disableExample = `  # Turn a feature off, and wait until nothing of it is left
  kubectl feature disable ContainerStopSignals --wait

  # Turn it off in the schedulers first
  kubectl feature disable PodDeletionCost --components=kube-scheduler`

	resetLong = `Take back what was requested of features.

Removes spec.enabled and spec.rollout. The features get the value that kube-apiserver's command line or the gate's default gives
them. That is also the way to remove a request that has no effect any more, since the feature is not dynamic.
`
	resetExample = `  # Back to the value of the command line
  kubectl feature reset ContainerStopSignals --wait`

	// fieldManager is the manager of spec, for managed fields.
	fieldManager = "kubectl-feature"
	// answerTimeout limits the time for which a command without --wait waits for
	// the servers to observe the request. They need less than a second.
	answerTimeout = 5 * time.Second
)

// setOptions are the options of enable, disable and reset.
type setOptions struct {
	request    request
	percent    int32
	components []string
	at         string
	wait       bool
	timeout    time.Duration
	dryRun     dryRun

	namespace string
	progress  *progress
	client    versioned.Interface
	// core reads Leases and Nodes, for liveness.
	core kubernetes.Interface
	genericiooptions.IOStreams
}

func newEnable(b *base) *cobra.Command {
	cmd := newSet(b, "enable", ptr.To(true))
	cmd.Short = "Turn dynamic features on"
	cmd.Long = "Turn dynamic features on." + setLong + exitCodesOfSet
	cmd.Example = enableExample
	return cmd
}

func newDisable(b *base) *cobra.Command {
	cmd := newSet(b, "disable", ptr.To(false))
	cmd.Short = "Turn dynamic features off"
	cmd.Long = "Turn dynamic features off." + setLong + exitCodesOfSet
	cmd.Example = disableExample
	return cmd
}

func newReset(b *base) *cobra.Command {
	cmd := newSet(b, "reset", nil)
	cmd.Short = "Take back what enable and disable requested"
	cmd.Long = resetLong + exitCodesOfSet
	cmd.Example = resetExample
	return cmd
}

// newSet makes a command that requests a value, or takes a request back if that is
// nil.
func newSet(b *base, verb string, enabled *bool) *cobra.Command {
	o := &setOptions{request: request{enabled: enabled}, IOStreams: b.IOStreams}
	cmd := &cobra.Command{
		Use:  verb + " NAME...",
		Args: someNames,
		ValidArgsFunction: b.completeNames(func(f *v1alpha1.Feature) bool {
			if enabled == nil {
				return f.Spec.Enabled != nil || f.Spec.Rollout != nil
			}
			return f.Status.Control == v1alpha1.ControlDynamic
		}),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.complete(b, cmd); err != nil {
				return err
			}
			return o.run(cmd.Context(), namesOf(args))
		},
	}
	if enabled != nil {
		cmd.Flags().Int32Var(&o.percent, "percent", 100, "The share of the instances that take the value, 0 to 100. Replaces spec.rollout.")
		cmd.Flags().StringSliceVar(&o.components, "components", nil, "The components whose instances take the value, for example kube-scheduler; all without it. Replaces spec.rollout.")
		cmd.Flags().StringVar(&o.at, "at", "", atUsage+" Replaces spec.rollout.")
		completeList(cmd, "components", b.components)
	}
	cmd.Flags().BoolVar(&o.wait, "wait", false, "Follow the transition until its end, or until user action is needed.")
	cmd.Flags().DurationVar(&o.timeout, "timeout", 5*time.Minute, "How long --wait waits for all features together; 0 is without limit.")
	o.dryRun.addFlag(cmd)
	return cmd
}

// complete validates the flags and makes the client.
func (o *setOptions) complete(b *base, cmd *cobra.Command) (err error) {
	flags := cmd.Flags()
	if flags.Changed("percent") || flags.Changed("components") || flags.Changed("at") {
		o.request.rollout = &v1alpha1.FeatureRollout{Components: o.components}
		if flags.Changed("percent") {
			o.request.rollout.Percent = &o.percent
		}
	}
	if flags.Changed("at") {
		now, timeout := time.Now(), time.Duration(-1)
		if o.wait {
			timeout = o.timeout
		}
		if o.request.rollout.At, err = parseMoment(o.at, now); err != nil {
			return err
		}
		if err := checkMoment(cmd, o.request.rollout.At, timeout, now); err != nil {
			return err
		}
	}
	if err := checkLimits(o.percent, o.components); err != nil {
		return err
	}
	if err := o.dryRun.check(); err != nil {
		return err
	}
	if o.wait && o.dryRun.wanted() {
		return errors.New("--wait waits for nothing with --dry-run=server, which stores nothing; leave one of them out")
	}
	if err := checkTimeout(cmd, o.timeout, o.wait); err != nil {
		return err
	}
	o.namespace, o.progress = b.namespace(), b.progress()
	o.client, o.core, err = b.clients()
	return err
}

func (o *setOptions) features() featuresclient.FeatureInterface {
	return o.client.FeaturesV1alpha1().Features(o.namespace)
}

// change is a request that was stored.
type change struct {
	feature *v1alpha1.Feature
	// said returns the line about it.
	said string
}

// run checks all features, changes them, and follows them. It fails with what was
// refused, or with the exit code of what was stored and did not come about.
func (o *setOptions) run(ctx context.Context, names []string) error {
	limit := time.Duration(0)
	if o.wait {
		limit = o.timeout
	}
	w, cancel := newFollower(ctx, o.client, limit)
	defer cancel()
	before, err := o.lookUpAll(w, names)
	if err != nil {
		return err
	}
	var stored []change
	var failed []error
	for _, feature := range before {
		change, err := o.store(w.limited, feature)
		if err != nil {
			failed = append(failed, err)
			continue
		}
		stored = append(stored, change)
	}
	if o.dryRun.wanted() {
		return errors.Join(failed...)
	}
	if !o.wait {
		var cancel context.CancelFunc
		w, cancel = newFollower(ctx, o.client, answerTimeout)
		defer cancel()
	}
	code, err := o.follow(w, stored)
	if err != nil {
		failed = append(failed, err)
	}
	if len(failed) > 0 {
		return errors.Join(failed...)
	}
	if code != ExitDone {
		return exitError(code)
	}
	return nil
}

// lookUpAll reads all features, and fails with why some cannot be changed.
func (o *setOptions) lookUpAll(w *follower, names []string) ([]*v1alpha1.Feature, error) {
	features := make([]*v1alpha1.Feature, 0, len(names))
	var failed []error
	for _, name := range names {
		feature, err := w.lookUp(o.namespace, name)
		switch {
		case errors.Is(err, errInterrupted):
			return nil, err
		case errors.Is(err, errTimedOut):
			return nil, fmt.Errorf("the server did not answer within %s; nothing was requested", o.timeout)
		case err == nil:
			err = o.request.refuse(feature)
		}
		if err != nil {
			failed = append(failed, err)
		}
		features = append(features, feature)
	}
	return features, errors.Join(failed...)
}

// store writes the request into a feature's spec, and prints remarks about
// other parts of the spec. A refusal fails with the server's message.
func (o *setOptions) store(ctx context.Context, before *v1alpha1.Feature) (change, error) {
	patch, err := o.request.patch()
	if err != nil {
		return change{}, err
	}
	after, err := o.features().Patch(ctx, before.Name, types.MergePatchType, patch, o.dryRun.options())
	switch {
	case err != nil && ctx.Err() != nil:
		return change{}, fmt.Errorf("feature %s in %s: the server did not answer, so it is not known whether it was %s; kubectl feature describe %s%s shows it: %w",
			before.Name, o.namespace, o.request.done(), before.Name, namespaceFlag(before), err)
	case err != nil:
		return change{}, fmt.Errorf("feature %s in %s could not be %s: %w", before.Name, o.namespace, o.request.done(), err)
	}
	said := o.dryRun.said(before, after, o.request.done())
	if o.wait || o.dryRun.wanted() {
		fmt.Fprintln(o.Out, said)
	}
	for _, remark := range o.request.remarks(after) {
		fmt.Fprintf(o.ErrOut, "%s: %s\n", title(after.Name), remark)
	}
	return change{after, said}, nil
}
