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
