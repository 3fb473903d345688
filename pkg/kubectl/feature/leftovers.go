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
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/feature-lifecycle/client/clientset/versioned"
	"k8s.io/kubernetes-features/pkg/featurelifecycle/catalog"
)

const (
	leftoversLong = `Find what gates that are off have left in stored objects.

The objects are read through the API, as the caller, in any cluster: with this system, or of upstream's servers from 1.31 on. A gate
counts as off if no process has it on. Without names, all gates that are off are examined; processes that cannot be observed are
named. Fields of which objects keep their value on purpose are shown with --retained.

REMOVED BY names what removes it: "kubectl feature clean", or the owners of the objects, who delete or replace them.

Exit codes: 0 nothing is left; 1 something is left; 2 nothing was found, and not everything could be examined; 3 the command failed.`

	leftoversExample = `  # What is left of all gates that are off?
  kubectl feature leftovers

  # Of one gate, with all examples
  kubectl feature leftovers ContainerStopSignals -o wide

  # For a script
  kubectl feature leftovers -o json`
)

var leftoversFormats = []string{outputWide, "json", "yaml"}

// leftoversOptions are the options of leftovers.
type leftoversOptions struct {
	output    string
	noHeaders bool
	retained  bool
	observing observing

	namespace string
	palette   palette
	progress  *progress
	client    versioned.Interface
	visible   *visible
	// others are gates that are not examined and may be off, and unobserved the processes that
	// may have a gate on, by gate.
	others     []notExamined
	unobserved map[string][]string
	genericiooptions.IOStreams
}

func newLeftovers(b *base) *cobra.Command {
	o := &leftoversOptions{IOStreams: b.IOStreams, unobserved: map[string][]string{}}
	cmd := &cobra.Command{
		Use:               "leftovers [NAME...]",
		Short:             "Find what gates that are off have left in stored objects",
		Long:              leftoversLong,
		Example:           leftoversExample,
		ValidArgsFunction: b.completeNames(func(f *v1alpha1.Feature) bool { return f.Status.State != v1alpha1.StateOn }),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if err := checkOutput(o.output, leftoversFormats...); err != nil {
				return err
			}
			if o.namespace = b.namespace(); o.namespace != metav1.NamespaceSystem {
				return fmt.Errorf("-n %s: what features of operators leave is known to their operators alone; kubectl feature list -n %s --dangling shows what these found", o.namespace, o.namespace)
			}
			o.palette, o.progress = b.palette(), b.progress()
			o.progress.w = b.ErrOut
			if o.client, _, err = b.readers(cmd.Context(), &o.observing); err != nil {
				return err
			}
			if o.visible, err = b.storedReader(); err != nil {
				return err
			}
			return o.run(cmd.Context(), namesOf(args))
		},
	}
	flags := cmd.Flags()
	flags.BoolVar(&o.noHeaders, "no-headers", false, "Print no column names.")
	flags.BoolVar(&o.retained, "retained", false, "Also find what stays on purpose, and say why.")
	o.observing.addFlags(flags)
	addOutput(cmd, &o.output, leftoversFormats...)
	return cmd
}

// storedReader reads what a cluster stores, as the caller.
func (b *base) storedReader() (*visible, error) {
	config, err := b.config(b.flags)
	if err != nil {
		return nil, err
	}
	clients, err := b.connectTasks(config)
	if err != nil {
		return nil, err
	}
	return &visible{clients}, nil
}

// run looks, prints, and fails with the exit code.
func (o *leftoversOptions) run(ctx context.Context, names []string) error {
	entries, err := o.entries(ctx, names)
	if err != nil {
		return err
	}
	results := o.visible.examine(ctx, entries, examination{retained: o.retained}, o.progress.examined)
	o.progress.clear()
	if ctx.Err() != nil {
		return errInterrupted
	}
	for i := range results {
		results[i].unobserved = o.unobserved[string(results[i].entry.Name)]
	}
	server := observedOf(o.client) == nil
	if structured(o.output) {
		doc := newObjectsDocument(results, false, server)
		doc.add(o.others, false)
		err = printStructured(o.Out, o.output, doc)
	} else {
		err = o.print(results, server)
	}
	switch {
	case err != nil:
		return err
	case slices.ContainsFunc(results, func(g gateObjects) bool { return g.left() }):
		return exitError(ExitNotSafe)
	case len(o.others) > 0 || slices.ContainsFunc(results, func(g gateObjects) bool { return len(g.unseen) > 0 }):
		return exitError(ExitUnknown)
	}
	return nil
}

// examined shows how many gates were examined.
func (p *progress) examined(done, all int) {
	if p.live {
		p.say("Examining gates " + bar(int64(done), int64(all)))
	}
}

// entries are the verdicts on the gates that are examined: those of names, or all that are
// off.
func (o *leftoversOptions) entries(ctx context.Context, names []string) ([]catalog.Entry, error) {
	features, err := listFeatures(ctx, o.client.FeaturesV1alpha1(), o.namespace)
	if err != nil {
		return nil, err
	}
	if len(names) > 0 {
		known := map[string]*v1alpha1.Feature{}
		for i := range features {
			known[features[i].Name] = &features[i]
		}
		return o.named(ctx, known, names)
	}
	entries, on := o.off(features)
	if structured(o.output) {
		return entries, nil
	}
	var lines []string
	if on > 0 {
		lines = append(lines, fmt.Sprintf("Not examined: %s on; \"kubectl feature list --in-use\" shows what uses them.", count(int64(on), "gate")+map[bool]string{true: " that is", false: " that are"}[on == 1]))
	}
	reasons := map[string][]string{}
	for _, g := range o.others {
		reasons[g.why] = append(reasons[g.why], g.name)
	}
	for _, why := range slices.Sorted(maps.Keys(reasons)) {
		lines = append(lines, fmt.Sprintf("Not examined: %s: %s", strings.Join(reasons[why], ", "), why))
	}
	for _, line := range lines {
		if _, err := fmt.Fprintln(o.ErrOut, printable(line)); err != nil {
			return nil, err
		}
	}
	return entries, nil
}

// Reasons why gates that a cluster may have off are not examined.
const (
	notCataloged = "what it stores is not known to this version of the plugin"
	offAndOn     = "off in kube-apiserver, and on in another process, which kubectl feature uses NAME names"
)

// off are the verdicts on gates that are off, and the number of those that are on. All others
// are noted.
func (o *leftoversOptions) off(features []v1alpha1.Feature) (entries []catalog.Entry, on int) {
	verdicts := map[string]catalog.Entry{}
	for _, entry := range catalog.All() {
		verdicts[string(entry.Name)] = entry
	}
	for i := range features {
		f := &features[i]
		entry, cataloged := verdicts[f.Name]
		s := standingOf(o.client, f, nil)
		value, known := expectedValue(f)
		switch {
		case !cataloged && !mayStore(&f.Status), cataloged && len(entry.Stores())+len(entry.OnDisable) == 0:
			// Off or on, it leaves nothing.
		case !s.known:
			o.others = append(o.others, notExamined{f.Name, s.problem()})
		case len(s.on) > 0 && known && !value:
			o.others = append(o.others, notExamined{f.Name, offAndOn})
		case len(s.on) > 0:
			on++
		case !cataloged:
			o.others = append(o.others, notExamined{f.Name, notCataloged})
		default:
			o.unobserved[f.Name] = s.unseen
			entries = append(entries, entry)
		}
	}
	return entries, on
}

// mayStore is true for a gate of which something may be stored while it is off: the feature of
// a gate that is locked, GA or deprecated is what the cluster does without the gate.
func mayStore(status *v1alpha1.FeatureStatus) bool {
	return !status.LockedToDefault && (status.Stage == v1alpha1.StageAlpha || status.Stage == v1alpha1.StageBeta)
}

// named are the verdicts on gates that the user names. Each of them has to be off.
func (o *leftoversOptions) named(ctx context.Context, known map[string]*v1alpha1.Feature, names []string) ([]catalog.Entry, error) {
	var entries []catalog.Entry
	return entries, forAll(names, func(name string) error {
		f := known[name]
		if f == nil {
			_, err := lookUp(ctx, o.client.FeaturesV1alpha1().Features(o.namespace), o.namespace, name)
			return err
		}
		s := standingOf(o.client, f, nil)
		switch {
		case !s.known:
			return fmt.Errorf("feature %s: %s, so it is not known whether anything of it is left over", name, s.problem())
		case len(s.on) > 0:
			return fmt.Errorf("feature %s: %s, so what objects have of it is in use and not left over; kubectl feature list --in-use shows it", name, s.problem())
		}
		o.unobserved[name] = s.unseen
		entry, err := entryOf(name)
		entries = append(entries, entry)
		return err
	})
}

// entryOf is the verdict on a gate.
func entryOf(name string) (catalog.Entry, error) {
	all := catalog.All()
	at := slices.IndexFunc(all, func(e catalog.Entry) bool { return string(e.Name) == name })
	if at < 0 {
		return catalog.Entry{}, fmt.Errorf("feature %s: "+notCataloged+", as of gates that are locked, removed or not of Kubernetes; kubectl feature gates %s shows its history", name, name)
	}
	return all[at], nil
}

// print writes the table, and what could not be examined.
func (o *leftoversOptions) print(results []gateObjects, server bool) error {
	rows := [][]string{}
	for _, r := range newObjectsDocument(results, false, server).Features {
		for _, found := range r.Objects {
			name := schema.GroupResource{Group: found.Group, Resource: found.Resource}.String()
			by := found.RemovedBy
			if o.output == outputWide && found.Retained != "" {
				by += ": " + found.Retained
			}
			rows = append(rows, []string{r.Name, name, o.field(found), fmt.Sprint(found.Count), o.examples(found), by})
		}
	}
	if len(rows) > 0 {
		columns := []string{"FEATURE", "RESOURCE", "FIELD", "OBJECTS", "EXAMPLES", "REMOVED BY"}
		if o.noHeaders {
			columns = nil
		}
		text, err := table(o.palette, columns, rows, nil)
		if err != nil {
			return err
		}
		if _, err := fmt.Fprint(o.Out, text); err != nil {
			return err
		}
	} else if _, err := fmt.Fprintf(o.ErrOut, "Nothing is left, as far as it was examined: %s.\n", count(int64(len(results)), "gate")); err != nil {
		return err
	}
	return printUnseen(o.ErrOut, results)
}

// field is what the objects have; a table for people names the first of several fields.
func (o *leftoversOptions) field(found foundObjects) string {
	first, _, several := strings.Cut(found.Field, ",")
	if several && o.output != outputWide {
		return first + ",…"
	}
	return cmp.Or(found.Field, "(whole objects)")
}

// shownExamples is how many a table has.
const shownExamples = 2

// examples are the first objects.
func (o *leftoversOptions) examples(found foundObjects) string {
	shown := found.Examples
	if o.output != outputWide {
		shown = shown[:min(len(shown), shownExamples)]
	}
	text := strings.Join(shown, ",")
	if int64(len(shown)) < found.Count {
		text += ",…"
	}
	return cmp.Or(text, none)
}
