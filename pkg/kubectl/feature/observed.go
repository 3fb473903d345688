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
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/feature-lifecycle/client/clientset/versioned"
	featuresclient "k8s.io/feature-lifecycle/client/clientset/versioned/typed/features/v1alpha1"
	"k8s.io/feature-lifecycle/lifecycle/transition"
	"k8s.io/kubernetes-features/pkg/featurelifecycle/history"
	"k8s.io/kubernetes-features/pkg/kubectl/observe"
	"k8s.io/utils/ptr"
)

// observing are the flags of commands that also show clusters without this system.
type observing struct {
	nodes   int
	timeout time.Duration
}

func (o *observing) addFlags(flags *pflag.FlagSet) {
	flags.IntVar(&o.nodes, "nodes", 0, "Without the API: how many nodes are asked, spread evenly over all; 0 asks all.")
	flags.DurationVar(&o.timeout, "observe-timeout", observe.DefaultTimeout, "Without the API: how long components are asked; what was observed by then is shown.")
}

// validate refuses values that make no sense.
func (o *observing) validate() error {
	if o.nodes < 0 {
		return fmt.Errorf("--nodes=%d is negative; 0 asks all", o.nodes)
	}
	if o.timeout <= 0 {
		return fmt.Errorf("--observe-timeout=%s is not positive", o.timeout)
	}
	return nil
}

// readers makes clients for a command that changes nothing. Without the API features.k8s.io
// they show what was observed of the cluster's components, and a line on the error stream
// says so.
func (b *base) readers(ctx context.Context, o *observing) (versioned.Interface, kubernetes.Interface, error) {
	if err := o.validate(); err != nil {
		return nil, nil, err
	}
	config, err := b.config(b.flags)
	if err != nil {
		return nil, nil, err
	}
	client, err := b.connect(config)
	if err != nil {
		return nil, nil, err
	}
	core, err := b.connectCore(config)
	if err != nil {
		return nil, nil, err
	}
	client, err = b.orObserved(ctx, o, config, client)
	return client, core, err
}

// orObserved returns the client, or one of what was observed where the server does not
// have the API.
func (b *base) orObserved(ctx context.Context, o *observing, config *rest.Config, client versioned.Interface) (versioned.Interface, error) {
	_, err := client.FeaturesV1alpha1().Features(metav1.NamespaceSystem).List(ctx, metav1.ListOptions{Limit: 1})
	if apierrors.IsForbidden(err) {
		// Permissions are looked at before what is served; everybody may ask for the latter.
		if _, notServed := client.Discovery().ServerResourcesForGroupVersion(v1alpha1.SchemeGroupVersion.String()); apierrors.IsNotFound(notServed) {
			err = notServed
		}
	}
	if !apierrors.IsNotFound(err) {
		// Any other error is the command's to explain.
		return client, nil
	}
	progress := b.progress()
	progress.w = b.ErrOut
	c, err := b.observe(ctx, config, observe.Options{Nodes: o.nodes, Timeout: o.timeout, Progress: func(done, all int) {
		if progress.live {
			progress.say("Asking components " + bar(int64(done), int64(all)))
		}
	}})
	progress.clear()
	if err != nil {
		if ctx.Err() != nil {
			return nil, errInterrupted
		}
		return nil, fmt.Errorf("%w; what its components show could not be read either: %w", errNoAPI, err)
	}
	if len(c.Processes) == 0 {
		return nil, fmt.Errorf("%w; none of its components could be observed either: %s", errNoAPI, strings.Join(gapTexts(c), "; "))
	}
	h := history.Load()
	c.Derive(h)
	observed := &observedClient{cluster: c, features: c.Features(h), reports: c.Reports(), served: client.Discovery()}
	return observed, observed.explain(b.ErrOut)
}

// observedClient shows what was observed. It reads only.
type observedClient struct {
	cluster  *observe.Cluster
	features []v1alpha1.Feature
	reports  []v1alpha1.FeatureReport
	served   discovery.DiscoveryInterfaces
}

var _ versioned.Interface = &observedClient{}

// Discovery returns that of the cluster.
func (c *observedClient) Discovery() discovery.DiscoveryInterfaces { return c.served }

// FeaturesV1alpha1 reads what was observed.
func (c *observedClient) FeaturesV1alpha1() featuresclient.FeaturesV1alpha1Interface {
	return observedAPI{client: c}
}

// observedText is what is shown of a cluster, and what is not known of it.
func observedText(o *observe.Cluster) string {
	text := fmt.Sprintf("The server (%s) has no API %s. What is shown was observed of %s; who queries a gate, states and tasks are not known.", o.Version, v1alpha1.SchemeGroupVersion, processesText(len(o.Processes)))
	if o.Asked < o.Nodes {
		text += fmt.Sprintf(" %d of %d nodes were asked.", o.Asked, o.Nodes)
	}
	return text
}

// explain says what is shown, and what is not known of it.
func (c *observedClient) explain(w io.Writer) error {
	lines := []string{observedText(c.cluster)}
	for _, gap := range gapTexts(c.cluster) {
		lines = append(lines, "Not observed: "+gap)
	}
	for _, line := range lines {
		if _, err := fmt.Fprintln(w, printable(line)); err != nil {
			return err
		}
	}
	return nil
}

// maxInstances is how many a line about a gap names.
const maxInstances = 3

// gapTexts are those of all gaps.
func gapTexts(c *observe.Cluster) []string {
	var texts []string
	for _, g := range c.Gaps {
		texts = append(texts, gapText(g))
	}
	return texts
}

// gapText is what was not observed, why, and what is missing.
func gapText(g observe.Gap) string {
	text := g.Component
	if n := len(g.Instances); n > maxInstances {
		text += fmt.Sprintf(" %s and %d more", strings.Join(g.Instances[:maxInstances], ", "), n-maxInstances)
	} else if n > 0 {
		text += " " + strings.Join(g.Instances, ", ")
	}
	text += ": " + g.Why
	if g.Next != "" {
		text += "; needed is " + g.Next
	}
	return text
}

// observedAPI reads what was observed. What it does not have, no command that reads calls.
type observedAPI struct {
	featuresclient.FeaturesV1alpha1Interface
	client *observedClient
}

func (a observedAPI) Features(namespace string) featuresclient.FeatureInterface {
	return observedFeatures{client: a.client, namespace: namespace}
}

func (a observedAPI) FeatureReports(namespace string) featuresclient.FeatureReportInterface {
	return observedReports{client: a.client, namespace: namespace}
}

type observedFeatures struct {
	featuresclient.FeatureInterface
	client    *observedClient
	namespace string
}

// within is true for kube-system, in which everything is that is observed.
func within(namespace string) bool {
	return namespace == metav1.NamespaceSystem || namespace == metav1.NamespaceAll
}

// List returns all.
func (f observedFeatures) List(context.Context, metav1.ListOptions) (*v1alpha1.FeatureList, error) {
	if !within(f.namespace) {
		return nil, errNoAPI
	}
	return &v1alpha1.FeatureList{Items: slices.Clone(f.client.features)}, nil
}

// Get returns one.
func (f observedFeatures) Get(_ context.Context, name string, _ metav1.GetOptions) (*v1alpha1.Feature, error) {
	at, found := slices.BinarySearchFunc(f.client.features, name, func(f v1alpha1.Feature, name string) int { return cmp.Compare(f.Name, name) })
	if !found || !within(f.namespace) {
		return nil, apierrors.NewNotFound(v1alpha1.Resource("features"), name)
	}
	return f.client.features[at].DeepCopy(), nil
}

type observedReports struct {
	featuresclient.FeatureReportInterface
	client    *observedClient
	namespace string
}

// List returns all.
func (r observedReports) List(context.Context, metav1.ListOptions) (*v1alpha1.FeatureReportList, error) {
	if !within(r.namespace) {
		return nil, errNoAPI
	}
	return &v1alpha1.FeatureReportList{Items: slices.Clone(r.client.reports)}, nil
}

// observedOf is what was observed, nil for a cluster with the API.
func observedOf(client versioned.Interface) *observe.Cluster {
	if c, ok := client.(*observedClient); ok {
		return c.cluster
	}
	return nil
}

// isObserved is true for a Feature that no server has, but which says what was observed.
func isObserved(f *v1alpha1.Feature) bool {
	_, observed := f.Annotations[observe.Annotation]
	return observed
}

// expectedValue is what users have to have: the value of the state, or that of
// kube-apiservers where there is no state to observe.
func expectedValue(f *v1alpha1.Feature) (value, known bool) {
	if !isObserved(f) {
		return transition.Value(&f.Status)
	}
	if f.Status.Configured == nil {
		return false, false
	}
	return f.Status.Configured.Value, true
}

// unknownState stands for the state of a Feature that was observed.
const unknownState = "not known"

// stateText is the state of a feature.
func stateText(f *v1alpha1.Feature) string {
	if isObserved(f) {
		return unknownState
	}
	return orNone(string(f.Status.State))
}

// expectedFrom names what expectedValue returns.
func expectedFrom(f *v1alpha1.Feature) string {
	if isObserved(f) {
		return "kube-apiserver"
	}
	return "the state"
}

// observedProcesses are those that have a gate, with where its value was observed.
func observedProcesses(c *observe.Cluster, f *v1alpha1.Feature) []process {
	found := []process{}
	value, known := expectedValue(f)
	for i := range c.Processes {
		p := &c.Processes[i]
		v, ok := p.Gates[f.Name]
		if !ok {
			continue
		}
		one := process{
			Component: p.Component, Instance: p.Instance, Node: p.Node, Version: p.Version, Emulates: p.Emulates, Enabled: v.Enabled,
			Observed: v.Source, Differs: known && value != v.Enabled,
		}
		one.Explicit, one.SetUnknown = ptr.Deref(v.Explicit, false), v.Explicit == nil
		found = append(found, one)
	}
	return found
}

// joining is the value of a gate that nodes get when they join.
type joining struct {
	Component string `json:"component"`
	Enabled   bool   `json:"enabled"`
	// Differs is true for another value than that of kube-apiserver.
	Differs bool `json:"differs,omitempty"`
	// Observed says where the value was observed.
	Observed string `json:"observed"`
}

// nodesThatJoin stands for the name of a process that is still to come.
const nodesThatJoin = "nodes that join"

// joiningOf are the values that nodes get when they join, as far as they are set.
func joiningOf(c *observe.Cluster, f *v1alpha1.Feature) []joining {
	var found []joining
	value, known := expectedValue(f)
	for _, s := range c.Joining(f) {
		found = append(found, joining{Component: s.Component, Enabled: s.Enabled, Differs: known && value != s.Enabled, Observed: s.Source})
	}
	return found
}

// observedBy follows the value of a process, with where it was observed.
func observedBy(source string) string {
	if source == "" {
		return ""
	}
	return ", observed by " + source
}

func processesText(n int) string {
	if n == 1 {
		return "1 process"
	}
	return fmt.Sprintf("%d processes", n)
}
