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
	"github.com/spf13/cobra"

	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
)

const (
	pauseLong = `Hold features where they are.

Sets spec.paused. No transition starts and no task runs until the features are resumed; an attempt at a task that is running is
ended. What was done stays done. Values that processes have taken stay, and a request for another value waits.

With --output each Feature is printed as the servers answered.

Exit codes: 0 stored; 3 the command failed or was refused, at least for one feature.`

	resumeLong = `Let paused features continue.

Takes spec.paused back. The held transition begins or continues with its first task.

With --output each Feature is printed as the servers answered.

Exit codes: 0 stored; 3 the command failed or was refused, at least for one feature.`
)

func newPause(b *base) *cobra.Command {
	cmd := newHold(b, "pause", "paused", true)
	cmd.Short, cmd.Long = "Hold features where they are", pauseLong
	cmd.Example = "  # Stop clearing fields for now\n  kubectl feature pause ContainerStopSignals"
	return cmd
}

func newResume(b *base) *cobra.Command {
	cmd := newHold(b, "resume", "resumed", false)
	cmd.Short, cmd.Long = "Let paused features continue", resumeLong
	cmd.Example = "  kubectl feature resume ContainerStopSignals"
	return cmd
}

// newHold makes a command that sets spec.paused.
func newHold(b *base, verb, done string, paused bool) *cobra.Command {
	c := &changer{objects: newObjects(), IOStreams: b.IOStreams}
	cmd := &cobra.Command{
		Use:               verb + " NAME...",
		Args:              someNames,
		ValidArgsFunction: b.completeNames(func(f *v1alpha1.Feature) bool { return f.Spec.Paused != paused }),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := c.complete(b); err != nil {
				return err
			}
			return forAll(namesOf(args), func(name string) error {
				return c.change(cmd.Context(), name, done, func(*v1alpha1.Feature) (map[string]any, error) {
					return map[string]any{"paused": paused}, nil
				})
			})
		},
	}
	c.dryRun.addFlag(cmd)
	c.objects.addFlags(cmd)
	return cmd
}
