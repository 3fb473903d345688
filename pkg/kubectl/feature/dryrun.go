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
	"fmt"

	"github.com/spf13/cobra"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
)

// dryRun is a value of --dry-run. The value client of other commands does not
// exist, since only servers know what they would accept.
type dryRun string

const (
	dryRunNone   dryRun = "none"
	dryRunServer dryRun = "server"
)

func (d *dryRun) addFlag(cmd *cobra.Command) {
	cmd.Flags().StringVar((*string)(d), "dry-run", string(dryRunNone), "none, or server: have the server judge the request and store nothing.")
	values := texts([]dryRun{dryRunNone, dryRunServer})
	_ = cmd.RegisterFlagCompletionFunc("dry-run", cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp))
}

// check fails for other values.
func (d dryRun) check() error {
	if d != dryRunNone && d != dryRunServer {
		return fmt.Errorf("--dry-run=%s is neither none nor server; use --dry-run=server, which has the server judge and stores nothing", string(d))
	}
	return nil
}

// wanted is true when nothing is to be stored.
func (d dryRun) wanted() bool { return d == dryRunServer }

// options returns those of a patch.
func (d dryRun) options() metav1.PatchOptions {
	// A server of a version without a field has to refuse it: without spec.rollout.at the value
	// would be for all at once.
	options := metav1.PatchOptions{FieldManager: fieldManager, FieldValidation: metav1.FieldValidationStrict}
	if d.wanted() {
		options.DryRun = []string{metav1.DryRunAll}
	}
	return options
}

// said returns the line about a patch: its effect, whether it was stored, and
// whether it changed anything.
func (d dryRun) said(before, after *v1alpha1.Feature, done string) string {
	text := title(after.Name) + " " + done
	if d.wanted() {
		text += " (server dry run)"
	}
	if equality.Semantic.DeepEqual(before.Spec, after.Spec) {
		text += " (no change)"
	}
	return text
}
