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
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/kubernetes-features/pkg/featurelifecycle/history"
)

const (
	gatesLong = `Show the feature gates of Kubernetes' versions.

Without names it lists the gates that a minor version knows, with what they are there: the newest one that is released, or that of
--version. With names it shows in which version each became what it is, or what it is in that of --version.

A gate is of components: --component takes those of one. The component client-go has the gates of clients such as kubectl, which
environment variables KUBE_FEATURE_<gate> set; kubeadm has those of ClusterConfiguration.featureGates; cloud-controller-manager
what those built on k8s.io/cloud-provider have. SINCE is the version in which a gate became what it is.

The data is in this plugin. It needs no cluster and no kubeconfig. It has what upstream's binaries of each version have, not what a
cluster sets: kubectl feature list shows that.

Exit codes: 0 listed, also when nothing fits; 3 the command failed, for example for a gate that no version knows.`

	gatesExample = `  # All gates of the newest version
  kubectl feature gates

  # What became of a gate, from version to version
  kubectl feature gates MaxUnavailableStatefulSet

  # The gates that a kubelet of 1.34 knows, with what each depends on
  kubectl feature gates --version=1.34 --component=kubelet -o wide

  # Whether it knows two of them, for scripts
  kubectl feature gates ImageVolume NodeSwap --version=1.34 --component=kubelet -o json`
)

var gatesFormats = []string{outputWide, "json", "yaml", outputName}

// gatesOptions are the options of gates.
type gatesOptions struct {
	names     []string
	version   string
	component string
	output    string
	noHeaders bool

	history *history.History
	palette palette
	genericiooptions.IOStreams
}

func newGates(b *base) *cobra.Command {
	o := &gatesOptions{IOStreams: b.IOStreams}
	cmd := &cobra.Command{
		Use:               "gates [NAME...]",
		Short:             "Show the gates of Kubernetes' versions, without a cluster",
		Long:              gatesLong,
		Example:           gatesExample,
		ValidArgsFunction: completeGates,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.complete(b, cmd, args); err != nil {
				return err
			}
			return o.run()
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&o.version, "version", "", "The minor version, for example 1.36; the newest one that is released without it, and all of them for named gates.")
	flags.StringVar(&o.component, "component", "", "Only the gates that this component knows, as it has them.")
	flags.BoolVar(&o.noHeaders, "no-headers", false, "Print no column names.")
	addOutput(cmd, &o.output, gatesFormats...)
	complete(cmd, "version", func(*cobra.Command, []string) []string { return history.Load().Versions() })
	complete(cmd, "component", func(*cobra.Command, []string) []string { return history.Load().Components() })
	return cmd
}

// completeGates completes names of gates. None is of a cluster.
func completeGates(_ *cobra.Command, args []string, begun string) ([]cobra.Completion, cobra.ShellCompDirective) {
	var names []string
	for _, g := range history.Load().Gates() {
		if !slices.Contains(args, g.Name) {
			names = append(names, g.Name)
		}
	}
	return beginning(names, begun), cobra.ShellCompDirectiveNoFileComp
}

// complete validates arguments and flags.
func (o *gatesOptions) complete(b *base, cmd *cobra.Command, args []string) error {
	o.history, o.palette, o.names = history.Load(), b.palette(), namesOf(args)
	if err := checkOutput(o.output, gatesFormats...); err != nil {
		return err
	}
	// A script passes an empty value when its variable is empty.
	if cmd.Flags().Changed("component") && !slices.Contains(o.history.Components(), o.component) {
		return fmt.Errorf("--component=%s is unknown; use %s", o.component, strings.Join(o.history.Components(), ", "))
	}
	if versions := o.history.Versions(); cmd.Flags().Changed("version") && !slices.Contains(versions, o.version) {
		return fmt.Errorf("--version=%s is no minor version that this plugin has the gates of; use one of %s", o.version, strings.Join(versions, ", "))
	}
	return forAll(o.names, func(name string) error {
		g, ok := o.history.Gate(name)
		if !ok {
			return o.unknownGate(name)
		}
		return o.absent(g)
	})
}

// unknownGate is the error for a name that no version knows, with similar names.
func (o *gatesOptions) unknownGate(name string) error {
	known := o.history.Gates()
	names := make([]string, 0, len(known))
	for _, g := range known {
		names = append(names, g.Name)
	}
	next := "kubectl feature gates lists those of a version"
	if near := nearest(name, names); name != "" && len(near) > 0 {
		next = fmt.Sprintf("did you mean %s?", strings.Join(near, ", "))
	}
	versions := o.history.Versions()
	return fmt.Errorf("no version from %s to %s knows the gate %q; %s", versions[0], versions[len(versions)-1], name, next)
}

// absent is the error for a gate that the chosen component never knew, or does not know in the
// chosen version.
func (o *gatesOptions) absent(g history.Gate) error {
	components := g.Components()
	if o.component != "" {
		if !slices.Contains(components, o.component) {
			return fmt.Errorf("%s does not know the gate %s in any version; %s", o.component, g.Name, knownTo(components))
		}
		components = []string{o.component}
	}
	if o.version == "" {
		return nil
	}
	var when []string
	for _, c := range components {
		if _, ok := g.At(c, o.version); ok {
			return nil
		}
		versions, text := o.history.Versions(), "was added in "+g.Added(c)
		if slices.Index(versions, g.Added(c)) < slices.Index(versions, o.version) {
			text = "was removed in " + g.Removed(c)
		}
		when = append(when, text)
	}
	slices.Sort(when)
	what := cmp.Or(o.component, "Kubernetes")
	return fmt.Errorf("%s %s does not know the gate %s: it %s", what, o.version, g.Name, strings.Join(slices.Compact(when), ", or "))
}

func knownTo(components []string) string {
	verb := "know it"
	if len(components) == 1 {
		verb = "knows it"
	}
	return strings.Join(components, ", ") + " " + verb
}

// run prints.
func (o *gatesOptions) run() error {
	if len(o.names) > 0 && o.version == "" {
		return o.printChanges()
	}
	if o.version == "" {
		o.version = newestReleased(o.history)
	}
	return o.printGates(o.gatesAt())
}

// newestReleased returns the newest version that was not read from a pre-release.
func newestReleased(h *history.History) string {
	versions := h.Versions()
	for _, v := range slices.Backward(versions) {
		if !strings.Contains(h.Source(v), "-") {
			return v
		}
	}
	return versions[len(versions)-1]
}

// gateAtVersion is a gate of a version, in components that have the same of it.
type gateAtVersion struct {
	Name       string   `json:"name"`
	Components []string `json:"components"`
	Since      string   `json:"since"`
	history.Spec
}

// gateList is the output of gates for a version in json and yaml.
type gateList struct {
	metav1.TypeMeta `json:",inline"`
	// Version is the minor version, and Source the release that was read.
	Version string          `json:"version"`
	Source  string          `json:"source"`
	Items   []gateAtVersion `json:"items"`
}

// gateHistory is the output of gates for all versions in json and yaml.
type gateHistory struct {
	metav1.TypeMeta `json:",inline"`
	Source          map[string]string `json:"source"`
	Items           []history.Gate    `json:"items"`
}

// gatesVersion is the version of the two.
const gatesVersion = "gates.features.k8s.io/v1alpha1"

// gatesAt returns the gates of the chosen version, sorted by name.
func (o *gatesOptions) gatesAt() []gateAtVersion {
	all := []gateAtVersion{}
	for _, g := range o.chosen() {
		for _, t := range g.Tracks {
			// Components of a track are the same in each version.
			spec, ok := g.At(t.Components[0], o.version)
			if !ok {
				continue
			}
			all = append(all, gateAtVersion{Name: g.Name, Components: t.Components, Since: o.since(t), Spec: spec})
		}
	}
	return all
}

// since returns the version in which a track became what it is in the chosen version.
func (o *gatesOptions) since(t history.Track) string {
	versions, since := o.history.Versions(), ""
	for _, c := range t.Changes {
		if slices.Index(versions, c.Version) <= slices.Index(versions, o.version) {
			since = c.Version
		}
	}
	return since
}

// chosen returns the gates that arguments and flags choose, with the tracks of the component only.
func (o *gatesOptions) chosen() []history.Gate {
	var all []history.Gate
	for _, g := range o.history.Gates() {
		if len(o.names) > 0 && !slices.Contains(o.names, g.Name) {
			continue
		}
		if o.component != "" {
			i := slices.IndexFunc(g.Tracks, func(t history.Track) bool { return slices.Contains(t.Components, o.component) })
			if i < 0 {
				continue
			}
			g.Tracks = []history.Track{{Components: []string{o.component}, Changes: g.Tracks[i].Changes}}
		}
		all = append(all, g)
	}
	return all
}

// printGates prints the gates of a version.
func (o *gatesOptions) printGates(all []gateAtVersion) error {
	switch {
	case structured(o.output):
		return printStructured(o.Out, o.output, &gateList{
			TypeMeta: metav1.TypeMeta{APIVersion: gatesVersion, Kind: "GateList"}, Version: o.version, Source: o.history.Source(o.version), Items: all,
		})
	case o.output == outputName:
		names := map[string]bool{}
		for _, g := range all {
			names[g.Name] = true
		}
		return o.printNames(slices.Sorted(maps.Keys(names)))
	}
	columns, rows := []string{"NAME", "STAGE", "DEFAULT", "SINCE", "COMPONENTS"}, [][]string{}
	for _, g := range all {
		row := []string{g.Name, g.Stage, defaultOf(g.Spec), o.orBefore(g.Since), o.componentsOf(g.Components)}
		if o.output == outputWide {
			row = append(row, orNone(strings.Join(g.DependsOn, ",")))
		}
		rows = append(rows, row)
	}
	return o.print(columns, rows)
}

// printChanges prints the history of gates.
func (o *gatesOptions) printChanges() error {
	all := o.chosen()
	switch {
	case structured(o.output):
		source := map[string]string{}
		for _, v := range o.history.Versions() {
			source[v] = o.history.Source(v)
		}
		return printStructured(o.Out, o.output, &gateHistory{TypeMeta: metav1.TypeMeta{APIVersion: gatesVersion, Kind: "GateHistory"}, Source: source, Items: all})
	case o.output == outputName:
		var names []string
		for _, g := range all {
			names = append(names, g.Name)
		}
		return o.printNames(names)
	}
	columns, rows := []string{"NAME", "VERSION", "STAGE", "DEFAULT", "COMPONENTS"}, [][]string{}
	for _, g := range all {
		for _, t := range g.Tracks {
			for _, c := range t.Changes {
				stage, value, needs := "removed", none, ""
				if c.Spec != nil {
					stage, value, needs = c.Stage, defaultOf(*c.Spec), strings.Join(c.DependsOn, ",")
				}
				row := []string{g.Name, o.orBefore(c.Version), stage, value, o.componentsOf(t.Components)}
				if o.output == outputWide {
					row = append(row, orNone(needs))
				}
				rows = append(rows, row)
			}
		}
	}
	return o.print(columns, rows)
}

// print prints a table.
func (o *gatesOptions) print(columns []string, rows [][]string) error {
	if len(rows) == 0 {
		_, err := fmt.Fprintln(o.ErrOut, "No such gates found.")
		return err
	}
	if o.output == outputWide {
		columns = append(columns, "DEPENDS ON")
	}
	if o.noHeaders {
		columns = nil
	}
	text, err := table(o.palette, columns, rows, nil)
	if err != nil {
		return err
	}
	_, err = fmt.Fprint(o.Out, text)
	return err
}

func (o *gatesOptions) printNames(names []string) error {
	var failed []error
	for _, name := range names {
		_, err := fmt.Fprintln(o.Out, name)
		failed = append(failed, err)
	}
	return errors.Join(failed...)
}

// orBefore returns a version in which a gate became what it is. What the first one has may be older.
func (o *gatesOptions) orBefore(version string) string {
	if version == o.history.Versions()[0] {
		return "≤" + version
	}
	return version
}

// componentsOf returns the names of components. Without -o wide those of a cluster are one word.
func (o *gatesOptions) componentsOf(components []string) string {
	if o.output == outputWide {
		return strings.Join(components, ",")
	}
	var left []string
	servers := 0
	for _, c := range components {
		if slices.Contains(builtTogether, c) {
			servers++
		}
	}
	if servers < len(builtTogether) {
		return strings.Join(components, ",")
	}
	for _, c := range components {
		if !slices.Contains(builtTogether, c) {
			left = append(left, c)
		}
	}
	return strings.Join(append([]string{"cluster"}, left...), ",")
}

// defaultOf returns the value that a gate has without being set.
func defaultOf(s history.Spec) string {
	if s.Locked {
		return valueOf(&s.Default) + ", locked"
	}
	return valueOf(&s.Default)
}
