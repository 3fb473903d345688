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
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/kubectl/pkg/util/term"
)

// Output formats beside json and yaml. The zero value is text.
const (
	outputName = "name"
	outputWide = "wide"
)

// none is shown where there is nothing, as kubectl does.
const none = "<none>"

// addOutput adds the flag --output with formats.
func addOutput(cmd *cobra.Command, output *string, formats ...string) {
	cmd.Flags().StringVarP(output, "output", "o", "", "Output format: "+strings.Join(formats, ", ")+"; text for people without it.")
	_ = cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(formats, cobra.ShellCompDirectiveNoFileComp))
}

// checkOutput fails for a format that is not offered.
func checkOutput(output string, formats ...string) error {
	if output == "" || slices.Contains(formats, output) {
		return nil
	}
	return unknownOutput(output, formats)
}

func unknownOutput(output string, formats []string) error {
	return fmt.Errorf("unknown output format %q; use %s", output, strings.Join(formats, ", "))
}

// structured is true for the formats that programs read whole.
func structured(output string) bool { return output == "json" || output == "yaml" }

// printStructured prints an object with apiVersion and kind as json or yaml.
func printStructured(w io.Writer, output string, v any) error {
	to, err := genericclioptions.NewJSONYamlPrintFlags().ToPrinter(output)
	if err != nil {
		return err
	}
	object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(v)
	if err != nil {
		return err
	}
	return to.PrintObj(&unstructured.Unstructured{Object: object}, w)
}

// typed returns a copy of a feature as the server would print it: with its kind,
// which clients drop, and without managed fields.
func typed(f *v1alpha1.Feature) *v1alpha1.Feature {
	f = f.DeepCopy()
	f.APIVersion, f.Kind = v1alpha1.SchemeGroupVersion.String(), "Feature"
	f.ManagedFields = nil
	return f
}

// color is an ANSI sequence that begins one.
type color string

const (
	plain  color = ""
	bold   color = "\x1b[1m"
	red    color = "\x1b[31m"
	green  color = "\x1b[32m"
	yellow color = "\x1b[33m"
)

// palette paints text, or leaves it as it is: there is color only on
// terminals.
type palette bool

func (p palette) paint(c color, text string) string {
	if !p || c == plain || text == "" {
		return text
	}
	return string(c) + text + "\x1b[0m"
}

// palette is for the output stream. NO_COLOR with any value turns color off
// (https://no-color.org).
func (b *base) palette() palette {
	return palette(b.isTerminal() && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb")
}

// onTerminal returns true when the output is a terminal.
func onTerminal(w io.Writer) bool { return term.TTY{Out: w}.IsTerminalOut() }

// ago returns the time since something, as kubectl prints it.
func ago(t time.Time) string {
	if t.IsZero() {
		return "<unknown>"
	}
	return duration.HumanDuration(time.Since(t))
}

// fromNow returns how far away a moment is: "in 5m" or "5m ago".
func fromNow(t time.Time) string {
	if left := time.Until(t); left > 0 {
		return "in " + duration.HumanDuration(left)
	}
	return ago(t) + " ago"
}

// orNone returns the text, or none when it is empty.
func orNone(text string) string {
	if text == "" {
		return none
	}
	return text
}

// count writes a number of things: 1 object, 2 objects.
func count(n int64, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}
