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
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilversion "k8s.io/apimachinery/pkg/util/version"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/kubernetes-features/pkg/featurelifecycle/catalog"
	"k8s.io/kubernetes-features/pkg/featurelifecycle/history"
	"k8s.io/kubernetes-features/pkg/kubectl/gatefiles"
	"k8s.io/kubernetes-features/pkg/kubectl/gatefiles/verdict"
)

// outputSARIF is the Static Analysis Results Interchange Format, which code hosts show beside lines.
const outputSARIF = "sarif"

var fileCheckFormats = []string{outputWide, "json", "yaml", outputName, outputSARIF}

// fileCheckOptions are the options of upgrade-check with files, and without a cluster.
type fileCheckOptions struct {
	files, paths []string
	from, to     string
	output       string
	genericiooptions.IOStreams
}

// addFlags adds those that only make sense with files.
func (o *fileCheckOptions) addFlags(flags *pflag.FlagSet) {
	flags.StringArrayVarP(&o.files, "filename", "f", nil, "Files, or directories with all below them, to check instead of a cluster; - is the standard input. Neither a cluster nor a kubeconfig is needed. May be repeated.")
	flags.StringArrayVar(&o.paths, "path", nil, "With -f, the place of gates in files of no known format, such as Helm values: KEY.KEY[=COMPONENT]. May be repeated.")
	flags.StringVar(&o.from, "from", "", "With -f, the minor version that these files are used with now; the one before --to without it.")
}

// requested returns true when files are to be checked. It fails for flags that do not go together.
func (o *fileCheckOptions) requested(cmd *cobra.Command) (bool, error) {
	flags := cmd.Flags()
	if !flags.Changed("filename") {
		for _, name := range []string{"path", "from"} {
			if flags.Changed(name) {
				return false, fmt.Errorf("--%s is about files; name them with -f", name)
			}
		}
		return false, nil
	}
	// Only flags of the connection are persistent.
	var refused []string
	flags.Visit(func(f *pflag.Flag) {
		if f.Name == "allow-missing" || cmd.InheritedFlags().Lookup(f.Name) != nil {
			refused = append(refused, "--"+f.Name)
		}
	})
	if len(refused) > 0 {
		return false, fmt.Errorf("%s is about a cluster, and with -f none is asked; leave it out", strings.Join(refused, ", "))
	}
	return true, nil
}

// run checks the files, prints, and fails with the exit code.
func (o *fileCheckOptions) run() error {
	if err := checkOutput(o.output, fileCheckFormats...); err != nil {
		return err
	}
	reader := gatefiles.Reader{In: o.In}
	for _, text := range o.paths {
		p, err := gatefiles.ParseValuePath(text)
		if err != nil {
			return err
		}
		reader.Paths = append(reader.Paths, p)
	}
	e, err := newEvaluator(o.from, o.to)
	if err != nil {
		return err
	}
	read := reader.Read(o.files)
	r := newFileResult(e, read)
	if err := r.print(o.Out, o.output); err != nil {
		return err
	}
	// What could not be read is an error, whatever the rest is.
	var failed []error
	for _, p := range read.Problems {
		failed = append(failed, p)
	}
	switch {
	case len(failed) > 0:
		return errors.Join(failed...)
	case r.Safe == metav1.ConditionFalse:
		return exitError(ExitNotSafe)
	case r.Safe == metav1.ConditionUnknown:
		return exitError(ExitUnknown)
	default:
		return nil
	}
}

// newEvaluator returns the evaluator for a move. Without from it is one from the version below.
func newEvaluator(from, to string) (*verdict.Evaluator, error) {
	h := history.Load()
	versions := h.Versions()
	target, err := minorVersion(to, versions[len(versions)-1])
	if err != nil {
		return nil, err
	}
	if from == "" {
		if from = target.SubtractMinor(1).String(); !slices.Contains(versions, from) {
			from = to
		}
	}
	for _, flag := range []struct{ name, version string }{{"to", to}, {"from", from}} {
		if !slices.Contains(versions, flag.version) {
			return nil, fmt.Errorf("--%s=%s: the gates of the versions %s to %s are known; use one of these", flag.name, flag.version, versions[0], versions[len(versions)-1])
		}
	}
	known, err := buildGates()
	if err != nil {
		return nil, err
	}
	e := &verdict.Evaluator{History: h, From: from, To: to, Similar: nearest}
	if known.covers(target) == nil {
		e.APIs = map[string]catalog.Entry{}
		for name, entry := range known.catalog {
			e.APIs[string(name)] = entry
		}
	}
	return e, nil
}

// fileResult is the answer for files, and what -o json prints.
type fileResult struct {
	metav1.TypeMeta `json:",inline"`
	From            string `json:"from"`
	To              string `json:"to"`
	// GatesOf is the release whose gates stand for To. It may be a pre-release.
	GatesOf string `json:"gatesOf"`
	// Safe is False when one setting is not safe, and Unknown when none is unsafe but something is unknown.
	Safe metav1.ConditionStatus `json:"safe"`
	// Message is the answer in one line.
	Message string `json:"message"`
	// Files is the number of files that were read.
	Files int `json:"files"`
	// Unknown has missing facts about the move as a whole.
	Unknown []string `json:"unknown,omitempty"`
	// Settings has all, in the order of the files.
	Settings []fileSetting `json:"settings"`
	// Unread has documents, or parts of them, that have gates of others, or no known format.
	Unread []fileNote `json:"unread,omitempty"`
	// Problems has what could not be read. The command fails then.
	Problems []fileNote `json:"problems,omitempty"`
}

// filePlace is a place in a file.
type filePlace struct {
	File   string `json:"file"`
	Line   int64  `json:"line,omitempty"`
	Column int64  `json:"column,omitempty"`
	Path   string `json:"path,omitempty"`
	Format string `json:"format,omitempty"`
}

func newFilePlace(s gatefiles.Source) filePlace {
	return filePlace{s.File, int64(s.Line), int64(s.Column), s.Path, s.Format}
}

// fileSetting is the answer for a setting.
type fileSetting struct {
	filePlace `json:",inline"`
	Component string                 `json:"component"`
	Gate      string                 `json:"gate"`
	Value     bool                   `json:"value"`
	Verdict   verdict.Verdict        `json:"verdict"`
	Safe      metav1.ConditionStatus `json:"safe"`
	Why       string                 `json:"why"`
	Next      string                 `json:"next,omitempty"`
}

// fileNote is about a file.
type fileNote struct {
	filePlace `json:",inline"`
	Why       string `json:"why"`
	Next      string `json:"next,omitempty"`
	// Matters is true where settings are unknown because of it.
	Matters bool `json:"matters"`
}

// newFileResult evaluates what was read.
func newFileResult(e *verdict.Evaluator, read gatefiles.Result) *fileResult {
	r := &fileResult{
		TypeMeta: metav1.TypeMeta{APIVersion: "upgradecheck.features.k8s.io/v1alpha1", Kind: "FileUpgradeCheck"},
		From:     e.From, To: e.To, GatesOf: e.History.Source(e.To), Files: read.Files, Settings: []fileSetting{},
	}
	if v, err := utilversion.ParseSemantic(r.GatesOf); err == nil && v.PreRelease() != "" {
		r.Unknown = append(r.Unknown, fmt.Sprintf("the gates of %s are those of %s, and may change until it is released", e.To, r.GatesOf))
	}
	for _, f := range e.Evaluate(read) {
		r.Settings = append(r.Settings, fileSetting{
			newFilePlace(f.Source), f.Process.Component, f.Gate, f.Enabled, f.Verdict, f.Safe, f.Why, f.Next,
		})
	}
	for _, u := range read.Unread {
		r.Unread = append(r.Unread, fileNote{newFilePlace(u.Source), u.Why, u.Next, u.Matters})
	}
	for _, p := range read.Problems {
		r.Problems = append(r.Problems, fileNote{newFilePlace(p.Source), p.Message, p.Next, true})
	}
	r.conclude()
	return r
}

// conclude sets the answer.
func (r *fileResult) conclude() {
	numbers := map[metav1.ConditionStatus]int64{}
	for _, s := range r.Settings {
		numbers[s.Safe]++
	}
	unread := int64(len(r.Problems))
	for _, u := range r.Unread {
		if u.Matters {
			unread++
		}
	}
	var parts []string
	if n := numbers[metav1.ConditionFalse]; n > 0 {
		parts = append(parts, fmt.Sprintf("%d not safe", n))
	}
	if n := numbers[metav1.ConditionUnknown]; n > 0 {
		parts = append(parts, fmt.Sprintf("%d unknown", n))
	}
	if unread > 0 {
		parts = append(parts, count(unread, "place")+" not read")
	}
	if len(r.Unknown) > 0 && len(parts) == 0 {
		parts = append(parts, "none known to be unsafe")
	}
	switch {
	case numbers[metav1.ConditionFalse] > 0:
		r.Safe = metav1.ConditionFalse
	case len(parts) > 0:
		r.Safe = metav1.ConditionUnknown
	default:
		r.Safe = metav1.ConditionTrue
		parts = append(parts, "all safe")
	}
	r.Message = fmt.Sprintf("From %s to %s: %s in %s: %s.", r.From, r.To, count(int64(len(r.Settings)), "setting"), count(int64(r.Files), "file"), strings.Join(parts, ", "))
}

// print writes the result in a format.
func (r *fileResult) print(w io.Writer, output string) error {
	switch {
	case structured(output):
		return printStructured(w, output, r)
	case output == outputSARIF:
		return r.printSARIF(w)
	case output == outputName:
		return r.printNames(w)
	default:
		return r.printTable(w, output == outputWide)
	}
}

// printNames prints the gates with a setting that is not safe, each once.
func (r *fileResult) printNames(w io.Writer) error {
	var names []string
	for _, s := range r.Settings {
		if s.Safe == metav1.ConditionFalse && !slices.Contains(names, s.Gate) {
			names = append(names, s.Gate)
		}
	}
	for _, name := range names {
		if _, err := fmt.Fprintln(w, title(name)); err != nil {
			return err
		}
	}
	return nil
}

// printTable prints settings, those that are not safe first, and the answer. Without all it leaves out those that need
// no attention.
func (r *fileResult) printTable(w io.Writer, all bool) error {
	shown := slices.Clone(r.Settings)
	if !all {
		shown = slices.DeleteFunc(shown, func(s fileSetting) bool { return s.Verdict == verdict.Works })
	}
	order := map[metav1.ConditionStatus]int{metav1.ConditionFalse: 0, metav1.ConditionUnknown: 1, metav1.ConditionTrue: 2}
	slices.SortStableFunc(shown, func(a, b fileSetting) int { return cmp.Compare(order[a.Safe], order[b.Safe]) })
	var rows [][]string
	for _, s := range shown {
		why := s.Why
		if s.Next != "" {
			why += "; next: " + s.Next
		}
		rows = append(rows, []string{fmt.Sprintf("%s:%d", s.File, s.Line), s.Component, s.Gate, fmt.Sprint(s.Value), string(s.Safe), string(s.Verdict), why})
	}
	if len(rows) > 0 {
		text, err := table(false, []string{"FILE:LINE", "COMPONENT", "GATE", "VALUE", "SAFE", "VERDICT", "WHY"}, rows, nil)
		if err != nil {
			return err
		}
		fmt.Fprint(w, text)
	}
	for _, u := range r.Unread {
		at := u.File
		if u.Line > 0 {
			at = fmt.Sprintf("%s:%d", u.File, u.Line)
		}
		fmt.Fprintf(w, "Not read: %s\n", printable(fmt.Sprintf("%s: %s; next: %s", at, u.Why, u.Next)))
	}
	for _, text := range r.Unknown {
		fmt.Fprintf(w, "Not known: %s\n", printable(text))
	}
	_, err := fmt.Fprintln(w, printable(r.Message))
	return err
}
