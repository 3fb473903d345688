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
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// checkLimits judges --percent and --components.
func checkLimits(percent int32, components []string) error {
	switch {
	case percent < 0 || percent > 100:
		return fmt.Errorf("--percent=%d is not between 0 and 100", percent)
	case slices.Contains(components, ""):
		return errors.New("--components has an empty name; write it like kube-scheduler,kube-controller-manager")
	default:
		return nil
	}
}

// checkTimeout judges the --timeout of a command. waits is false for one that waits
// only with --wait, and was called without.
func checkTimeout(cmd *cobra.Command, timeout time.Duration, waits bool) error {
	switch {
	case !waits && cmd.Flags().Changed("timeout"):
		return errors.New("--timeout is how long --wait waits; add --wait")
	case timeout < 0:
		return fmt.Errorf("--timeout=%s is negative; 0 is without limit", timeout)
	default:
		return nil
	}
}

// checkMoment judges --at beside other flags. Timeout is how long the command waits, 0 for
// no limit, and negative if it does not wait.
func checkMoment(cmd *cobra.Command, moment *metav1.Time, timeout time.Duration, now time.Time) error {
	switch flags := cmd.Flags(); {
	case moment == nil:
		return nil
	case flags.Changed("percent"), flags.Changed("components"):
		return errors.New("--at is for all instances: until then those have the value that have it now; leave out --percent and --components, or begin a canary with them and give it the moment later (kubectl feature rollout NAME --at)")
	case timeout > 0 && moment.After(now.Add(timeout)):
		return fmt.Errorf("--timeout=%s ends before %s; make it longer, or leave out --wait", timeout, moment.UTC().Format(time.RFC3339))
	default:
		return nil
	}
}

// atUsage describes --at.
const atUsage = "The moment at which all instances take the value together, by their own clocks: a time such as 2026-11-30T12:00:00Z, or how long from now, for example 5m."

// parseMoment returns the moment that --at names, in whole seconds. One that has passed is
// refused: the value would be for all at once.
func parseMoment(text string, now time.Time) (*metav1.Time, error) {
	moment, err := time.Parse(time.RFC3339, text)
	if in, errDuration := time.ParseDuration(text); errDuration == nil {
		// Rounded up, so that there is as much time as was asked for.
		moment, err = now.Add(in).Add(time.Second-1), nil
	}
	switch {
	case err != nil:
		return nil, fmt.Errorf("--at=%q is neither a time in RFC 3339, for example 2026-11-30T12:00:00Z, nor a duration such as 5m", text)
	case moment.UTC().Year() > 9999:
		return nil, fmt.Errorf("--at=%s is after the year 9999 in UTC", text)
	case !moment.After(now):
		return nil, fmt.Errorf("--at=%s has passed; leave it out for all instances to take the value now", text)
	}
	return ptr.To(metav1.NewTime(moment.UTC().Truncate(time.Second))), nil
}
