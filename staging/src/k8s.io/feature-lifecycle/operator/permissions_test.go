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
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clienttesting "k8s.io/client-go/testing"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/feature-lifecycle/lifecycle"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/ktesting"
)

// authorizer is what the server says that a replica may do. It is safe for concurrent use.
type authorizer struct {
	mu    sync.Mutex
	rules []rbacv1.PolicyRule
	// incomplete is true for one that lists nothing and answers for one permission at a time.
	incomplete bool
	// err is what reviews are answered with.
	err     error
	reviews int
}

// authorize has an authorizer decide what the server's reviews say, and whether reports are taken.
func (s *server) authorize(a *authorizer) {
	s.features.Resources = []*metav1.APIResourceList{{GroupVersion: v1alpha1.SchemeGroupVersion.String()}}
	s.kube.PrependReactor("create", "selfsubjectrulesreviews", func(clienttesting.Action) (bool, runtime.Object, error) {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.reviews++
		answer := &authorizationv1.SelfSubjectRulesReview{Status: authorizationv1.SubjectRulesReviewStatus{Incomplete: a.incomplete,
			ResourceRules: []authorizationv1.ResourceRule{{Verbs: []string{"create"}, APIGroups: []string{"authorization.k8s.io"}, Resources: []string{"selfsubjectrulesreviews"}}}}}
		for _, r := range a.rules {
			if !a.incomplete {
				answer.Status.ResourceRules = append(answer.Status.ResourceRules, authorizationv1.ResourceRule{Verbs: r.Verbs, APIGroups: r.APIGroups, Resources: r.Resources, ResourceNames: r.ResourceNames})
			}
		}
		return true, answer, a.err
	})
	s.kube.PrependReactor("create", "selfsubjectaccessreviews", func(action clienttesting.Action) (bool, runtime.Object, error) {
		review := action.(clienttesting.CreateAction).GetObject().(*authorizationv1.SelfSubjectAccessReview).DeepCopy()
		of := review.Spec.ResourceAttributes
		resource := strings.TrimSuffix(of.Resource+"/"+of.Subresource, "/")
		review.Status.Allowed = a.permits(permission{schema.GroupResource{Group: of.Group, Resource: resource}, of.Verb, of.Name})
		return true, review, nil
	})
	s.features.PrependReactor("*", "featurereports", func(action clienttesting.Action) (bool, runtime.Object, error) {
		resource := v1alpha1.Resource(action.GetResource().Resource)
		if a.permits(permission{resource, action.GetVerb(), ""}) {
			return false, nil, nil
		}
		return true, nil, apierrors.NewForbidden(resource, "", errors.New("no"))
	})
}

// asksForPermissions is true for a request for what a replica may do.
func asksForPermissions(action clienttesting.Action) bool {
	return action.GetResource() == authorizationv1.SchemeGroupVersion.WithResource("selfsubjectrulesreviews")
}

func (a *authorizer) permits(p permission) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Contains(permissionsOf(a.rules), p)
}

func (a *authorizer) set(rules ...rbacv1.PolicyRule) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.rules = rules
}

// all are the rules that a replica of the configuration needs, and what everybody has.
func all(config Config) []rbacv1.PolicyRule {
	rules := append(Rules(config.Component), lifecycle.Rules(config.Features)...)
	return append(rules, rbacv1.PolicyRule{APIGroups: []string{v1alpha1.GroupName}, Resources: []string{"features"}, Verbs: []string{"get", "list", "watch"}})
}

// logging runs a replica with a logger that keeps what it is told.
func (s *server) logging(config Config) (logs ktesting.Buffer, stop func()) {
	s.t.Helper()
	logger := ktesting.NewLogger(s.t, ktesting.NewConfig(ktesting.BufferLogs(true)))
	r := s.replica(config)
	if _, err := r.Load(s.t.Context()); err != nil {
		s.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(klog.NewContext(s.t.Context(), logger))
	ended := make(chan error, 1)
	go func() { ended <- r.Start(ctx) }()
	pass(time.Minute)
	return logger.GetSink().(ktesting.Underlier).GetBuffer(), func() {
		cancel()
		if err := errors.Join(<-ended, r.Close(context.WithoutCancel(ctx))); err != nil {
			s.t.Error(err)
		}
	}
}

const lacks = "Operator lacks permissions"

// TestMissingPermissionsAreExplainedOnce, all of them, with the functions that return them,
// and the operator begins soon after they were granted.
func TestMissingPermissionsAreExplainedOnce(t *testing.T) {
	for name, incomplete := range map[string]bool{"by rules": false, "by an authorizer that lists none": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newServer(t)
				config := valid(t)
				a := &authorizer{incomplete: incomplete}
				s.authorize(a)
				s.is("system:serviceaccount:widgets:operator", "1234")
				logs, stop := s.logging(config)
				defer stop()
				pass(time.Hour)
				want := []string{
					"operator widget-operator in namespace widgets runs as system:serviceaccount:widgets:operator, which lacks permissions",
					"bind a Role in namespace widgets with operator.Rules(\\\"widget-operator\\\"), of which it lacks: report components.features.k8s.io widget-operator; create, get, update, list, watch, delete featurereports.features.k8s.io; create, get, update, list, watch, delete leases.coordination.k8s.io; create, delete, list, watch features.features.k8s.io; update features.features.k8s.io/status; create, update, delete featurevalues.features.k8s.io; delete featurereports.features.k8s.io/any; create, patch events",
					"and bind a ClusterRole with lifecycle.Rules of the declared features, of which it lacks: get, list, patch widgets.example.com; get customresourcedefinitions.apiextensions.k8s.io widgets.example.com",
				}
				for _, said := range want {
					if n := strings.Count(logs.String(), said); n != 1 {
						t.Errorf("it says %d times %q, want once", n, said)
					}
				}
				if n := strings.Count(logs.String(), lacks); n != 1 {
					t.Errorf("it complains %d times, want once:\n%s", n, logs)
				}
				a.set(all(config)...)
				pass(2 * mostReview)
				if _, err := s.feature(); err != nil {
					t.Errorf("some time after they were granted: %v:\n%s", err, logs)
				}
				reviews := a.reviews
				if pass(time.Hour); a.reviews != reviews {
					t.Errorf("it has all permissions, and asked %d times more", a.reviews-reviews)
				}
			})
		})
	}
}

// TestFlowWaitsForPermissions: with the permissions to report alone its informers would
// be refused again and again.
func TestFlowWaitsForPermissions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t)
		config := valid(t)
		a := &authorizer{rules: Rules(config.Component)[:3]}
		s.authorize(a)
		logs, stop := s.logging(config)
		defer stop()
		pass(time.Hour)
		if _, err := s.report(); err != nil {
			t.Errorf("it may report: %v", err)
		}
		for _, action := range s.features.Actions() {
			if action.GetVerb() == "watch" && action.GetResource().Resource == "featurereports" {
				t.Fatal("it watches reports, which it may not")
			}
		}
		if n := strings.Count(logs.String(), "of which it lacks: create, delete, list, watch features.features.k8s.io; update features.features.k8s.io/status; create, update, delete featurevalues.features.k8s.io; list, watch, delete featurereports.features.k8s.io;"); n != 1 {
			t.Errorf("it says %d times what it lacks:\n%s", n, logs)
		}
		// What is missing now holds up nothing.
		a.set(slices.DeleteFunc(all(config), func(r rbacv1.PolicyRule) bool { return slices.Contains(r.Resources, "events") })...)
		pass(2 * mostReview)
		if _, err := s.feature(); err != nil {
			t.Errorf("it may do all but write events: %v", err)
		}
		if n := strings.Count(logs.String(), "of which it lacks: create, patch events"); n != 1 {
			t.Errorf("it says %d times that it may not write events:\n%s", n, logs)
		}
	})
}

// TestUnneededPermissionsNotReported covers denied and unknown ones.
func TestUnneededPermissionsNotReported(t *testing.T) {
	for name, prepare := range map[string]func(s *server, a *authorizer){
		"the server lacks the API": func(s *server, _ *authorizer) { s.features.Resources = nil },
		"it does not say": func(_ *server, a *authorizer) {
			a.err = apierrors.NewForbidden(schema.GroupResource{}, "", errors.New("no"))
		},
		"it has none of these APIs":  func(_ *server, a *authorizer) { a.err = apierrors.NewNotFound(schema.GroupResource{}, "") },
		"it is not there":            func(_ *server, a *authorizer) { a.err = errors.New("boom") },
		"nothing is to be asked for": func(s *server, a *authorizer) { a.set(all(valid(s.t))...) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, a := newServer(t), &authorizer{}
				s.authorize(a)
				prepare(s, a)
				logs, stop := s.logging(valid(t))
				defer stop()
				pass(time.Hour)
				if strings.Contains(logs.String(), lacks) {
					t.Errorf("it complains:\n%s", logs)
				}
				if s.features.Resources == nil && a.reviews != 0 {
					t.Errorf("it asks %d times for permissions that nothing needs", a.reviews)
				}
			})
		})
	}
}

// TestAPermissionThatIsWithdrawnIsMissed when a report is refused for it.
func TestAPermissionThatIsWithdrawnIsMissed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, a := newServer(t), &authorizer{}
		config := valid(t)
		s.authorize(a)
		a.set(all(config)...)
		logs, stop := s.logging(config)
		defer stop()
		a.set(slices.DeleteFunc(all(config), func(r rbacv1.PolicyRule) bool {
			return slices.Contains(r.Verbs, "create") && slices.Contains(r.Resources, "featurereports")
		})...)
		pass(2 * time.Hour)
		if n := strings.Count(logs.String(), "of which it lacks: create, get, update featurereports.features.k8s.io"); n != 1 {
			t.Errorf("it says %d times what it lacks:\n%s", n, logs)
		}
		a.set(all(config)...)
	})
}

// TestRulesPermitVerbs: as RBAC reads them.
func TestRulesPermitVerbs(t *testing.T) {
	rule := func(verbs, groups, resources string, names ...string) []authorizationv1.ResourceRule {
		return []authorizationv1.ResourceRule{{Verbs: strings.Split(verbs, ","), APIGroups: strings.Split(groups, ","), Resources: strings.Split(resources, ","), ResourceNames: names}}
	}
	status := permission{schema.GroupResource{Group: "g", Resource: "things/status"}, "update", ""}
	one := permission{schema.GroupResource{Group: "g", Resource: "things"}, "get", "a"}
	got := map[string][]bool{}
	want := map[string][]bool{
		"of everything":             {true, true},
		"of all status":             {true, false},
		"of the very subresource":   {true, false},
		"of the resource alone":     {false, true},
		"of another group":          {false, false},
		"of another verb":           {false, false},
		"of one name":               {false, true},
		"of another name":           {false, false},
		"of one name of the status": {false, false},
	}
	for name, rules := range map[string][]authorizationv1.ResourceRule{
		"of everything":             rule("*", "*", "*"),
		"of all status":             rule("update", "g", "*/status"),
		"of the very subresource":   rule("get,update", "h,g", "others,things/status"),
		"of the resource alone":     rule("*", "g", "things"),
		"of another group":          rule("*", "h", "*"),
		"of another verb":           rule("list", "*", "*"),
		"of one name":               rule("get", "g", "things", "a"),
		"of another name":           rule("get", "g", "things", "b"),
		"of one name of the status": rule("update", "g", "things/status", "a"),
	} {
		got[name] = []bool{status.in(rules), one.in(rules)}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("unexpected permissions for the status and for one thing (-want +got):\n%s", diff)
	}
}
