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
	"bytes"
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/kubernetes"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/feature-lifecycle/client/clientset/versioned"
	"k8s.io/feature-lifecycle/lifecycle/tracker"
	"k8s.io/feature-lifecycle/lifecycle/transition"
	"k8s.io/kubernetes-features/pkg/kubectl/observe"
	"k8s.io/utils/ptr"
)

const (
	usesLong = `Show the value of a feature in each process.

A process uses a feature once its code queried it. Processes that only have it set explicitly are listed too, as not queried. What
is listed are the FeatureReports that processes wrote: one that crashed is listed until its report is removed, as unreachable for so long
as its Lease was not renewed, or its Node is not Ready, by the clock of this machine, and does not count as one that differs. Below
the list stand the processes that should report and did not, and those that are unreachable, as the servers count them.

SET shows the source of a process's value: its command line or configuration file, the API (it would have the other value by
itself), or its default, or the API where that has the same.

Without permission to list FeatureReports, which administrators have, the counts of the servers are shown instead.

Exit codes: 0 answered, also when no process differs; 3 the command failed.`

	usesExample = `  # Who found which value?
  kubectl feature uses ContainerStopSignals

  # Who has another value than the feature's state?
  kubectl feature uses ContainerStopSignals --mismatched

  # With node and emulated version
  kubectl feature uses ContainerStopSignals -o wide`
)

var usesFormats = []string{outputWide, "json", "yaml", outputName}

// usesOptions are the options of uses.
type usesOptions struct {
	mismatched bool
	noHeaders  bool
	output     string
	observing  observing

	namespace string
	palette   palette
	client    versioned.Interface
	core      kubernetes.Interface
	genericiooptions.IOStreams
}

func newUses(b *base) *cobra.Command {
	o := &usesOptions{IOStreams: b.IOStreams}
	cmd := &cobra.Command{
		Use:               "uses NAME",
		Short:             "Show the value of a feature in each process",
		Long:              usesLong,
		Example:           usesExample,
		Args:              oneName,
		ValidArgsFunction: b.completeName(func(*v1alpha1.Feature) bool { return true }),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if err := checkOutput(o.output, usesFormats...); err != nil {
				return err
			}
			o.namespace, o.palette = b.namespace(), b.palette()
			if o.client, o.core, err = b.readers(cmd.Context(), &o.observing); err != nil {
				return err
			}
			return o.run(cmd.Context(), namesOf(args)[0])
		},
	}
	cmd.Flags().BoolVar(&o.mismatched, "mismatched", false, "Only processes that use another value than that of the feature's state.")
	cmd.Flags().BoolVar(&o.noHeaders, "no-headers", false, "Print no column names.")
	o.observing.addFlags(cmd.Flags())
	addOutput(cmd, &o.output, usesFormats...)
	return cmd
}

// usage has the users of a feature, which -o json prints.
type usage struct {
	metav1.TypeMeta `json:",inline"`
	// Feature is the gate's name, State the feature's.
	Feature string                `json:"feature"`
	State   v1alpha1.FeatureState `json:"state,omitempty"`
	// Processes has those that reported, by component and instance.
	Processes []process `json:"processes"`
	// Joining has the values that nodes get when they join, in a cluster without this
	// system.
	Joining []joining `json:"joining,omitempty"`
	// Counts has the servers' counts, including missing reports.
	Counts []v1alpha1.FeatureUse `json:"counts,omitempty"`
	// Unread has the reason why the reports could not be read.
	Unread string `json:"unread,omitempty"`
	// Unknown has the reason why the liveness of some processes is not known.
	Unknown []string `json:"unknown,omitempty"`
}

// process is one that reported a value.
type process struct {
	Component string `json:"component"`
	Instance  string `json:"instance"`
	Node      string `json:"node,omitempty"`
	Version   string `json:"version,omitempty"`
	Emulates  string `json:"emulates,omitempty"`
	Enabled   bool   `json:"enabled"`
	// Queried is true for users, and left out for what was observed.
	Queried    *bool `json:"queried,omitempty"`
	Explicit   bool  `json:"explicit,omitempty"`
	Overridden bool  `json:"overridden,omitempty"`
	// Differs is true for a user of another value than that of the state that is
	// not known to be unreachable (tracker.Differing).
	Differs bool `json:"differs,omitempty"`
	// Alive is false for a process whose Lease has lapsed or whose Node is not
	// Ready, and left out if unknown.
	Alive *bool `json:"alive,omitempty"`
	// LastSeen is the last sign of life of a process that is not alive, if
	// known.
	LastSeen *metav1.Time `json:"lastSeen,omitempty"`
	// Observed says where the value was observed, in a cluster without this system.
	Observed string `json:"observed,omitempty"`
	// SetUnknown is true if it was not observed whether the value was set.
	SetUnknown bool `json:"setUnknown,omitempty"`
}

// life is its liveness.
func (p process) life() life { return life{p.Alive, p.LastSeen} }

// uses is yes for users.
func (p process) uses() string {
	if p.Queried == nil {
		return notKnown
	}
	return yesNo(*p.Queried)
}

// notKnown stands for what was not observed.
const notKnown = "?"

// name is that of the process's report.
func (p process) name() string { return p.Component + "." + p.Instance }

// set is the source of the value.
func (p process) set() string {
	switch {
	case p.SetUnknown:
		return notKnown
	case p.Overridden:
		return "API"
	case p.Explicit:
		return "explicitly"
	default:
		return "default"
	}
}

// matches returns whether a user has the value of the state; a lost process is no
// user.
func (p process) matches() string {
	if p.Observed == "" && !ptr.Deref(p.Queried, false) || p.life().unreachable() {
		return "-"
	}
	return yesNo(!p.Differs)
}

// run gathers and prints.
func (o *usesOptions) run(ctx context.Context, name string) error {
	f, err := lookUp(ctx, o.client.FeaturesV1alpha1().Features(o.namespace), o.namespace, name)
	if err != nil {
		return err
	}
	all, err := gatherReports(ctx, o.client, o.namespace)
	if err != nil {
		return err
	}
	used, err := all.of(ctx, newSigns(o.core), f)
	if err != nil {
		return err
	}
	if o.mismatched {
		used.Processes = slices.DeleteFunc(used.Processes, func(p process) bool { return !p.Differs })
		used.Joining = slices.DeleteFunc(used.Joining, func(j joining) bool { return !j.Differs })
	}
	switch {
	case structured(o.output):
		return printStructured(o.Out, o.output, used)
	case o.output == outputName && used.Unread != "":
		return fmt.Errorf("%s; without it only counts are known (leave out -o name)", used.Unread)
	case o.output == outputName:
		for _, p := range used.Processes {
			if _, err := fmt.Fprintf(o.Out, "featurereport.%s/%s\n", v1alpha1.GroupName, printable(p.name())); err != nil {
				return err
			}
		}
		return nil
	case used.Unread != "":
		fmt.Fprintf(o.ErrOut, "%s; these are the servers' counts\n", used.Unread)
		return printCounts(o.Out, o.palette, f, o.mismatched, o.noHeaders)
	default:
		return o.print(f, used)
	}
}

// reported has the reports of all processes of a namespace.
type reported struct {
	reports []v1alpha1.FeatureReport
	// unread has the reason why the reports could not be read, "" when they
	// were.
	unread string
	// observed is what was observed instead of reports, nil with this system.
	observed *observe.Cluster
}

// gatherReports reads them. Without permission only the servers' counts are known,
// which is no error.
func gatherReports(ctx context.Context, client versioned.Interface, namespace string) (reported, error) {
	reports, err := listReports(ctx, client.FeaturesV1alpha1(), namespace)
	if apierrors.IsForbidden(err) {
		return reported{unread: fmt.Sprintf("you may not list FeatureReports in %s, which have the value of each process", namespace)}, nil
	}
	return reported{reports: reports, observed: observedOf(client)}, err
}

// usesType is that of the users of a feature.
var usesType = metav1.TypeMeta{APIVersion: "uses.features.k8s.io/v1alpha1", Kind: "FeatureUses"}

// of returns the users of a feature.
func (r reported) of(ctx context.Context, signs *signs, f *v1alpha1.Feature) (*usage, error) {
	if r.observed != nil {
		return &usage{
			TypeMeta: usesType, Feature: f.Name, Processes: observedProcesses(r.observed, f), Joining: joiningOf(r.observed, f),
			Counts: f.Status.Uses, Unknown: gapTexts(r.observed),
		}, nil
	}
	speaking := r.speaking(f.Name)
	missing, err := signs.read(ctx, speaking)
	if err != nil {
		return nil, err
	}
	return &usage{
		TypeMeta: usesType,
		Feature:  f.Name, State: f.Status.State, Processes: processes(f, speaking, signs), Counts: f.Status.Uses,
		Unread: r.unread, Unknown: missing,
	}, nil
}

// speaking returns the reports that list a feature. A process that ended in order
// is no longer a user, and kube-apiservers report all gates that they have.
func (r reported) speaking(feature string) []*v1alpha1.FeatureReport {
	var speaking []*v1alpha1.FeatureReport
	for i := range r.reports {
		report := &r.reports[i]
		if !tracker.Terminating(report) && slices.ContainsFunc(report.Spec.Features, func(g v1alpha1.ReportedFeature) bool {
			return lists(g, feature)
		}) {
			speaking = append(speaking, report)
		}
	}
	return speaking
}

// lists returns true for a report that lists a feature.
func lists(g v1alpha1.ReportedFeature, feature string) bool {
	return g.Name == feature && (g.Queried || g.Explicit)
}

// processes returns those of reports that list a feature.
func processes(f *v1alpha1.Feature, speaking []*v1alpha1.FeatureReport, signs *signs) []process {
	found := []process{}
	value, known := transition.Value(&f.Status)
	for _, report := range speaking {
		spec := &report.Spec
		life := signs.of(spec)
		for _, g := range spec.Features {
			if !lists(g, f.Name) {
				continue
			}
			found = append(found, process{
				Component: spec.Component, Instance: spec.Instance, Node: spec.NodeName, Version: spec.BinaryVersion, Emulates: spec.EmulationVersion,
				Enabled: g.Enabled, Queried: ptr.To(g.Queried), Explicit: g.Explicit, Overridden: g.Overridden,
				Differs: g.Queried && known && g.Enabled != value && !life.unreachable(), Alive: life.alive, LastSeen: life.seen,
			})
		}
	}
	slices.SortFunc(found, func(a, b process) int {
		return cmp.Or(cmp.Compare(a.Component, b.Component), cmp.Compare(a.Instance, b.Instance))
	})
	return found
}

// print prints processes, and missing reports.
func (o *usesOptions) print(f *v1alpha1.Feature, used *usage) error {
	// Writes into a buffer do not fail; the one of it may.
	var to bytes.Buffer
	if len(used.Processes)+len(used.Joining) == 0 {
		text := "No process that reported uses the feature."
		if o.mismatched {
			text = fmt.Sprintf("No process that reported has another value than that of the state %s.", orNone(printable(string(f.Status.State))))
			if isObserved(f) {
				text = "No process that was observed has another value than kube-apiserver."
			}
		}
		fmt.Fprintln(&to, text)
	} else {
		text, err := o.processTable(f, used)
		if err != nil {
			return err
		}
		to.WriteString(text)
	}
	for _, why := range used.Unknown {
		if isObserved(f) {
			// It was said before.
			break
		}
		fmt.Fprintf(&to, "Not known: %s\n", printable(why))
	}
	printMissing(&to, used.Counts)
	_, err := to.WriteTo(o.Out)
	return err
}

// processTable has a line for each process, and for what nodes get when they join.
func (o *usesOptions) processTable(f *v1alpha1.Feature, used *usage) (string, error) {
	observed := isObserved(f)
	matches := func(text string) string {
		if _, known := expectedValue(f); observed && !known {
			return notKnown
		}
		return text
	}
	columns := []string{"COMPONENT", "INSTANCE", "VERSION", "VALUE", "SET", "USES", "MATCHES", "ALIVE"}
	if observed {
		columns = append(columns, "OBSERVED BY")
	}
	if o.output == outputWide {
		columns = append(columns, "NODE", "EMULATES")
	}
	var rows [][]string
	var colors []color
	for _, p := range used.Processes {
		row := []string{p.Component, p.Instance, orNone(p.Version), valueOf(&p.Enabled), p.set(), p.uses(), matches(p.matches()), p.life().text()}
		if observed {
			row = append(row, p.Observed)
		}
		if o.output == outputWide {
			row = append(row, orNone(p.Node), orNone(p.Emulates))
		}
		mark := plain
		switch {
		case p.Differs:
			mark = red
		case p.life().unreachable():
			mark = yellow
		}
		rows, colors = append(rows, row), append(colors, mark)
	}
	for _, j := range used.Joining {
		row := []string{j.Component, nodesThatJoin, none, valueOf(&j.Enabled), "explicitly", "-", matches(yesNo(!j.Differs)), "-", j.Observed}
		if o.output == outputWide {
			row = append(row, none, none)
		}
		mark := plain
		if j.Differs {
			mark = red
		}
		rows, colors = append(rows, row), append(colors, mark)
	}
	if o.noHeaders {
		columns = nil
	}
	return table(o.palette, columns, rows, colors)
}
