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
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/feature-lifecycle/client/clientset/versioned"
	featuresclient "k8s.io/feature-lifecycle/client/clientset/versioned/typed/features/v1alpha1"
)

const (
	listLong = `List features.

Filters narrow each other down: with several of them a feature has to pass all. Values of one filter, separated by commas, are
alternatives.

Lines in color, on a terminal, are features that need attention: yellow while a transition is under way, red where users
differ, something dangles, or a task is blocked.

Exit codes: 0 listed, also when nothing fits; 3 the command failed.`

	listExample = `  # All features
  kubectl feature list

  # What is not as its default says
  kubectl feature list --not-default

  # Alpha and beta features that are on
  kubectl feature list --stage=Alpha,Beta --state=On

  # Features that are off and have left something behind
  kubectl feature list --dangling -o name

  # What objects use of the gates that are on
  kubectl feature list --in-use

  # What moves, what began last first
  kubectl feature list --transitioning --sort-by=since`
)

var (
	listFormats = []string{outputWide, "json", "yaml", outputName}
	allStates   = []v1alpha1.FeatureState{
		v1alpha1.StateOn, v1alpha1.StateOff, v1alpha1.StateTurningOn, v1alpha1.StateTurningOff, v1alpha1.StateUpgrading, v1alpha1.StateDowngrading,
	}
	allStages = []v1alpha1.FeatureStage{
		v1alpha1.StagePreAlpha, v1alpha1.StageAlpha, v1alpha1.StageBeta, v1alpha1.StageGA, v1alpha1.StageDeprecated,
	}
)

// listOptions are the options of list.
type listOptions struct {
	filter        filter
	output        string
	sortBy        string
	noHeaders     bool
	allNamespaces bool
	inUse         bool
	observing     observing

	used      inUse
	namespace string
	palette   palette
	client    versioned.Interface
	genericiooptions.IOStreams
}

// filter selects features. The zero value selects all.
type filter struct {
	states, stages []string
	dangling       bool
	transitioning  bool
	notDefault     bool
	mismatched     bool
}

func newList(b *base) *cobra.Command {
	o := &listOptions{IOStreams: b.IOStreams}
	cmd := &cobra.Command{
		Use:     "list",
		Aliases: []string{"ls"},
		Short:   "List features, by what they are and do",
		Long:    listLong,
		Example: listExample,
		Args:    noNames,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.complete(b, cmd); err != nil {
				return err
			}
			return o.run(cmd.Context())
		},
	}
	flags := cmd.Flags()
	flags.StringSliceVar(&o.filter.states, "state", nil, "Only features in these states: "+strings.Join(texts(allStates), ", ")+".")
	flags.StringSliceVar(&o.filter.stages, "stage", nil, "Only features of these stages: "+strings.Join(texts(allStages), ", ")+".")
	flags.BoolVar(&o.filter.dangling, "dangling", false, "Only features that have left something in stored objects while off, or something that no server of this version reads, as the servers found in the last 30 minutes; kubectl feature plan NAME --disable looks now.")
	flags.BoolVar(&o.filter.transitioning, "transitioning", false, "Only features with a transition under way.")
	flags.BoolVar(&o.filter.notDefault, "not-default", false, "Only features whose configured value is not the default.")
	flags.BoolVar(&o.filter.mismatched, "mismatched", false, "Only features of which some users have another value than the state, or of which kube-apiservers disagree.")
	flags.BoolVar(&o.inUse, "in-use", false, "Only features that are on, with how many objects use them now: a gate that is on and that no object uses can be turned off without a trace. The objects are read as the caller.")
	flags.StringVar(&o.sortBy, "sort-by", "name", "Order: "+strings.Join(orders(), ", ")+". Within it features are sorted by namespace and name.")
	flags.BoolVar(&o.noHeaders, "no-headers", false, "Print no column names.")
	flags.BoolVarP(&o.allNamespaces, "all-namespaces", "A", false, "The features of all namespaces, those of operators among them.")
	o.observing.addFlags(flags)
	addOutput(cmd, &o.output, listFormats...)
	completeList(cmd, "state", always(texts(allStates)...))
	completeList(cmd, "stage", always(texts(allStages)...))
	complete(cmd, "sort-by", always(orders()...))
	return cmd
}

// complete validates the flags and makes the client.
func (o *listOptions) complete(b *base, cmd *cobra.Command) (err error) {
	for flag, values := range map[string][]string{"state": o.filter.states, "stage": o.filter.stages} {
		// A script passes that when its variable is empty.
		if cmd.Flags().Changed(flag) && len(values) == 0 {
			return fmt.Errorf("--%s is empty; name values, or leave it out for all", flag)
		}
	}
	err = errors.Join(
		checkOutput(o.output, listFormats...),
		oneOf("--state", o.filter.states, texts(allStates)),
		oneOf("--stage", o.filter.stages, texts(allStages)),
		oneOf("--sort-by", []string{o.sortBy}, orders()),
	)
	if err != nil {
		return err
	}
	o.palette = b.palette()
	if o.namespace = b.namespace(); o.allNamespaces {
		o.namespace = metav1.NamespaceAll
	}
	if err := o.prepareInUse(b); err != nil {
		return err
	}
	o.client, _, err = b.readers(cmd.Context(), &o.observing)
	return err
}

// run lists and prints.
func (o *listOptions) run(ctx context.Context) error {
	if err := o.filter.checkObserved(observedOf(o.client) != nil); err != nil {
		return err
	}
	features, err := listFeatures(ctx, o.client.FeaturesV1alpha1(), o.namespace)
	if err != nil {
		return err
	}
	features = slices.DeleteFunc(features, func(f v1alpha1.Feature) bool { return !o.filter.wants(&f) })
	slices.SortStableFunc(features, byOrder[strings.ToLower(o.sortBy)])
	if o.inUse {
		if features, err = o.countInUse(ctx, features); err != nil {
			return err
		}
	}
	switch {
	case structured(o.output) && o.inUse:
		doc := newObjectsDocument(o.used.ordered(features), true, observedOf(o.client) == nil)
		doc.add(o.used.unknown(features), true)
		return printStructured(o.Out, o.output, doc)
	case structured(o.output):
		list := &v1alpha1.FeatureList{TypeMeta: metav1.TypeMeta{APIVersion: v1alpha1.SchemeGroupVersion.String(), Kind: "FeatureList"}, Items: []v1alpha1.Feature{}}
		for i := range features {
			list.Items = append(list.Items, *typed(&features[i]))
		}
		return printStructured(o.Out, o.output, list)
	case o.output == outputName:
		for i := range features {
			if _, err := fmt.Fprintln(o.Out, title(features[i].Name)); err != nil {
				return err
			}
		}
		return nil
	case len(features) == 0:
		_, err = fmt.Fprintln(o.ErrOut, o.nothing())
	default:
		err = o.printTable(features)
	}
	if err == nil && o.filter.dangling {
		_, err = fmt.Fprintln(o.ErrOut, howOld)
	}
	if err == nil && o.inUse {
		err = printUnseen(o.ErrOut, o.used.ordered(features))
	}
	return err
}

// howOld returns the age of the leftovers that the servers have found.
const howOld = "Servers look for leftovers every 30 minutes; \"kubectl feature plan NAME --disable\" looks now."

// nothing returns the message that no feature matches.
func (o *listOptions) nothing() string {
	if o.namespace == metav1.NamespaceAll {
		return "No such features found in any namespace."
	}
	return fmt.Sprintf("No such features found in %s.", o.namespace)
}

// listFeatures reads all Features of a namespace, sorted by namespace and name.
func listFeatures(ctx context.Context, client featuresclient.FeaturesV1alpha1Interface, namespace string) ([]v1alpha1.Feature, error) {
	var features []v1alpha1.Feature
	err := each(ctx, func(ctx context.Context, opts metav1.ListOptions) (runtime.Object, error) {
		return client.Features(namespace).List(ctx, opts)
	}, &features)
	switch {
	case apierrors.IsNotFound(err):
		return nil, errNoAPI
	case apierrors.IsForbidden(err) && namespace == metav1.NamespaceAll:
		return nil, fmt.Errorf("listing Features of all namespaces: %w; leave out -A for those of kube-system, or name a namespace with -n", err)
	case err != nil && namespace == metav1.NamespaceAll:
		return nil, fmt.Errorf("listing Features of all namespaces: %w", err)
	case err != nil:
		return nil, fmt.Errorf("listing Features in %s: %w", namespace, err)
	}
	slices.SortFunc(features, byName)
	return features, nil
}

// checkObserved refuses filters by what cannot be observed: nothing would fit, which would
// look like an answer.
func (w filter) checkObserved(observed bool) error {
	if observed && (len(w.states) > 0 || w.transitioning || w.dangling) {
		return errors.New("--state, --transitioning and --dangling need what only servers with the API know; leave them out, or use kubectl feature leftovers for what gates left behind")
	}
	return nil
}

// wants is true for a feature that passes the filter.
func (w filter) wants(f *v1alpha1.Feature) bool {
	status := &f.Status
	switch {
	case len(w.states) > 0 && !containsFold(w.states, string(status.State)):
		return false
	case len(w.stages) > 0 && !containsFold(w.stages, string(status.Stage)):
		return false
	case w.dangling && !dangling(status):
		return false
	case w.transitioning && status.Transition == nil:
		return false
	case w.notDefault && !notDefault(status):
		return false
	case w.mismatched && !mismatched(status):
		return false
	default:
		return true
	}
}

// dangling is true for "off but dangling" of KEP-3920.
func dangling(status *v1alpha1.FeatureStatus) bool {
	return meta.IsStatusConditionFalse(status.Conditions, v1alpha1.ConditionClean)
}

// notDefault is true when something else is configured than the gate's default.
func notDefault(status *v1alpha1.FeatureStatus) bool {
	return status.Configured != nil && status.Default != nil && status.Configured.Value != *status.Default
}

// mismatched is true when users differ from the state, or servers from each other.
func mismatched(status *v1alpha1.FeatureStatus) bool {
	servers := meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionConsistent)
	return meta.IsStatusConditionFalse(status.Conditions, v1alpha1.ConditionUsesMatch) ||
		servers != nil && servers.Reason == v1alpha1.ReasonServersDisagree
}

// byOrder are the orders that a list may have.
var byOrder = map[string]func(a, b v1alpha1.Feature) int{
	"name": byName,
	"state": func(a, b v1alpha1.Feature) int {
		return cmp.Or(cmp.Compare(a.Status.State, b.Status.State), byName(a, b))
	},
	"stage": func(a, b v1alpha1.Feature) int {
		return cmp.Or(cmp.Compare(slices.Index(allStages, a.Status.Stage), slices.Index(allStages, b.Status.Stage)), byName(a, b))
	},
	// The latest change is first.
	"since": func(a, b v1alpha1.Feature) int {
		return cmp.Or(since(&b).Compare(since(&a).Time), byName(a, b))
	},
}

// since returns the time of a feature's last change of state, or the zero
// time.
func since(f *v1alpha1.Feature) metav1.Time {
	if f.Status.StateSince == nil {
		return metav1.Time{}
	}
	return *f.Status.StateSince
}

func byName(a, b v1alpha1.Feature) int {
	return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
}

func orders() []string { return []string{"name", "state", "stage", "since"} }

// oneOf fails with the values of a flag that are not among those that there are.
func oneOf(flag string, values, known []string) error {
	for _, v := range values {
		if !containsFold(known, v) {
			return fmt.Errorf("%s=%s is unknown; use %s", flag, v, strings.Join(known, ", "))
		}
	}
	return nil
}

func containsFold(values []string, value string) bool {
	return slices.ContainsFunc(values, func(v string) bool { return strings.EqualFold(v, value) })
}

func texts[T ~string](values []T) []string {
	all := make([]string, 0, len(values))
	for _, v := range values {
		all = append(all, string(v))
	}
	return all
}
