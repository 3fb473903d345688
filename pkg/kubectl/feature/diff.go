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
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/kubernetes-features/pkg/kubectl/observe"
)

const (
	diffLong = `Show the features in which two clusters differ, or a cluster and a file.

The clusters are two contexts, two kubeconfig files, or both: --context and --kubeconfig are given once for each cluster. A file is
what "kubectl feature list -o json" or "-o yaml" printed, all documents of it; "-" is the standard input. One file is compared with the cluster of the
present context, two with each other.

Compared are stage, default, lock, control, configured value and its source, state, and the stored version; not who uses a feature, nor how
far a transition is.

Exit codes: 0 no difference; 1 some features differ; 3 the command failed.`

	diffExample = `  # Is staging set like production?
  kubectl feature diff --context=staging --context=production

  # What has changed since yesterday?
  kubectl feature list -o json > yesterday.json
  kubectl feature diff yesterday.json

  # Only the names
  kubectl feature diff --kubeconfig=a.conf --kubeconfig=b.conf -o name`
)

var diffFormats = []string{"json", "yaml", outputName}

// diffOptions are the options of diff.
type diffOptions struct {
	contexts, kubeconfigs []string
	files                 []string
	output                string
	observing             observing

	namespace string
	sides     []side
	genericiooptions.IOStreams
}

func newDiff(b *base) *cobra.Command {
	o := &diffOptions{IOStreams: b.IOStreams}
	cmd := &cobra.Command{
		Use:     "diff [FILE [FILE]]",
		Short:   "Show the features in which two clusters differ, or a cluster and a file",
		Long:    diffLong,
		Example: diffExample,
		Args:    cobra.MaximumNArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.files = args
			if err := o.complete(b, cmd); err != nil {
				return err
			}
			return o.run(cmd.Context())
		},
	}
	// These take the place of those that all commands have.
	cmd.Flags().StringArrayVar(&o.contexts, "context", nil, "The contexts of the clusters, once for each.")
	cmd.Flags().StringArrayVar(&o.kubeconfigs, "kubeconfig", nil, "The kubeconfig files of the clusters, once for each, or once for both.")
	complete(cmd, "context", b.contexts())
	o.observing.addFlags(cmd.Flags())
	addOutput(cmd, &o.output, diffFormats...)
	return cmd
}

// complete finds the two sides.
func (o *diffOptions) complete(b *base, cmd *cobra.Command) error {
	if err := checkOutput(o.output, diffFormats...); err != nil {
		return err
	}
	if err := o.observing.validate(); err != nil {
		return err
	}
	o.namespace = b.namespace()
	clusters := max(len(o.contexts), len(o.kubeconfigs))
	if clusters == 0 && len(o.files) == 1 {
		clusters = 1
	}
	for _, flag := range ofOneCluster {
		if len(o.files) == 2 && cmd.Flags().Changed(flag) {
			return fmt.Errorf("--%s is about a cluster, and both sides are files; leave it or a FILE out", flag)
		}
	}
	switch {
	case clusters+len(o.files) != 2:
		return errors.New("diff needs two sides: --context twice, --kubeconfig twice, a FILE and at most one of each, or two FILEs")
	case clusters == 2:
		for _, flag := range ofOneCluster {
			if cmd.Flags().Changed(flag) {
				return fmt.Errorf("--%s is about one cluster, and diff reads two; put it into the kubeconfig files or contexts", flag)
			}
		}
	case len(o.files) == 2 && o.files[0] == "-" && o.files[1] == "-":
		return errors.New("both sides are the standard input; name a file for one of them")
	}
	// The earlier output is on the left.
	for _, file := range o.files {
		o.sides = append(o.sides, fileSide(file, o.In))
	}
	for i := range clusters {
		o.sides = append(o.sides, b.clusterSide(&o.observing, at(o.kubeconfigs, i), at(o.contexts, i), clusters))
	}
	if o.sides[0].name == o.sides[1].name {
		return fmt.Errorf("both sides are %s; name two different ones", o.sides[0].name)
	}
	return nil
}

// ofOneCluster are flags that cannot hold for two clusters.
var ofOneCluster = []string{"server", "cluster", "user", "token", "certificate-authority", "client-certificate", "client-key", "tls-server-name"}

// at is the value for a cluster: one value is for all.
func at(values []string, i int) string {
	switch len(values) {
	case 0:
		return ""
	case 1:
		return values[0]
	default:
		return values[i]
	}
}

// difference is the result, which -o json prints.
type difference struct {
	metav1.TypeMeta `json:",inline"`
	// Left and Right name the sides.
	Left  string `json:"left"`
	Right string `json:"right"`
	// Compared has the numbers of features on both sides.
	Compared int64 `json:"compared"`
	// NotCompared are fields that could not be observed in a cluster without the API.
	NotCompared []string `json:"notCompared,omitempty"`
	// Features has those that differ, by name.
	Features []featureDifference `json:"features"`
}

// featureDifference is that of one feature.
type featureDifference struct {
	Name   string            `json:"name"`
	Fields []fieldDifference `json:"fields"`
	// LeftObserved and RightObserved say where the values were observed, in clusters
	// without the API.
	LeftObserved  string `json:"leftObserved,omitempty"`
	RightObserved string `json:"rightObserved,omitempty"`
}

// fieldDifference is that of one field.
type fieldDifference struct {
	Field string `json:"field"`
	Left  string `json:"left"`
	Right string `json:"right"`
}

// run reads both sides, prints, and fails with the exit code.
func (o *diffOptions) run(ctx context.Context) error {
	var features [2][]v1alpha1.Feature
	for i, s := range o.sides {
		var err error
		if features[i], err = s.read(ctx, o.namespace); err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
	}
	d := compare(features[0], features[1])
	d.Left, d.Right = o.sides[0].name, o.sides[1].name
	if err := o.print(d); err != nil {
		return err
	}
	if len(d.Features) > 0 {
		return exitError(ExitDiffer)
	}
	return nil
}

// compare finds what differs between two sets of features.
func compare(left, right []v1alpha1.Feature) *difference {
	d := &difference{
		TypeMeta: metav1.TypeMeta{APIVersion: "diff.features.k8s.io/v1alpha1", Kind: "FeatureDifference"},
		Features: []featureDifference{},
	}
	var names []string
	index := func(features []v1alpha1.Feature) map[string]*v1alpha1.Feature {
		all := map[string]*v1alpha1.Feature{}
		for i := range features {
			all[features[i].Name] = &features[i]
			names = append(names, features[i].Name)
		}
		return all
	}
	l, r := index(left), index(right)
	slices.Sort(names)
	names = slices.Compact(names)
	d.Compared = int64(len(names))
	skipped := map[string]bool{}
	unseenLeft, unseenRight := serversUnseen(left), serversUnseen(right)
	for _, name := range names {
		if l[name] == nil && unseenLeft || r[name] == nil && unseenRight {
			skipped[presenceField] = true
			continue
		}
		if l[name] == nil || r[name] == nil {
			one := featureDifference{Name: name, LeftObserved: observedFrom(l[name]), RightObserved: observedFrom(r[name])}
			one.Fields = []fieldDifference{{Field: presenceField, Left: presence(l[name], left), Right: presence(r[name], right)}}
			d.Features = append(d.Features, one)
			continue
		}
		fields, unknown := compareFeature(l[name], r[name])
		for _, field := range unknown {
			skipped[field] = true
		}
		if len(fields) > 0 {
			one := featureDifference{Name: name, Fields: fields, LeftObserved: observedFrom(l[name]), RightObserved: observedFrom(r[name])}
			d.Features = append(d.Features, one)
		}
	}
	if skipped[presenceField] {
		d.NotCompared = append(d.NotCompared, presenceField)
	}
	for _, field := range comparedFields {
		if skipped[field.name] {
			d.NotCompared = append(d.NotCompared, field.name)
		}
	}
	return d
}

// presenceField stands for whether a feature exists.
const presenceField = "feature"

// serversUnseen is true for a side of which no kube-apiserver was observed: it may have
// features that were not.
func serversUnseen(features []v1alpha1.Feature) bool {
	return !slices.ContainsFunc(features, func(f v1alpha1.Feature) bool { return !isObserved(&f) || seenInServer(&f) })
}

// seenInServer is true for a feature of which the value of a kube-apiserver was observed.
func seenInServer(f *v1alpha1.Feature) bool {
	return slices.ContainsFunc(f.Status.Uses, func(use v1alpha1.FeatureUse) bool { return use.Component == observe.APIServer })
}

// presence says whether a side has a feature. What was not observed may be there.
func presence(f *v1alpha1.Feature, side []v1alpha1.Feature) string {
	switch {
	case f != nil:
		return "there"
	case slices.ContainsFunc(side, func(f v1alpha1.Feature) bool { return isObserved(&f) }):
		return "not observed"
	}
	return "missing"
}

// observedFrom says where the values of a feature were observed, "" for one of a server.
func observedFrom(f *v1alpha1.Feature) string {
	if f == nil {
		return ""
	}
	return f.Annotations[observe.AnnotationFrom]
}

// compareFeature finds what differs between two features, and which fields are not known of
// one of them.
func compareFeature(left, right *v1alpha1.Feature) (differ []fieldDifference, unknown []string) {
	for _, field := range comparedFields {
		if isUnknown(left, field.name) || isUnknown(right, field.name) {
			unknown = append(unknown, field.name)
			continue
		}
		l, r := comparedValue(left, field.name, field.of), comparedValue(right, field.name, field.of)
		if l != r {
			differ = append(differ, fieldDifference{Field: field.name, Left: l, Right: r})
		}
	}
	return differ, unknown
}

// comparedValue is the value of a field. Observed kube-apiservers without a common value have
// both.
func comparedValue(f *v1alpha1.Feature, field string, of func(*v1alpha1.FeatureStatus) string) string {
	if field == "configured" && isObserved(f) && f.Status.Configured == nil {
		return "On and Off"
	}
	return of(&f.Status)
}

// isUnknown is true for a field that cannot be observed, or was not.
func isUnknown(f *v1alpha1.Feature, field string) bool {
	if !isObserved(f) {
		return false
	}
	switch status := &f.Status; field {
	case "configured":
		return !seenInServer(f)
	case "source":
		return status.Configured == nil
	case "stage":
		return status.Stage == ""
	case "default", "locked":
		return status.Default == nil
	}
	return true
}

// comparedFields returns those of a feature that do not change by themselves.
var comparedFields = []struct {
	name string
	of   func(*v1alpha1.FeatureStatus) string
}{
	{"state", func(s *v1alpha1.FeatureStatus) string { return orNone(string(s.State)) }},
	{"configured", func(s *v1alpha1.FeatureStatus) string {
		if s.Configured == nil {
			return none
		}
		return valueOf(&s.Configured.Value)
	}},
	{"source", func(s *v1alpha1.FeatureStatus) string {
		if s.Configured == nil {
			return none
		}
		return string(s.Configured.Source)
	}},
	{"control", func(s *v1alpha1.FeatureStatus) string { return orNone(string(s.Control)) }},
	{"stage", func(s *v1alpha1.FeatureStatus) string { return orNone(string(s.Stage)) }},
	{"default", func(s *v1alpha1.FeatureStatus) string { return valueOf(s.Default) }},
	{"locked", func(s *v1alpha1.FeatureStatus) string { return yesNo(s.LockedToDefault) }},
	{"version", func(s *v1alpha1.FeatureStatus) string { return orNone(s.Version) }},
}

// print prints a difference in the requested format.
func (o *diffOptions) print(d *difference) error {
	switch {
	case structured(o.output):
		return printStructured(o.Out, o.output, d)
	case o.output == outputName:
		for _, f := range d.Features {
			if _, err := fmt.Fprintln(o.Out, title(f.Name)); err != nil {
				return err
			}
		}
		return nil
	case len(d.Features) == 0:
		_, err := fmt.Fprintf(o.Out, "No difference between %s and %s: %s compared.\n%s", d.Left, d.Right, count(d.Compared, "feature"), d.skipped())
		return err
	}
	columns := []string{"NAME", "FIELD", d.Left, d.Right}
	observed := slices.ContainsFunc(d.Features, func(f featureDifference) bool { return f.observedBy(d) != "" })
	if observed {
		columns = append(columns, "OBSERVED BY")
	}
	var rows [][]string
	for _, f := range d.Features {
		for i, field := range f.Fields {
			name, source := f.Name, f.observedBy(d)
			if i > 0 {
				name, source = "", ""
			}
			row := []string{name, field.Field, field.Left, field.Right}
			if observed {
				row = append(row, source)
			}
			rows = append(rows, row)
		}
	}
	text, err := table(false, columns, rows, nil)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(o.Out, "%s%d of %s differ.\n%s", text, len(d.Features), count(d.Compared, "feature"), d.skipped())
	return err
}

// skipped is a line about what could not be compared, "" if all was.
func (d *difference) skipped() string {
	if len(d.NotCompared) == 0 {
		return ""
	}
	return fmt.Sprintf("Not compared where it was not observed: %s.\n", strings.Join(d.NotCompared, ", "))
}

// observedBy says where the values of the sides were observed, "" for those of servers.
func (f featureDifference) observedBy(d *difference) string {
	switch {
	case f.LeftObserved == f.RightObserved || f.RightObserved == "":
		return f.LeftObserved
	case f.LeftObserved == "":
		return f.RightObserved
	}
	return fmt.Sprintf("%s: %s / %s: %s", d.Left, f.LeftObserved, d.Right, f.RightObserved)
}
