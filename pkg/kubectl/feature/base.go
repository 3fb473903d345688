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
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/feature-lifecycle/client/clientset/versioned"
	featuresclient "k8s.io/feature-lifecycle/client/clientset/versioned/typed/features/v1alpha1"
	"k8s.io/feature-lifecycle/lifecycle/task"
	"k8s.io/kubernetes-features/pkg/kubectl/observe"
)

// base has the shared parts of all commands: the connection's flags and the
// streams.
type base struct {
	flags *genericclioptions.ConfigFlags
	// connect makes a client from a configuration.
	connect func(*rest.Config) (versioned.Interface, error)
	// connectCore makes a client for all else, such as events.
	connectCore func(*rest.Config) (kubernetes.Interface, error)
	// connectTasks makes clients for tasks that run as the caller.
	connectTasks func(*rest.Config) (task.Clients, error)
	// observe reads what a cluster without this system shows.
	observe func(context.Context, *rest.Config, observe.Options) (*observe.Cluster, error)
	// isTerminal is true when the output stream is a terminal.
	isTerminal func() bool
	// completionTimeout is the time that completion waits for servers.
	completionTimeout time.Duration
	genericiooptions.IOStreams
}

func newBase(streams genericiooptions.IOStreams) *base {
	return &base{
		flags:       genericclioptions.NewConfigFlags(true),
		connect:     func(config *rest.Config) (versioned.Interface, error) { return versioned.NewForConfig(config) },
		connectCore: func(config *rest.Config) (kubernetes.Interface, error) { return kubernetes.NewForConfig(config) },
		observe:     observe.Observe,

		connectTasks: taskClients,
		isTerminal:   func() bool { return onTerminal(streams.Out) },
		IOStreams:    streams,

		completionTimeout: completionTimeout,
	}
}

// namespace is that of the Features. The one of the kubeconfig's context does not
// count: it is the user's workspace, and Features of Kubernetes are in
// kube-system.
func (b *base) namespace() string {
	if b.flags.Namespace == nil {
		return metav1.NamespaceSystem
	}
	return cmp.Or(*b.flags.Namespace, metav1.NamespaceSystem)
}

// client makes a client from the flags. It writes the server's warnings to the
// error stream, each once.
func (b *base) client() (versioned.Interface, error) {
	config, err := b.config(b.flags)
	if err != nil {
		return nil, err
	}
	return b.connect(config)
}

// clients makes that client, and one for all else.
func (b *base) clients() (client versioned.Interface, core kubernetes.Interface, err error) {
	config, err := b.config(b.flags)
	if err != nil {
		return nil, nil, err
	}
	if client, err = b.connect(config); err != nil {
		return nil, nil, err
	}
	core, err = b.connectCore(config)
	return client, core, err
}

// bare makes clients for what a cluster shows without this system.
func (b *base) bare() (*bare, error) {
	config, err := b.config(b.flags)
	if err != nil {
		return nil, err
	}
	versions, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, err
	}
	clients, err := b.connectTasks(config)
	if err != nil {
		return nil, err
	}
	return &bare{discovery: versions, visible: &visible{clients}}, nil
}

// config makes a configuration from flags.
func (b *base) config(flags *genericclioptions.ConfigFlags) (*rest.Config, error) {
	config, err := flags.ToRESTConfig()
	if err != nil {
		return nil, err
	}
	// Commands about all features send one request for each.
	config.QPS, config.Burst = 50, 100
	config.WarningHandler = rest.NewWarningWriter(b.ErrOut, rest.WarningWriterOptions{Deduplicate: true})
	return config, nil
}

// contextName returns the context's name in the kubeconfig, "" when it has
// none.
func contextName(flags *genericclioptions.ConfigFlags) string {
	if flags.Context != nil && *flags.Context != "" {
		return *flags.Context
	}
	raw, err := flags.ToRawKubeConfigLoader().RawConfig()
	if err != nil {
		return ""
	}
	return raw.CurrentContext
}

// forAll does something for each name, and fails with all errors.
func forAll(names []string, do func(name string) error) error {
	var failed []error
	for _, name := range names {
		if err := do(name); err != nil {
			failed = append(failed, err)
		}
	}
	return errors.Join(failed...)
}

// errNoAPI is returned for servers without this system.
var errNoAPI = fmt.Errorf("the server has no API %s: its kube-apiserver does not have the gate FeatureLifecycle, or has it off; start it with --feature-gates=FeatureLifecycle=true", v1alpha1.SchemeGroupVersion)

// resource is the name of Features in the output of "kubectl get -o name".
const resource = "feature." + v1alpha1.GroupName

// title is the name of a feature as kubectl prints it.
func title(name string) string { return resource + "/" + printable(name) }

// namesOf are the features that arguments name, each once and in order. They may be
// written as kubectl prints them.
func namesOf(args []string) []string {
	var names []string
	for _, arg := range args {
		kind, name, found := strings.Cut(arg, "/")
		if !found || !isFeature(kind) {
			name = arg
		}
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// isFeature is true for what kubectl takes for the resource: names in any case, the
// short one, with or without version and group.
func isFeature(kind string) bool {
	name, group, qualified := strings.Cut(strings.ToLower(kind), ".")
	return slices.Contains([]string{"feature", "features", "feat"}, name) &&
		(!qualified || group == v1alpha1.GroupName || group == v1alpha1.SchemeGroupVersion.Version+"."+v1alpha1.GroupName)
}

// lookUp reads a Feature. If it does not exist, the error has similar names.
func lookUp(ctx context.Context, client featuresclient.FeatureInterface, namespace, name string) (*v1alpha1.Feature, error) {
	if kind, _, found := strings.Cut(name, "/"); found {
		return nil, fmt.Errorf("%s names a resource %q, and not a feature; write NAME, or feature/NAME", name, kind)
	}
	if name == "" {
		return nil, errors.New("the name of a feature is empty; kubectl feature list shows all")
	}
	feature, err := client.Get(ctx, name, metav1.GetOptions{})
	if err == nil {
		return feature, nil
	}
	if !apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("reading feature %s in %s: %w", name, namespace, err)
	}
	list, listErr := client.List(ctx, metav1.ListOptions{})
	switch {
	case apierrors.IsNotFound(listErr):
		return nil, errNoAPI
	case listErr != nil:
		return nil, fmt.Errorf("reading feature %s in %s: %w", name, namespace, err)
	}
	known := make([]string, 0, len(list.Items))
	for _, f := range list.Items {
		known = append(known, f.Name)
	}
	next := fmt.Sprintf("kubectl feature list -n %s lists all", namespace)
	if close := nearest(name, known); len(close) > 0 {
		next = fmt.Sprintf("did you mean %s?", strings.Join(close, ", "))
	} else if namespace == metav1.NamespaceSystem {
		next += "; the features of operators are in their own namespaces (--namespace)"
	}
	return nil, fmt.Errorf("there is no feature %s in %s; %s", name, namespace, next)
}

// nearest returns at most 3 similar names, the nearest first. These are names with
// a few letters changed, and names of which words begin with the given text. Case
// is ignored.
func nearest(written string, names []string) []string {
	type candidate struct {
		name     string
		distance int
	}
	written = strings.ToLower(written)
	most := max(1, len(written)/4)
	var near []candidate
	for _, name := range names {
		lower := strings.ToLower(name)
		distance := editDistance(written, lower)
		if distance <= most || len(written) >= 3 && hasWord(name, written) {
			near = append(near, candidate{name, distance})
		}
	}
	slices.SortFunc(near, func(a, b candidate) int {
		return cmp.Or(cmp.Compare(a.distance, b.distance), cmp.Compare(a.name, b.name))
	})
	var found []string
	for _, c := range near[:min(3, len(near))] {
		found = append(found, c.name)
	}
	return found
}

// hasWord is true if one of the words of a name in camel case, or several, begin
// with some small letters.
func hasWord(name, begin string) bool {
	for i := range len(name) - len(begin) + 1 {
		if (i == 0 || name[i] >= 'A' && name[i] <= 'Z') && strings.EqualFold(name[i:i+len(begin)], begin) {
			return true
		}
	}
	return false
}

// editDistance is the Levenshtein distance: how many bytes have to be added,
// removed or replaced. Names of gates are ASCII.
func editDistance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			replaced := diagonal
			if a[i] != b[j] {
				replaced++
			}
			diagonal = row[j+1]
			row[j+1] = min(replaced, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
