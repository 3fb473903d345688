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

package operator

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilversion "k8s.io/apimachinery/pkg/util/version"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	kubefake "k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/rest"
	clienttesting "k8s.io/client-go/testing"
	componentfeaturegate "k8s.io/component-base/featuregate"
	"k8s.io/feature-lifecycle/agent"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/feature-lifecycle/client/clientset/versioned/fake"
	"k8s.io/feature-lifecycle/featuregate"
	"k8s.io/feature-lifecycle/lifecycle"
	"k8s.io/feature-lifecycle/lifecycle/control"
	"k8s.io/feature-lifecycle/lifecycle/task"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
)

// leaseDuration is the time that others take a replica for alive.
const leaseDuration = agent.LeaseDuration

const colors componentfeaturegate.Feature = "Colors"

var widgets = schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "widgets"}

func gateOf(t *testing.T, version string, features ...componentfeaturegate.Feature) *featuregate.Gate {
	t.Helper()
	inner := componentfeaturegate.NewVersionedFeatureGate(utilversion.MustParse(version))
	for _, feature := range features {
		if err := inner.Add(map[componentfeaturegate.Feature]componentfeaturegate.FeatureSpec{feature: {PreRelease: componentfeaturegate.Alpha}}); err != nil {
			t.Fatal(err)
		}
	}
	return featuregate.Wrap(inner)
}

func valid(t *testing.T) Config {
	t.Helper()
	return Config{
		Namespace: "widgets", Component: "widget-operator", Instance: "a", Version: "v0.3.1",
		Gate:     gateOf(t, "0.3", colors),
		Features: []lifecycle.Feature{{Name: colors, OnDisable: lifecycle.Tasks{lifecycle.ClearField(widgets, "spec.color")}, Control: lifecycle.Dynamic}},
		Control:  control.Options{Dynamic: []string{string(colors)}},
		Client:   &rest.Config{Host: "https://127.0.0.1:1"},
	}
}

// gates are so many, named by a format.
func gates(format string, n int) []componentfeaturegate.Feature {
	var all []componentfeaturegate.Feature
	for i := range n {
		all = append(all, componentfeaturegate.Feature(fmt.Sprintf(format, i)))
	}
	return all
}

// emulate has a gate emulate a version.
func emulate(t *testing.T, gate *featuregate.Gate, emulated string) {
	t.Helper()
	if err := gate.SetEmulationVersion(utilversion.MustParse(emulated)); err != nil {
		t.Fatal(err)
	}
}

// TestConfigErrorsNameField: before anything runs, all of it at once.
func TestConfigErrorsNameField(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*Config)
		want   []string
	}{
		"nothing":                        {change: func(*Config) {}},
		"everything is missing":          {change: func(c *Config) { *c = Config{} }, want: []string{"operator without a name", "Namespace is missing", "Component is missing", "Instance is missing", "Version is missing", "Gate and Client"}},
		"that of Kubernetes":             {change: func(c *Config) { c.Namespace = "kube-system" }, want: []string{"kube-system has the features of Kubernetes"}},
		"a namespace that none can have": {change: func(c *Config) { c.Namespace = "Widgets" }, want: []string{`Namespace "Widgets"`, "lower case"}},
		"a component with a dot":         {change: func(c *Config) { c.Component = "widget.operator" }, want: []string{`Component "widget.operator"`}},
		"an instance in capitals":        {change: func(c *Config) { c.Instance = "A" }, want: []string{`Instance "A"`, "lower case"}},
		"too long together":              {change: func(c *Config) { c.Instance = strings.Repeat("a.", 120) + "a" }, want: []string{"Component.Instance", "no more than 253"}},
		"a task that needs etcd": {change: func(c *Config) {
			c.Features[0].OnDisable = lifecycle.Tasks{lifecycle.ClearUnreadable(widgets.GroupResource())}
		}, want: []string{"Colors declares ClearUnreadable", "only kube-apiserver can run"}},
		"no version": {change: func(c *Config) { c.Version = "latest" }, want: []string{`Version "latest"`, "for example v0.3.1"}},
		"a gate without a version": {change: func(c *Config) {
			c.Gate = featuregate.Wrap(componentfeaturegate.NewFeatureGate())
			c.Features = nil
			c.Control = control.Options{}
		}, want: []string{`NewVersionedFeatureGate(version.MustParse("0.3"))`}},
		"that of a larger operator": {change: func(c *Config) {
			c.Version = "v2.1.0"
			c.Gate = featuregate.Wrap(componentfeaturegate.NewFeatureGate())
			c.Features = nil
			c.Control = control.Options{}
		}, want: []string{`NewVersionedFeatureGate(version.MustParse("2.1"))`}},
		"a gate of a version to come":   {change: func(c *Config) { c.Gate = gateOf(t, "0.4", colors) }, want: []string{"the gate was made for version 0.4 and the operator has v0.3.1"}},
		"a gate of the version before":  {change: func(c *Config) { c.Gate = gateOf(t, "0.2", colors) }, want: []string{"the gate was made for version 0.2 and the operator has v0.3.1", "and then call SetEmulationVersion"}},
		"a version that the gate lacks": {change: func(c *Config) { c.Version = "v0.4.0" }, want: []string{`the gate was made for version 0.3 and the operator has v0.4.0; make it with NewVersionedFeatureGate(version.MustParse("0.4"))`}},
		"an emulated version":           {change: func(c *Config) { emulate(t, c.Gate, "0.2") }},
		"an emulated version to come":   {change: func(c *Config) { emulate(t, c.Gate, "0.4") }, want: []string{"the gate emulates version 0.4, which is above that of the operator, v0.3.1"}},
		"a declaration without a gate":  {change: func(c *Config) { c.Gate = gateOf(t, "0.3", "Shapes"); c.Control = control.Options{} }, want: []string{"Colors is declared and no feature gate", "which has Shapes"}},
		"a gate that no Feature can be named as": {change: func(c *Config) { c.Gate = gateOf(t, "0.3", colors, "widgets.example.com/Color", "3DWidgets") }, want: []string{
			`feature gate "widgets.example.com/Color": the name must begin with a letter and consist of`, `feature gate "3DWidgets": the name must`}},
		"a gate with a very long name": {change: func(c *Config) {
			c.Gate = gateOf(t, "0.3", colors, componentfeaturegate.Feature(strings.Repeat("A", 254)))
		}, want: []string{"no more than 253 characters"}},
		"more gates than a report lists": {change: func(c *Config) { c.Gate = gateOf(t, "0.3", append(gates("F%d", 1000), colors)...) }, want: []string{"the gate has 1001 features, and a report lists 1000 at most"}},
		"names that are long together":   {change: func(c *Config) { c.Gate = gateOf(t, "0.3", append(gates("F%0199d", 500), colors)...) }, want: []string{"have 100006 characters together, and a report takes 65536 at most"}},
		"a version that is very long":    {change: func(c *Config) { c.Version = "v0.3.1+" + strings.Repeat("a", 122) }, want: []string{"the Version has 129 characters, and a report takes 128 at most"}},
		"declared twice":                 {change: func(c *Config) { c.Features = append(c.Features, c.Features[0]) }, want: []string{"declared twice"}},
		"dynamic against its author":     {change: func(c *Config) { c.Features[0].Control = lifecycle.Local }, want: []string{"--dynamic-features", "not declared as one whose value may come from elsewhere"}},
		"no settle period of its own":    {change: func(c *Config) { c.Settings = Settings{Grace: time.Minute} }},
		"no wait for lost processes":     {change: func(c *Config) { c.Settings = Settings{Grace: None, KeepUnknownMinors: None} }},
		"negative periods": {change: func(c *Config) {
			c.Settings = Settings{Grace: -time.Minute, Settle: -time.Second, MinBackoff: None, KeepUnknownMinors: -2}
		}, want: []string{"Settings.Grace is -1m0s and has to be 0 or longer; leave it out for the default", "Settings.Settle is -1s and has to be longer than 0", "Settings.MinBackoff is -1ns", "Settings.KeepUnknownMinors is -2 and has to be 0 or more minor versions"}},
		"a shortest pause that is long":   {change: func(c *Config) { c.Settings.MinBackoff = time.Minute }, want: []string{"Settings.MaxBackoff is 30s and has to be at least MinBackoff, 1m0s"}},
		"a way to clean without an end":   {change: func(c *Config) { c.Settings.HowToClean = strings.Repeat("a", 513) }, want: []string{"Settings.HowToClean", "has to be at most 512 bytes long"}},
		"a share above all":               {change: func(c *Config) { c.Settings.Canary.Percent = 101 }, want: []string{"Settings.Canary.Percent is 101 and has to be from 1 to 100"}},
		"set by hand and dynamic as well": {change: func(c *Config) { _ = c.Gate.Set("Colors=true") }, want: []string{"would win over the API"}},
	} {
		t.Run(name, func(t *testing.T) {
			config := valid(t)
			test.change(&config)
			replica, err := New(config)
			if len(test.want) == 0 {
				if err != nil || replica == nil {
					t.Fatalf("refused: %v", err)
				}
				return
			}
			if err == nil {
				t.Fatal("taken")
			}
			for _, want := range test.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("the error does not say %q: %v", want, err)
				}
			}
		})
	}
}

// server is a fake one with a replica's clients.
type server struct {
	t        *testing.T
	features *fake.Clientset
	kube     *kubefake.Clientset
	clients  clients
}

// newServer makes a server. Its fake of Kubernetes does not manage fields: that
// builds a REST mapper of all of Kubernetes at each renewal of a Lease.
func newServer(t *testing.T) *server {
	s := &server{t: t, features: fake.NewClientset(), kube: kubefake.NewSimpleClientset()}
	s.clients = clients{own: s.features, features: s.features, ownKube: s.kube, kube: s.kube, tasks: task.Clients{Dynamic: dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(),
		map[schema.GroupVersionResource]string{widgets: "WidgetList"})}}
	return s
}

// is answers who asks: a service account's name and UID.
func (s *server) is(user, uid string, first ...error) {
	s.kube.PrependReactor("create", "selfsubjectreviews", func(clienttesting.Action) (bool, runtime.Object, error) {
		if len(first) > 0 {
			err := first[0]
			first = first[1:]
			return true, nil, err
		}
		return true, &authenticationv1.SelfSubjectReview{Status: authenticationv1.SelfSubjectReviewStatus{UserInfo: authenticationv1.UserInfo{Username: user, UID: uid}}}, nil
	})
}

func (s *server) replica(config Config) *Replica {
	s.t.Helper()
	r, err := newReplica(config, s.clients, clock.RealClock{})
	if err != nil {
		s.t.Fatal(err)
	}
	return r
}

// running loads and starts a replica, and lets some time pass.
func (s *server) running(config Config) (r *Replica, stop func() error) {
	s.t.Helper()
	r = s.replica(config)
	if _, err := r.Load(s.t.Context()); err != nil {
		s.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(s.t.Context())
	ended := make(chan error, 1)
	go func() { ended <- r.Start(ctx) }()
	pass(time.Minute)
	return r, func() error {
		cancel()
		return <-ended
	}
}

func pass(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

func (s *server) feature() (*v1alpha1.Feature, error) {
	return s.features.FeaturesV1alpha1().Features("widgets").Get(s.t.Context(), string(colors), metav1.GetOptions{})
}

func (s *server) report() (*v1alpha1.FeatureReport, error) {
	return s.features.FeaturesV1alpha1().FeatureReports("widgets").Get(s.t.Context(), "widget-operator.a", metav1.GetOptions{})
}

func (s *server) lease() (*coordinationv1.Lease, error) {
	return s.kube.CoordinationV1().Leases("widgets").Get(s.t.Context(), "widget-operator.a", metav1.GetOptions{})
}

// TestAReplica reports, makes its Features, follows what people ask for, and takes its
// report away when it is closed, and not before.
func TestAReplica(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t)
		config := valid(t)
		r, stop := s.running(config)
		report, err := s.report()
		if err != nil {
			t.Fatal(err)
		}
		if got := report.Spec; got.BinaryVersion != "v0.3.1" || got.EmulationVersion != "0.3" || len(got.Features) == 0 || got.Liveness.Lease == nil || len(report.OwnerReferences) != 0 {
			t.Errorf("the report is %+v, of %+v", got, report.OwnerReferences)
		}
		f, err := s.feature()
		if err != nil {
			t.Fatal(err)
		}
		if f.Status.State != v1alpha1.StateOff || f.Status.Control != v1alpha1.ControlDynamic || len(f.OwnerReferences) != 0 {
			t.Errorf("the Feature is %+v, of %+v", f.Status, f.OwnerReferences)
		}
		plan, err := r.Plan(t.Context(), string(colors), &v1alpha1.FeaturePlan{Spec: v1alpha1.FeaturePlanSpec{Enabled: ptr.To(true)}})
		if err != nil || plan.Configured == nil || !plan.Configured.Value {
			t.Errorf("the plan is %+v, %v", plan, err)
		}
		if _, err := r.Clean(t.Context(), "Shapes"); !apierrors.IsNotFound(err) {
			t.Errorf("cleaning what is not there: %v", err)
		}

		f.Spec.Enabled = ptr.To(true)
		if _, err := s.features.FeaturesV1alpha1().Features("widgets").Update(t.Context(), f, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		pass(5 * time.Minute)
		if f, err = s.feature(); err != nil || f.Status.State != v1alpha1.StateOn || !config.Gate.Enabled(colors) {
			t.Errorf("asked to be on the feature is %s for the server and %t for the replica: %v", f.Status.State, config.Gate.Enabled(colors), err)
		}

		if err := stop(); err != nil {
			t.Errorf("it ended with %v", err)
		}
		// Its work may go on for long, and is no crash.
		pass(5 * time.Minute)
		if _, err := s.report(); err != nil {
			t.Errorf("its work may go on, and the report has gone: %v", err)
		}
		if lease, err := s.lease(); err != nil || time.Since(lease.Spec.RenewTime.Time) > leaseDuration {
			t.Errorf("its work may go on, and its Lease expires: %+v, %v", lease, err)
		}
		if _, err := r.Plan(t.Context(), string(colors), &v1alpha1.FeaturePlan{}); !errors.Is(err, ErrNotRunning) {
			t.Errorf("planning after the end: %v", err)
		}
		if err := r.Close(t.Context()); err != nil {
			t.Error(err)
		}
		if _, err := s.report(); !apierrors.IsNotFound(err) {
			t.Errorf("after Close the report is there: %v", err)
		}
		if _, err := s.lease(); !apierrors.IsNotFound(err) {
			t.Errorf("after Close the Lease is there: %v", err)
		}
	})
}

// TestAnAbandonedReplica leaves what one leaves that has crashed, and nothing of it runs on.
// Until then its Lease does not expire.
func TestAnAbandonedReplica(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t)
		r, stop := s.running(valid(t))
		if err := stop(); err != nil {
			t.Fatal(err)
		}
		pass(5 * time.Minute)
		if lease, err := s.lease(); err != nil || time.Since(lease.Spec.RenewTime.Time) > leaseDuration {
			t.Errorf("neither closed nor abandoned, and the Lease expires: %+v, %v", lease, err)
		}
		if err := r.Abandon(); err != nil {
			t.Fatal(err)
		}
		s.features.ClearActions()
		s.kube.ClearActions()
		pass(5 * time.Minute)
		if sent := append(s.features.Actions(), s.kube.Actions()...); len(sent) > 0 {
			t.Errorf("abandoned, and it sends %v", sent)
		}
		if _, err := s.report(); err != nil {
			t.Errorf("abandoned, and the report has gone: %v", err)
		}
		if lease, err := s.lease(); err != nil || time.Since(lease.Spec.RenewTime.Time) <= leaseDuration {
			t.Errorf("abandoned, and the Lease does not expire: %+v, %v", lease, err)
		}
	})
}

// TestAPlanNeedsARequest that says what is to change, and of this feature.
func TestAPlanNeedsARequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t)
		r, stop := s.running(valid(t))
		on := v1alpha1.FeaturePlanSpec{Enabled: ptr.To(true)}
		for sentence, test := range map[string]struct {
			request *v1alpha1.FeaturePlan
			want    string
		}{
			"no request":             {want: "needs either spec.enabled or spec.targetVersion"},
			"nothing is asked for":   {request: &v1alpha1.FeaturePlan{}, want: "needs either spec.enabled or spec.targetVersion"},
			"both are asked for":     {request: &v1alpha1.FeaturePlan{Spec: v1alpha1.FeaturePlanSpec{Enabled: ptr.To(true), TargetVersion: "0.4"}}, want: "and not both"},
			"another feature's":      {request: &v1alpha1.FeaturePlan{ObjectMeta: metav1.ObjectMeta{Name: "Shapes"}, Spec: on}, want: "named /Shapes, and is asked of feature Colors"},
			"another namespace's":    {request: &v1alpha1.FeaturePlan{ObjectMeta: metav1.ObjectMeta{Namespace: "gadgets", Name: "Colors"}, Spec: on}, want: "named gadgets/Colors"},
			"the feature's own name": {request: &v1alpha1.FeaturePlan{ObjectMeta: metav1.ObjectMeta{Namespace: "widgets", Name: "Colors"}, Spec: on}},
		} {
			_, err := r.Plan(t.Context(), string(colors), test.request)
			if test.want == "" && err != nil {
				t.Errorf("%s: %v", sentence, err)
			}
			if test.want != "" && (!apierrors.IsBadRequest(err) || !strings.Contains(err.Error(), test.want)) {
				t.Errorf("%s: got %v, want a bad request that says %q", sentence, err, test.want)
			}
		}
		if err := errors.Join(stop(), r.Close(t.Context())); err != nil {
			t.Error(err)
		}
	})
}

// TestObjectsOwnedByServiceAccountOfReplica, once the server says which that is.
func TestObjectsOwnedByServiceAccountOfReplica(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t)
		s.is("system:serviceaccount:widgets:operator", "1234", apierrors.NewServiceUnavailable("starting"), apierrors.NewTooManyRequests("later", 1))
		config := valid(t)
		config.OwnedByServiceAccount = true
		r, stop := s.running(config)
		report, err := s.report()
		if err != nil {
			t.Fatal(err)
		}
		f, err := s.feature()
		if err != nil {
			t.Fatal(err)
		}
		lease, err := s.lease()
		if err != nil {
			t.Fatal(err)
		}
		want := metav1.OwnerReference{APIVersion: "v1", Kind: "ServiceAccount", Name: "operator", UID: "1234"}
		for what, owners := range map[string][]metav1.OwnerReference{"report": report.OwnerReferences, "Feature": f.OwnerReferences, "Lease": lease.OwnerReferences} {
			if len(owners) != 1 || owners[0] != want {
				t.Errorf("the %s belongs to %+v, want %+v", what, owners, want)
			}
		}
		if err := errors.Join(stop(), r.Close(t.Context())); err != nil {
			t.Error(err)
		}
	})
}

// TestOnlyServiceAccountsOfTheNamespaceOwn: others do not report, and the error says
// what to do.
func TestOnlyServiceAccountsOfTheNamespaceOwn(t *testing.T) {
	for _, user := range []string{"system:admin", "system:serviceaccount:others:operator", "system:serviceaccount:widgets:"} {
		synctest.Test(t, func(t *testing.T) {
			s := newServer(t)
			s.is(user, "1234")
			config := valid(t)
			config.OwnedByServiceAccount = true
			r, stop := s.running(config)
			if err := stop(); !errors.Is(err, errNotOwner) || !strings.Contains(err.Error(), user) || !strings.Contains(err.Error(), "leave OwnedByServiceAccount out") {
				t.Errorf("the error is %v", err)
			}
			if _, err := s.report(); !apierrors.IsNotFound(err) {
				t.Errorf("there is a report: %v", err)
			}
			if err := r.Close(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestServerWithoutSelfSubjectReview: the request is retried, no report is written meanwhile, and
// a replica that is told to end does so.
func TestServerWithoutSelfSubjectReview(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t)
		asked := 0
		s.kube.PrependReactor("create", "selfsubjectreviews", func(clienttesting.Action) (bool, runtime.Object, error) {
			asked++
			return true, nil, apierrors.NewServiceUnavailable("down")
		})
		config := valid(t)
		config.OwnedByServiceAccount = true
		r, stop := s.running(config)
		if _, err := s.report(); !apierrors.IsNotFound(err) || asked < 3 {
			t.Errorf("asked %d times, and reading the report: %v", asked, err)
		}
		if err := stop(); err != nil {
			t.Errorf("it ended with %v", err)
		}
		if err := r.Close(t.Context()); err != nil {
			t.Errorf("closing what never reported: %v", err)
		}
	})
}

// TestWithoutTheAPI an operator has its own values, and features are not reconciled.
func TestWithoutTheAPI(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t)
		missing := func(clienttesting.Action) (bool, runtime.Object, error) {
			return true, nil, &apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure, Code: 404, Reason: metav1.StatusReasonNotFound,
				Details: &metav1.StatusDetails{Causes: []metav1.StatusCause{{Type: metav1.CauseTypeUnexpectedServerResponse}}}}}
		}
		s.features.PrependReactor("*", "*", missing)
		config := valid(t)
		config.Control = control.Options{}
		// The owner of what it makes is not queried, and any user may run it.
		config.OwnedByServiceAccount = true
		if err := config.Gate.Set("Colors=true"); err != nil {
			t.Fatal(err)
		}
		r, stop := s.running(config)
		if !config.Gate.Enabled(colors) {
			t.Error("the gate has not what the command line says")
		}
		if _, err := r.Plan(t.Context(), string(colors), &v1alpha1.FeaturePlan{}); !errors.Is(err, ErrNotRunning) {
			t.Errorf("planning: %v", err)
		}
		pass(time.Hour)
		if sent := s.kube.Actions(); len(sent) != 0 {
			t.Errorf("%d requests for Leases, events or permissions: %v", len(sent), sent)
		}
		if err := errors.Join(stop(), r.Close(t.Context())); err != nil {
			t.Error(err)
		}
	})
}

// TestTheAPIGoes under a replica that runs, and comes back: it is quiet meanwhile, and goes
// on with another flow.
func TestTheAPIGoes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t)
		keepSpec(s.features)
		config := valid(t)
		r, stop := s.running(config)
		if _, err := r.Plan(t.Context(), string(colors), &v1alpha1.FeaturePlan{Spec: v1alpha1.FeaturePlanSpec{Enabled: ptr.To(true)}}); err != nil {
			t.Fatal(err)
		}
		var has atomic.Bool
		lacks := apierrors.NewGenericServerResponse(http.StatusNotFound, "get", v1alpha1.Resource("features"), "", "404 page not found", 0, true)
		s.features.PrependReactor("*", "*", func(clienttesting.Action) (bool, runtime.Object, error) { return !has.Load(), nil, lacks })
		asks := func(when string) {
			t.Helper()
			_, planErr := r.Plan(t.Context(), string(colors), &v1alpha1.FeaturePlan{Spec: v1alpha1.FeaturePlanSpec{Enabled: ptr.To(true)}})
			_, cleanErr := r.Clean(t.Context(), string(colors))
			for what, err := range map[string]error{"a plan": planErr, "a clean-up": cleanErr} {
				if !errors.Is(err, ErrNotRunning) {
					t.Errorf("%s %s: %v", when, what, err)
				}
			}
		}
		asks("before it has noticed")
		pass(2 * time.Minute)
		asks("without the API")
		s.kube.ClearActions()
		s.features.ClearActions()
		pass(time.Hour)
		if n := len(s.kube.Actions()); n != 0 {
			t.Errorf("in an hour without the API it sent %d requests for Leases, events or permissions: %v", n, s.kube.Actions()[0])
		}
		// The reporter and who follows values ask from time to time.
		if n := len(s.features.Actions()); n == 0 || n > 20 {
			t.Errorf("in an hour without the API it asked %d times whether there is one", n)
		}
		has.Store(true)
		for begun := time.Now(); r.flow.Load() == nil; pass(time.Second) {
			if time.Since(begun) > 20*time.Minute {
				t.Fatal("the flow does not run again")
			}
		}
		// Values are followed again as soon as reports are taken, too.
		pass(20 * time.Second)
		f, err := s.feature()
		if err != nil {
			t.Fatal(err)
		}
		f.Spec.Enabled = ptr.To(true)
		if _, err := s.features.FeaturesV1alpha1().Features("widgets").Update(t.Context(), f, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		pass(time.Minute)
		if f, err = s.feature(); err != nil || f.Status.State != v1alpha1.StateOn || !config.Gate.Enabled(colors) {
			t.Errorf("with the API again the feature is %s for the server and %t for the replica: %v", f.Status.State, config.Gate.Enabled(colors), err)
		}
		if lease, err := s.lease(); err != nil || time.Since(lease.Spec.RenewTime.Time) > leaseDuration {
			t.Errorf("with the API again the Lease is %+v, %v", lease, err)
		}
		if err := errors.Join(stop(), r.Close(t.Context())); err != nil {
			t.Error(err)
		}
	})
}

// TestOrder: what is called too early or too late says so.
func TestOrder(t *testing.T) { synctest.Test(t, testOrder) }

func testOrder(t *testing.T) {
	s := newServer(t)
	r := s.replica(valid(t))
	wrong := func(what string, err error, next string) {
		t.Helper()
		if err == nil || !strings.Contains(err.Error(), "next is "+next) || !strings.Contains(err.Error(), "widget-operator") {
			t.Errorf("%s: %v; want that next is %s", what, err, next)
		}
	}
	wrong("Start before Load", r.Start(t.Context()), "Load")
	if r.NeedLeaderElection() {
		t.Error("one replica of several would run")
	}
	if origin, err := r.Load(t.Context()); err != nil || origin != agent.FromServer {
		t.Errorf("values come from %s: %v", origin, err)
	}
	_, err := r.Load(t.Context())
	wrong("Load again", err, "Start")
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- r.Start(ctx) }()
	pass(time.Minute)
	wrong("Close while it runs", r.Close(t.Context()), "the end of Start")
	wrong("Abandon while it runs", r.Abandon(), "the end of Start")
	wrong("Start again", r.Start(ctx), "the end of Start")
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
	if err := r.Close(t.Context()); err != nil {
		t.Error(err)
	}
	wrong("Close again", r.Close(t.Context()), "nothing")
	wrong("Abandon after Close", r.Abandon(), "nothing")
	unused := s.replica(valid(t))
	if err := unused.Close(t.Context()); err != nil {
		t.Errorf("Close of what never ran: %v", err)
	}
	late := valid(t)
	late.Gate.Finalize()
	if _, err := s.replica(late).Load(t.Context()); err == nil || !strings.Contains(err.Error(), "final already") {
		t.Errorf("Load after the values were final: %v", err)
	}
}
