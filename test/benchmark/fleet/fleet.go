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

package fleet

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/transport"
	"k8s.io/feature-lifecycle/agent"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/feature-lifecycle/client/clientset/versioned"
	"k8s.io/feature-lifecycle/featuregate"
)

// Kubelet and KubeProxy are the components that run on every node.
const (
	Kubelet   = "kubelet"
	KubeProxy = "kube-proxy"
)

// perConnection is how many processes share a TCP connection. Real ones have one
// each, and have it without this system, too.
const perConnection = 50

// Template is what processes of a component report.
type Template struct {
	BinaryVersion, EmulationVersion string
	Observations                    []featuregate.Observation
}

// TemplateOf makes a template of the report of a real process.
func TemplateOf(r *v1alpha1.FeatureReport) Template {
	t := Template{BinaryVersion: r.Spec.BinaryVersion, EmulationVersion: r.Spec.EmulationVersion}
	for _, f := range r.Spec.Features {
		t.Observations = append(t.Observations, featuregate.Observation{
			Name: f.Name, Enabled: f.Enabled, Queried: f.Queried, Explicit: f.Explicit, Stage: f.Stage,
			Default: f.Default, LockedToDefault: f.LockedToDefault, Overridden: f.Overridden, Control: f.Control,
		})
	}
	return t
}

// Fleet is the processes of some nodes.
type Fleet struct {
	// asks is the feature that processes follow with Follow, nil without; looks is true
	// if they only look whether there is one to follow.
	asks  *asked
	looks bool
	// clients are shared by processes: who asks is in the context.
	clients   []*clients
	templates map[string]*Template
	processes []*Process
}

type clients struct {
	features versioned.Interface
	kube     kubernetes.Interface
	// plain is a client as people make it who know nothing of this system.
	plain kubernetes.Interface
	// values reads and follows Features.
	values versioned.Interface
}

// New makes a fleet for so many nodes, without processes. Proxy is how a front proxy
// reaches the server, which believes it who sends a request: as for real processes, no
// request is checked for the permission to impersonate.
func New(ctx context.Context, proxy *rest.Config, templates map[string]Template, nodes int) (*Fleet, error) {
	f := &Fleet{templates: map[string]*Template{}}
	for component, template := range templates {
		f.templates[component] = &template
	}
	for range nodes*len(templates)/perConnection + 1 {
		c, err := connect(ctx, proxy)
		if err != nil {
			return nil, err
		}
		f.clients = append(f.clients, c)
	}
	return f, nil
}

// connect opens connections, one for the library's clients and one for plain ones.
// Processes that start have them already.
func connect(ctx context.Context, proxy *rest.Config) (*clients, error) {
	config, client, err := ofFleet(agent.ClientConfig(proxy))
	if err != nil {
		return nil, err
	}
	c := &clients{}
	if c.features, err = versioned.NewForConfigAndClient(config, client); err != nil {
		return nil, err
	}
	if c.kube, err = kubernetes.NewForConfigAndClient(config, client); err != nil {
		return nil, err
	}
	if c.values, err = valuesClient(config, client); err != nil {
		return nil, err
	}
	if config, client, err = ofFleet(rest.CopyConfig(proxy)); err != nil {
		return nil, err
	}
	if c.plain, err = kubernetes.NewForConfigAndClient(config, client); err != nil {
		return nil, err
	}
	return c, c.touch(ctx)
}

// touch sends something over both connections.
func (c *clients) touch(ctx context.Context) error {
	ctx = context.WithValue(ctx, identityKey{}, identityOf(KubeProxy, ""))
	for _, kube := range []kubernetes.Interface{c.kube, c.plain} {
		if err := kube.CoreV1().RESTClient().Get().AbsPath("/version").Do(ctx).Error(); err != nil {
			return fmt.Errorf("connecting a fleet: %w", err)
		}
	}
	return nil
}

// idlePeriod is how often something is sent over each connection, at least: both ends
// close what has been idle for 90 seconds.
const idlePeriod = time.Minute

// KeepOpen keeps the fleet's connections open until the context ends, as those of real
// processes are, which always have something to ask. It returns the first error that is
// not its end.
func (f *Fleet) KeepOpen(ctx context.Context) error {
	return inTurn(ctx, len(f.clients), idlePeriod, func(ctx context.Context, number int) error {
		return unlessLater(f.clients[number].touch(ctx))
	})
}

// ofFleet makes a configuration that of many processes, with a connection of its own.
func ofFleet(config *rest.Config) (*rest.Config, *http.Client, error) {
	config.QPS = -1
	// Configurations that differ in this have connections of their own.
	config.Dial = (&net.Dialer{}).DialContext
	config.Wrap(asInContext)
	config.UserAgent = "feature-lifecycle-fleet"
	client, err := rest.HTTPClientFor(config)
	return config, client, err
}

// identityKey is the key of a context's identity.
type identityKey struct{}

// identity is who sends a request.
type identity struct {
	user, group string
	// node is the node that the token is bound to, if it is.
	node string
	// process is called when a report was accepted; nil for none.
	process *Process
}

// identityOf is who the process of a component is on a node: a kubelet is its node,
// all kube-proxies are one user, each with a token that is bound to its node, as those
// of a DaemonSet have.
func identityOf(component, node string) identity {
	if component == Kubelet {
		return identity{user: "system:node:" + node, group: user.NodesGroup}
	}
	return identity{user: user.KubeProxy, node: node}
}

// As makes requests of a context those of a process.
func (p *Process) As(ctx context.Context) context.Context {
	who := identityOf(p.Component, p.Node)
	who.process = p
	return context.WithValue(ctx, identityKey{}, who)
}

// asInContext makes requests as the identity in their context.
func asInContext(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(request *http.Request) (*http.Response, error) {
		who, ok := request.Context().Value(identityKey{}).(identity)
		if !ok {
			return nil, errors.New("a request of the fleet has to say whose it is")
		}
		request = request.Clone(request.Context())
		var groups []string
		if who.group != "" {
			groups = []string{who.group}
		}
		var extra map[string][]string
		if who.node != "" {
			extra = map[string][]string{serviceaccount.NodeNameKey: {who.node}}
		}
		transport.SetAuthProxyHeaders(request, who.user, "", groups, extra)
		response, err := next.RoundTrip(request)
		if err == nil && who.process != nil && request.Method != http.MethodGet && response.StatusCode < http.StatusMultipleChoices {
			who.process.noteWritten(time.Now())
		}
		return response, err
	})
}

type roundTripper func(*http.Request) (*http.Response, error)

func (r roundTripper) RoundTrip(request *http.Request) (*http.Response, error) { return r(request) }

// Add adds the processes of a node, which do not run yet.
func (f *Fleet) Add(node string) {
	for _, component := range []string{Kubelet, KubeProxy} {
		if template, ok := f.templates[component]; ok {
			p := &Process{
				fleet: f, clients: f.clients[len(f.processes)%len(f.clients)], Component: component, Node: node,
				written: make(chan time.Time, 1),
			}
			p.Become(template)
			f.processes = append(f.processes, p)
		}
	}
}

// PerNode is the number of processes a node has.
const PerNode = 2

// OfWholeNodes returns an error that names the first number of processes that no nodes
// have together, if there is one.
func OfWholeNodes(processes ...int) error {
	for _, n := range processes {
		if n < PerNode || n%PerNode != 0 {
			return fmt.Errorf("%d processes: each node has two, so the number has to be even and above 0", n)
		}
	}
	return nil
}

// Processes are all processes, in the order in which their nodes were added.
func (f *Fleet) Processes() []*Process { return slices.Clone(f.processes) }

// checkPeriod is how often a process on a node looks whether its report is still
// there (package agent).
const checkPeriod = 15 * time.Minute

// Check reads the reports of all processes in turn until the context ends, as often,
// and as cheaply, as the processes do that have run for long, and returns the first error that is
// not its end. The processes themselves look for the first time fifteen minutes after
// they reported.
func (f *Fleet) Check(ctx context.Context) error {
	return inTurn(ctx, len(f.processes), checkPeriod, func(ctx context.Context, number int) error {
		p := f.processes[number]
		_, err := p.clients.features.FeaturesV1alpha1().FeatureReports(metav1.NamespaceSystem).Get(p.As(ctx), p.Name(), metav1.GetOptions{ResourceVersion: "0"})
		if apierrors.IsNotFound(err) {
			// It is being restarted.
			return nil
		}
		return unlessLater(err)
	})
}

// Look lists the Features that say a value for all processes in turn until the context
// ends, as often as the processes do that have run for long, and returns the first error
// that is not its end. The processes themselves come to that rate after some minutes
// (package agent).
func (f *Fleet) Look(ctx context.Context) error {
	var seen atomic.Pointer[string]
	var failed atomic.Pointer[error]
	// They look all the same whether there are some or not.
	err := inTurn(ctx, len(f.processes), lookPeriod, func(ctx context.Context, number int) error {
		p, options := f.processes[number], lookOptions("")
		// All have seen something for long. The first answer stands for that.
		if version := seen.Load(); version != nil {
			options = lookOptions(*version)
		}
		list, err := p.clients.values.FeaturesV1alpha1().Features(metav1.NamespaceSystem).List(p.As(ctx), options)
		if err == nil {
			seen.CompareAndSwap(nil, &list.ResourceVersion)
		} else if ctx.Err() == nil {
			failed.Store(&err)
		}
		return unlessLater(err)
	})
	if last := failed.Load(); err == nil && last != nil && seen.Load() == nil {
		err = fmt.Errorf("processes looked which features are set centrally, and the server answered none of them: %w", *last)
	}
	return err
}

// lookPeriod is how often a process on a node that has run for long looks which features
// are set centrally: every ten minutes less up to a quarter at random (package agent).
const lookPeriod = 10 * time.Minute * 7 / 8

// lookOptions are those of a follower that has seen a resource version.
func lookOptions(seen string) metav1.ListOptions {
	o := metav1.ListOptions{FieldSelector: "status.control!=,status.control!=" + string(v1alpha1.ControlLocal), Limit: 500, ResourceVersion: seen}
	if seen != "" {
		o.ResourceVersionMatch = metav1.ResourceVersionMatchNotOlderThan
	}
	return o
}

// EndLooks lets the processes look no more by themselves: whoever measures a cluster at
// rest calls Look instead, and does not have to wait until they look as rarely. Those that
// are started again look.
func (f *Fleet) EndLooks() {
	for _, p := range f.processes {
		if p.unfollow != nil {
			p.unfollow()
		}
	}
}

// unlessLater is an error of a process that looks for something, unless the process would
// just look again later.
func unlessLater(err error) error {
	switch {
	case apierrors.IsTooManyRequests(err), apierrors.IsTimeout(err), apierrors.IsServerTimeout(err), apierrors.IsServiceUnavailable(err):
		return nil
	case utilnet.IsConnectionRefused(err), utilnet.IsConnectionReset(err), utilnet.IsHTTP2ConnectionLost(err), utilnet.IsProbableEOF(err), utilnet.IsTimeout(err):
		return nil
	}
	return err
}

// Kill ends all processes at once, as [Process.Kill] does. A fleet that could not be
// made is nil and has none.
func (f *Fleet) Kill() {
	if f == nil {
		return
	}
	for _, p := range f.processes {
		p.Kill()
	}
}
