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
	"io"
	"time"

	"github.com/spf13/cobra"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/feature-lifecycle/rollout"
	"k8s.io/utils/ptr"
)

const (
	rolloutLong = `Show or change the canary of a feature.

A value that is requested in spec.enabled can be given to a part of the instances first (kubectl feature enable NAME --percent=10).
Without flags the command shows for which instances the value is, which have it, and the canary's progress. A canary of which more instances die than
of the others is halted: all go back to the value from before, until the rollout is changed.

--percent and --components change spec.rollout and leave the other one as it is. --at gives the value to all instances together at
a moment, and until then to those that have it. Each takes the place of the other kind. --retry tries a halted rollout again as it
is; with --percent, --components or --at it tries the changed one.

Exit codes: 0 shown, or stored; 1 shown, and the rollout is halted: user action is needed; 3 the command failed or was refused.`

	rolloutExample = `  # What became of it?
  kubectl feature rollout ContainerStopSignals

  # Give the value to half of the instances
  kubectl feature rollout ContainerStopSignals --percent=50

  # Give it to the other half at noon
  kubectl feature rollout ContainerStopSignals --at=2026-11-30T12:00:00Z

  # Give it to all
  kubectl feature rollout ContainerStopSignals --percent=100 --components=

  # Try a halted rollout again, with fewer instances
  kubectl feature rollout ContainerStopSignals --retry --percent=5`
)

// rolloutOptions are the options of rollout.
type rolloutOptions struct {
	changer
	percent    int32
	components []string
	at         string
	retry      bool
	output     string
	// hasPercent, hasComponents and hasAt are true for flags that were given.
	hasPercent, hasComponents, hasAt bool
	// moment is what --at names.
	moment *metav1.Time

	palette palette
}

var rolloutFormats = []string{"json", "yaml", outputName}

func newRollout(b *base) *cobra.Command {
	o := &rolloutOptions{changer: changer{IOStreams: b.IOStreams}}
	cmd := &cobra.Command{
		Use:     "rollout NAME",
		Short:   "Show or change the canary of a feature",
		Long:    rolloutLong,
		Example: rolloutExample,
		Args:    oneName,
		ValidArgsFunction: b.completeName(func(f *v1alpha1.Feature) bool {
			return f.Spec.Rollout != nil || f.Status.Rollout != nil || f.Status.Control == v1alpha1.ControlDynamic || f.Status.Control == v1alpha1.ControlCentral
		}),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.hasPercent, o.hasComponents, o.hasAt = cmd.Flags().Changed("percent"), cmd.Flags().Changed("components"), cmd.Flags().Changed("at")
			if err := o.validate(cmd); err != nil {
				return err
			}
			o.palette = b.palette()
			if err := o.complete(b); err != nil {
				return err
			}
			return o.run(cmd.Context(), namesOf(args)[0])
		},
	}
	cmd.Flags().Int32Var(&o.percent, "percent", 100, "The share of the instances that take the value, 0 to 100.")
	cmd.Flags().StringSliceVar(&o.components, "components", nil, "The components whose instances take the value, for example kube-scheduler; empty for all.")
	cmd.Flags().StringVar(&o.at, "at", "", atUsage)
	cmd.Flags().BoolVar(&o.retry, "retry", false, "Try a rollout that was halted again.")
	completeList(cmd, "components", b.components)
	o.dryRun.addFlag(cmd)
	addOutput(cmd, &o.output, rolloutFormats...)
	return cmd
}

// changes is true when the command is to change something.
func (o *rolloutOptions) changes() bool { return o.retry || o.hasPercent || o.hasComponents || o.hasAt }

// validate judges the flags.
func (o *rolloutOptions) validate(cmd *cobra.Command) error {
	if err := checkLimits(o.percent, o.components); err != nil {
		return err
	}
	switch {
	case o.dryRun.wanted() && !o.changes():
		return errors.New("--dry-run is for changes; add --percent, --components, --at or --retry")
	case o.output != "" && o.changes():
		return errors.New("--output is for looking; leave out --percent, --components, --at and --retry")
	}
	if o.hasAt {
		var err error
		now := time.Now()
		if o.moment, err = parseMoment(o.at, now); err != nil {
			return err
		}
		if err := checkMoment(cmd, o.moment, -1, now); err != nil {
			return err
		}
	}
	return checkOutput(o.output, rolloutFormats...)
}

// run changes the rollout, or prints it.
func (o *rolloutOptions) run(ctx context.Context, name string) error {
	if o.changes() {
		return o.change(ctx, name, map[bool]string{true: "rollout tried again", false: "rollout changed"}[o.retry], o.spec)
	}
	f, err := lookUp(ctx, o.features(), o.namespace, name)
	if err != nil {
		return err
	}
	switch {
	case structured(o.output):
		err = printStructured(o.Out, o.output, typed(f))
	case o.output == outputName:
		_, err = fmt.Fprintln(o.Out, title(f.Name))
	default:
		err = o.print(o.Out, f)
	}
	if err == nil && rollout.Halted(&f.Status) {
		return exitError(ExitHeld)
	}
	return err
}

// spec is the rollout that is wanted.
func (o *rolloutOptions) spec(f *v1alpha1.Feature) (map[string]any, error) {
	if o.retry && f.Spec.Rollout == nil {
		return nil, fmt.Errorf("feature %s in %s has no spec.rollout that could be tried again; set one with --percent, --components or --at", f.Name, f.Namespace)
	}
	if o.retry && !rollout.Halted(&f.Status) {
		return nil, fmt.Errorf("the rollout of feature %s in %s is not halted, so there is nothing to retry; kubectl feature rollout %s%s shows it", f.Name, f.Namespace, f.Name, namespaceFlag(f))
	}
	if f.Status.Control == v1alpha1.ControlLocal {
		return nil, fmt.Errorf("feature %s in %s is Local: each process has the value of its own command line, and spec.rollout has no effect; name it in --dynamic-features of all kube-apiservers, if its author permits that", f.Name, f.Namespace)
	}
	wanted := map[string]any{}
	if r := f.Spec.Rollout; r != nil && r.At != nil && o.retry && !o.hasPercent && !o.hasComponents && !o.hasAt && !time.Now().Before(r.At.Time) {
		return nil, fmt.Errorf("the moment of the rollout of feature %s in %s, %s, has passed, so another attempt would give the value to all instances at once; set another one with --at, or give it to some with --percent", f.Name, f.Namespace, r.At.UTC().Format(time.RFC3339))
	}
	if o.hasPercent || o.hasComponents {
		wanted["at"] = nil
		if r := f.Status.Rollout; r != nil && f.Spec.Rollout != nil && f.Spec.Rollout.At != nil && r.Observed.At != nil {
			// What is not named stays as it is until the moment. Without a canary that is no
			// instance, which is not what a list of components means.
			if len(r.Observed.Components) > 0 {
				wanted["components"] = r.Observed.Components
			}
			if len(r.Observed.Components) > 0 || ptr.Deref(r.Observed.Percent, 100) > 0 {
				wanted["percent"] = r.Observed.Percent
			}
		}
	}
	if o.hasPercent {
		wanted["percent"] = o.percent
	}
	if o.hasComponents {
		wanted["components"] = o.components
		if len(o.components) == 0 {
			wanted["components"] = nil
		}
	}
	if o.hasAt {
		wanted["at"], wanted["percent"], wanted["components"] = o.moment, nil, nil
	}
	if o.retry {
		wanted["attempt"] = f.Spec.Rollout.Attempt + 1
	}
	return map[string]any{"rollout": wanted}, nil
}

// print prints the rollout, and the processes by value.
func (o *rolloutOptions) print(w io.Writer, f *v1alpha1.Feature) error {
	fmt.Fprintf(w, "%s: %s; configured: %s\n", title(f.Name), stateOf(&f.Status), configuredOf(f))
	if err := printRollout(w, o.palette, f); err != nil {
		return err
	}
	if len(f.Status.Uses) == 0 {
		_, err := fmt.Fprintln(w, "No process that reported uses the feature.")
		return err
	}
	return printCounts(w, o.palette, f, false, false)
}
