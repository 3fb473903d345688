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
	"io"

	"github.com/spf13/cobra"

	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/printers"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/feature-lifecycle/client/clientset/versioned/scheme"
)

// objects prints Features for programs, in place of sentences, with the flags of
// kubectl's own commands: name, json, yaml, templates and paths. Nil prints none.
type objects struct {
	flags *genericclioptions.PrintFlags
	// printer is nil unless an output format is set.
	printer printers.ResourcePrinter
}

func newObjects() *objects {
	return &objects{flags: genericclioptions.NewPrintFlags("").WithTypeSetter(scheme.Scheme)}
}

func (o *objects) addFlags(cmd *cobra.Command) {
	o.flags.AddFlags(cmd)
	_ = cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(o.flags.AllowedFormats(), cobra.ShellCompDirectiveNoFileComp))
}

// complete judges the flags.
func (o *objects) complete() (err error) {
	if o == nil || *o.flags.OutputFormat == "" {
		return nil
	}
	o.printer, err = o.flags.ToPrinter()
	return err
}

// wanted returns true if the output is an object and not text.
func (o *objects) wanted() bool { return o != nil && o.printer != nil }

// print prints a Feature as it is known.
func (o *objects) print(w io.Writer, f *v1alpha1.Feature) error {
	return o.printer.PrintObj(f.DeepCopy(), w)
}

// progressBeside is progress that leaves the output stream to objects, if they are
// wanted.
func (b *base) progressBeside(o *objects) *progress {
	if o.wanted() {
		return &progress{w: b.ErrOut}
	}
	return b.progress()
}
