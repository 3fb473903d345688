//go:build linux

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

package operators

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/client-go/rest"
	componentfeaturegate "k8s.io/component-base/featuregate"
	"k8s.io/feature-lifecycle/agent"
	"k8s.io/feature-lifecycle/featuregate"
	"k8s.io/feature-lifecycle/lifecycle"
	"k8s.io/feature-lifecycle/lifecycle/control"
	"k8s.io/feature-lifecycle/lifecycle/task"
	"k8s.io/feature-lifecycle/operator"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/ktesting"
	"k8s.io/kubernetes-features/test/e2e_features/framework"
)

// thirdParty is an operator with a namespace, an identity and a kind of its own, and
// with the features colors and borrowed.
type thirdParty struct {
	*identity
	w         *world
	component string
	resource  schema.GroupVersionResource
	declared  []lifecycle.Feature
}

// install does what an administrator does for a new operator, whose kind is its own: its
// tasks look after the objects of all namespaces.
func (w *world) install(t *testing.T, namespace string) *thirdParty {
	t.Helper()
	return w.installFor(t, namespace, w.define(t, namespace), func(tasks ...task.Task) lifecycle.Tasks { return tasks })
}

// installBeside does so for an operator whose kind others have, too. It looks after its
// own namespace.
func (w *world) installBeside(t *testing.T, namespace string, resource schema.GroupVersionResource) *thirdParty {
	t.Helper()
	return w.installFor(t, namespace, resource, func(tasks ...task.Task) lifecycle.Tasks { return lifecycle.InNamespace(namespace, tasks...) })
}

func (w *world) installFor(t *testing.T, namespace string, resource schema.GroupVersionResource, in func(...task.Task) lifecycle.Tasks) *thirdParty {
	t.Helper()
	return w.installDeclared(t, namespace, resource, []lifecycle.Feature{{
		Name:    colors,
		Control: lifecycle.Dynamic,
		OnDisable: in(
			// It lets a test hold a transition for as long as it likes.
			lifecycle.WaitForNone(resource, "glaze", "spec.glaze"),
			lifecycle.ClearField(resource, "spec.color"),
		),
	}, {
		Name:      borrowed,
		Control:   lifecycle.Dynamic,
		OnDisable: in(lifecycle.ClearField(resource, "spec.limit")),
	}})
}

// installDeclared does so for one that declares its features in another way.
func (w *world) installDeclared(t *testing.T, namespace string, resource schema.GroupVersionResource, declared []lifecycle.Feature) *thirdParty {
	t.Helper()
	o := &thirdParty{w: w, component: namespace + "-operator", resource: resource, declared: declared}
	o.identity = w.identity(t, namespace, o.component)
	w.permit(t, o.identity, append(operator.Rules(o.component), lifecycle.NamespacedRules(o.declared)[namespace]...), lifecycle.Rules(o.declared))
	return o
}

// newGate makes the gate of a replica.
func newGate(t *testing.T) *featuregate.Gate {
	t.Helper()
	own := version.MustParse("0.1")
	inner := componentfeaturegate.NewVersionedFeatureGate(own)
	off := componentfeaturegate.VersionedSpecs{{Version: own, Default: false, PreRelease: componentfeaturegate.Alpha}}
	if err := inner.AddVersioned(map[componentfeaturegate.Feature]componentfeaturegate.VersionedSpecs{colors: off, borrowed: off}); err != nil {
		t.Fatal(err)
	}
	return featuregate.Wrap(inner)
}

// settings make tests short: two replicas tell of a change at once, and what is blocked
// is tried again soon.
var settings = operator.Settings{Settle: 2 * time.Second, MaxBlockedBackoff: 5 * time.Second}

// replica is a process of an operator, but for the process. It keeps what it sends
// and what it logs.
type replica struct {
	*operator.Replica
	gate     *featuregate.Gate
	origin   agent.Origin
	requests *requests
	logs     ktesting.Buffer
	// stop tells it to end; ended is closed when Start has returned err.
	stop  context.CancelFunc
	ended chan struct{}
	err   error
}

// start starts a replica. Both features are dynamic unless change says otherwise.
func (o *thirdParty) start(t *testing.T, instance string, change func(*operator.Config)) *replica {
	t.Helper()
	config := operator.Config{
		Namespace: o.namespace, Component: o.component, Instance: instance, Version: "v0.1.0",
		Gate: newGate(t), Features: o.declared, Control: control.Options{Dynamic: []string{colors, borrowed}},
		Client: o.config, Settings: settings,
	}
	if change != nil {
		change(&config)
	}
	r := &replica{gate: config.Gate, requests: &requests{}, ended: make(chan struct{})}
	config.Client = rest.CopyConfig(config.Client)
	config.Client.Wrap(r.requests.through)
	logger := ktesting.NewLogger(t, ktesting.NewConfig(ktesting.Verbosity(2), ktesting.BufferLogs(true)))
	logs, ok := logger.GetSink().(ktesting.Underlier)
	if !ok {
		t.Fatal("the logger does not keep what is logged")
	}
	r.logs = logs.GetBuffer()
	ctx, stop := context.WithCancel(klog.NewContext(t.Context(), logger.WithValues("replica", o.namespace+"/"+instance)))
	r.stop = stop
	var err error
	if r.Replica, err = operator.New(config); err != nil {
		t.Fatal(err)
	}
	if r.origin, err = r.Load(ctx); err != nil {
		t.Fatal(err)
	}
	// The operator's own code: what it has asked for, it reports.
	_ = r.found()
	go func() {
		defer close(r.ended)
		r.err = r.Start(ctx)
	}()
	t.Cleanup(func() {
		_ = r.crash(t)
		// Loops that run until Close end, too; a replica that has ended in order reports
		// that.
		_ = r.Close(context.WithoutCancel(ctx))
	})
	return r
}

// crash is the end of a process that was killed: nothing that it sends from now on, to
// say goodbye or to renew its Lease, gets anywhere. It returns what Start did.
func (r *replica) crash(t *testing.T) error {
	t.Helper()
	r.requests.dead.Store(true)
	return r.finish(t)
}

// finish ends Start and returns what that did.
func (r *replica) finish(t *testing.T) error {
	t.Helper()
	r.stop()
	return r.wait(t)
}

// wait waits until the replica has ended.
func (r *replica) wait(t *testing.T) error {
	t.Helper()
	timeout := time.NewTimer(framework.Patience)
	defer timeout.Stop()
	select {
	case <-r.ended:
		return r.err
	case <-timeout.C:
		t.Error("a replica that was told to end still runs")
		return nil
	}
}

// end ends the replica in order.
func (r *replica) end(t *testing.T) {
	t.Helper()
	if err := r.finish(t); err != nil {
		t.Errorf("Start of a replica that was told to end: %v", err)
	}
	if err := r.Close(t.Context()); err != nil {
		t.Errorf("Close: %v", err)
	}
}

// found are the values that the operator's code finds.
func (r *replica) found() string {
	return fmt.Sprintf("%s=%t,%s=%t", colors, r.gate.Enabled(colors), borrowed, r.gate.Enabled(borrowed))
}

// both is what found returns when both features have a value.
func both(value bool) string { return fmt.Sprintf("%s=%t,%s=%t", colors, value, borrowed, value) }

// said is how often the replica has logged a text.
func (r *replica) said(text string) int { return strings.Count(r.logs.String(), text) }

// ask requests a value as a user who may write spec.
func (o *thirdParty) ask(t *testing.T, feature string, enabled bool) {
	t.Helper()
	patch := fmt.Appendf(nil, `{"spec":{"enabled":%t}}`, enabled)
	if _, err := o.w.Features.FeaturesV1alpha1().Features(o.namespace).Patch(t.Context(), feature, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
		t.Fatalf("requesting that %s/%s is on: %t: %v", o.namespace, feature, enabled, err)
	}
}

// request is one that was sent, and the code of its answer, 0 without one.
type request struct {
	method, path string
	code         int
}

// requests are those of a replica, in the order of their answers. It is safe for
// concurrent use.
type requests struct {
	// dead is true for a process that was killed: nothing of it reaches the server.
	dead atomic.Bool
	mu   sync.Mutex
	sent []request
}

var errDead = errors.New("the process was killed")

// roundTripper is a function that is one.
type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// through keeps what is sent through a transport.
func (r *requests) through(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(sent *http.Request) (*http.Response, error) {
		if r.dead.Load() {
			return nil, errDead
		}
		response, err := next.RoundTrip(sent)
		kept := request{method: sent.Method, path: sent.URL.Path}
		if err == nil {
			kept.code = response.StatusCode
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		r.sent = append(r.sent, kept)
		return response, err
	})
}

// after are the requests after the first ones.
func (r *requests) after(first int) []request {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.sent[first:])
}

// count counts those that are wanted.
func count(sent []request, wanted func(request) bool) int {
	n := 0
	for _, r := range sent {
		if wanted(r) {
			n++
		}
	}
	return n
}

// discovery are the paths by which a client finds out what there is, who it is and what it
// may do.
var discovery = regexp.MustCompile(`^/(api|apis)(/[^/]+){0,2}$|^/openapi/v3(/|$)|/selfsubject(reviews|rulesreviews|accessreviews)$|/customresourcedefinitions/`)

// elsewhere are the requests for what is neither in the operator's namespace nor of
// its kind.
func (o *thirdParty) elsewhere(r *replica) []string {
	var found []string
	for _, sent := range r.requests.after(0) {
		own := strings.Contains(sent.path, "/namespaces/"+o.namespace+"/") || strings.Contains(sent.path+"/", "/"+o.resource.Resource+"/")
		if !own && !discovery.MatchString(sent.path) {
			found = append(found, sent.method+" "+sent.path)
		}
	}
	return found
}
