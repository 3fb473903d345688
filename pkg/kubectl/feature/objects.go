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
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/printers"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/feature-lifecycle/client/clientset/versioned/scheme"
)

// objects prints Features for programs, in place of sentences, with the flags of
// kubectl's own commands: name, json, yaml and paths. Nil prints none.
//
// It has no Go templates, and therefore no genericclioptions.PrintFlags: templates call
// methods by names that are read at run time, so a linker keeps all methods of all types,
// which is a third of the plugin.
type objects struct {
	output string
	paths  *genericclioptions.JSONPathPrintFlags
	// formats has paths, too.
	formats []printFlags
	// printer is nil unless an output format is set.
	printer printers.ResourcePrinter
}

// printFlags are the flags of some formats.
type printFlags interface {
	AddFlags(*cobra.Command)
	AllowedFormats() []string
	ToPrinter(output string) (printers.ResourcePrinter, error)
}

func newObjects() *objects {
	paths := genericclioptions.NewJSONPathPrintFlags("", true)
	return &objects{
		paths:   paths,
		formats: []printFlags{genericclioptions.NewJSONYamlPrintFlags(), genericclioptions.NewNamePrintFlags(""), paths},
	}
}

func (o *objects) addFlags(cmd *cobra.Command) {
	for _, f := range o.formats {
		f.AddFlags(cmd)
	}
	cmd.Flags().Lookup("template").Usage = "The path for --output=jsonpath and --output=jsonpath-as-json, or its file for --output=jsonpath-file."
	cmd.Flags().Lookup("allow-missing-template-keys").Usage = "If true, a path may name fields and keys that are missing."
	cmd.Flags().StringVarP(&o.output, "output", "o", "", "Output format. One of: ("+strings.Join(o.allowed(), ", ")+").")
	_ = cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(o.allowed(), cobra.ShellCompDirectiveNoFileComp))
}

// allowed are the names of all formats.
func (o *objects) allowed() []string {
	var names []string
	for _, f := range o.formats {
		names = append(names, f.AllowedFormats()...)
	}
	return names
}

// templateFormats are those of kubectl that are Go templates.
var templateFormats = []string{"go-template", "go-template-file", "template", "templatefile"}

var errTemplate = errors.New("Go templates are not supported; use -o jsonpath=PATH, or pipe -o json to another program")

// complete judges the flags.
func (o *objects) complete() error {
	if o == nil {
		return nil
	}
	name, _, _ := strings.Cut(o.output, "=")
	switch {
	case slices.Contains(templateFormats, name), o.output == "" && *o.paths.TemplateArgument != "":
		return errTemplate
	case o.output == "":
		return nil
	}
	for _, f := range o.formats {
		printer, err := f.ToPrinter(o.output)
		if genericclioptions.IsNoCompatiblePrinterError(err) {
			continue
		}
		o.printer, err = printers.NewTypeSetter(scheme.Scheme).WrapToPrinter(printer, err)
		return err
	}
	return unknownOutput(o.output, o.allowed())
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
