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

package rest

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/apis/flowcontrol/bootstrap"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"
	"k8s.io/apiserver/pkg/authentication/user"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/client-go/kubernetes/fake"
	restclient "k8s.io/client-go/rest"
	clienttesting "k8s.io/client-go/testing"
	featurestorage "k8s.io/kubernetes-features/pkg/registry/features/feature/storage"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	"k8s.io/kubernetes/pkg/apis/flowcontrol"
	_ "k8s.io/kubernetes/pkg/apis/flowcontrol/install"
	"k8s.io/kubernetes/pkg/apis/flowcontrol/validation"
)

// TestFlowControlIsValid by upstream's own validation, has a place of its own among
// upstream's flow schemas, and is not taken for one of those.
func TestFlowControlIsValid(t *testing.T) {
	level, schemas := FlowControl()
	internalLevel := &flowcontrol.PriorityLevelConfiguration{}
	if err := legacyscheme.Scheme.Convert(level, internalLevel, nil); err != nil {
		t.Fatal(err)
	}
	if errs := validation.ValidatePriorityLevelConfiguration(internalLevel, flowcontrolv1.SchemeGroupVersion, validation.PriorityLevelValidationOptions{}); len(errs) > 0 {
		t.Error(errs)
	}
	levels := map[string]bool{level.Name: true}
	for _, other := range bootstrap.SuggestedPriorityLevelConfigurations {
		levels[other.Name] = true
	}
	annotations := []map[string]string{level.Annotations}
	for _, schema := range schemas {
		internalSchema := &flowcontrol.FlowSchema{}
		if err := legacyscheme.Scheme.Convert(schema, internalSchema, nil); err != nil {
			t.Fatal(err)
		}
		if errs := validation.ValidateFlowSchema(internalSchema); len(errs) > 0 {
			t.Error(errs)
		}
		if !levels[schema.Spec.PriorityLevelConfiguration.Name] {
			t.Errorf("%s is for the level %s, which is not there", schema.Name, schema.Spec.PriorityLevelConfiguration.Name)
		}
		for _, other := range append(bootstrap.SuggestedFlowSchemas, bootstrap.MandatoryFlowSchemas...) {
			if other.Name == schema.Name || other.Spec.MatchingPrecedence == schema.Spec.MatchingPrecedence {
				t.Errorf("upstream's flow schema %s has the name or the precedence of %s", other.Name, schema.Name)
			}
			if other.Name == "system-nodes" && other.Spec.MatchingPrecedence <= schema.Spec.MatchingPrecedence {
				t.Errorf("reports of nodes would not match %s", schema.Name)
			}
		}
		annotations = append(annotations, schema.Annotations)
	}
	for _, annotations := range annotations {
		if _, ok := annotations[flowcontrolv1.AutoUpdateAnnotationKey]; ok {
			t.Error("upstream deletes what says that it may be updated and is not its own")
		}
	}
}

// TestKubeProxiesWithOneIdentityGetFairShare, which are half of the reporters of nodes, and
// no single identity can fill the level.
func TestKubeProxiesWithOneIdentityGetFairShare(t *testing.T) {
	level, _ := FlowControl()
	q := level.Spec.Limited.LimitResponse.Queuing
	if 2*q.HandSize != q.Queues {
		t.Errorf("one identity may use %d of %d queues, want half of them", q.HandSize, q.Queues)
	}
	// Fewer are turned away too often, and more take too much memory (docs/contributors/tried.md).
	if waiting := q.Queues * q.QueueLengthLimit; waiting != 3200 {
		t.Errorf("%d requests may wait, want 3200", waiting)
	}
}

// TestOnlyReportersWaitForReporters, and all of them do.
func TestOnlyReportersWaitForReporters(t *testing.T) {
	_, schemas := FlowControl()
	const garbage = "system:serviceaccount:kube-system:generic-garbage-collector"
	for name, want := range map[string]string{
		featurestorage.FlowUser:    ReportsCleanup,
		user.KubeControllerManager: ReportsCleanup,
		garbage:                    ReportsCleanup,
		"system:serviceaccount:kube-system:kube-proxy":          ReportsLevel,
		"system:serviceaccount:other:generic-garbage-collector": ReportsLevel,
		"system:node:n1":   ReportsLevel,
		user.KubeProxy:     ReportsLevel,
		user.KubeScheduler: ReportsLevel,
		"an operator":      ReportsLevel,
	} {
		var first *flowcontrolv1.FlowSchema
		for _, schema := range schemas {
			if slices.ContainsFunc(schema.Spec.Rules[0].Subjects, func(s flowcontrolv1.Subject) bool { return isSubject(s, name) }) &&
				(first == nil || schema.Spec.MatchingPrecedence < first.Spec.MatchingPrecedence) {
				first = schema
			}
		}
		if first == nil || first.Name != want {
			t.Errorf("%s is for %+v, want %s", name, first, want)
		}
	}
	for _, schema := range schemas {
		rules := schema.Spec.Rules[0].ResourceRules
		if diff := cmp.Diff(schemas[0].Spec.Rules[0].ResourceRules, rules); diff != "" || len(schema.Spec.Rules) != 1 {
			t.Errorf("%s is for other requests than the first (-want +got):\n%s", schema.Name, diff)
		}
	}
}

// isSubject is true for an authenticated user that a subject means.
func isSubject(subject flowcontrolv1.Subject, name string) bool {
	switch subject.Kind {
	case flowcontrolv1.SubjectKindUser:
		return subject.User.Name == name
	case flowcontrolv1.SubjectKindServiceAccount:
		return serviceaccount.MatchesUsername(subject.ServiceAccount.Namespace, subject.ServiceAccount.Name, name)
	default:
		return subject.Group.Name == user.AllAuthenticated
	}
}

// TestFlowControlIsWrittenOnce, and changes by users stay.
func TestFlowControlIsWrittenOnce(t *testing.T) {
	client := fake.NewClientset()
	writes := func() (verbs []string) {
		for _, action := range client.Actions() {
			if action.GetVerb() != "get" {
				verbs = append(verbs, action.GetVerb()+" "+action.GetResource().Resource)
			}
		}
		return verbs
	}
	if err := ensureFlowControl(t.Context(), client); err != nil {
		t.Fatal(err)
	}
	all := []string{"create prioritylevelconfigurations", "create flowschemas", "create flowschemas"}
	if diff := cmp.Diff(all, writes()); diff != "" {
		t.Errorf("unexpected writes at the first start (-want +got):\n%s", diff)
	}
	schema, err := client.FlowcontrolV1().FlowSchemas().Get(t.Context(), ReportsLevel, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	schema.Spec.MatchingPrecedence = 9000
	if _, err := client.FlowcontrolV1().FlowSchemas().Update(t.Context(), schema, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	client.ClearActions()
	if err := ensureFlowControl(t.Context(), client); err != nil {
		t.Fatal(err)
	}
	if got := writes(); len(got) > 0 {
		t.Errorf("unexpected writes at the next start: %v", got)
	}
	// A cluster that has had reporters' alone.
	if err := client.FlowcontrolV1().FlowSchemas().Delete(t.Context(), ReportsCleanup, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	client.ClearActions()
	if err := ensureFlowControl(t.Context(), client); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"create flowschemas"}, writes()); diff != "" {
		t.Errorf("unexpected writes at the start after that (-want +got):\n%s", diff)
	}
}

// TestFlowSchemaOfEarlierVersions gets the subresource confirmation, unless it was changed.
func TestFlowSchemaOfEarlierVersions(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*flowcontrolv1.FlowSchema)
		want   bool
	}{
		"as it was written":  {func(*flowcontrolv1.FlowSchema) {}, true},
		"another precedence": {func(s *flowcontrolv1.FlowSchema) { s.Spec.MatchingPrecedence++ }, false},
	} {
		client := fake.NewClientset()
		_, schemas := FlowControl()
		for _, schema := range schemas {
			schema.Spec.Rules[0].ResourceRules[0].Resources = []string{"featurereports"}
			tc.change(schema)
			if _, err := client.FlowcontrolV1().FlowSchemas().Create(t.Context(), schema, metav1.CreateOptions{}); err != nil {
				t.Fatal(err)
			}
		}
		if err := ensureFlowControl(t.Context(), client); err != nil {
			t.Fatal(err)
		}
		for _, schema := range schemas {
			got, err := client.FlowcontrolV1().FlowSchemas().Get(t.Context(), schema.Name, metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if has := slices.Contains(got.Spec.Rules[0].ResourceRules[0].Resources, "featurereports/confirmation"); has != tc.want {
				t.Errorf("%s: flow schema %s has confirmations: %t, want %t", name, schema.Name, has, tc.want)
			}
		}
	}
}

// TestFlowControlIsRetried for a while, unless that is of no use.
func TestFlowControlIsRetried(t *testing.T) {
	schemas := flowcontrolv1.Resource("flowschemas")
	const forever = 1000
	for name, tc := range map[string]struct {
		failure  error
		failures int
		want     bool
		took     time.Duration
	}{
		"etcd is slow at first":        {apierrors.NewInternalError(errors.New("etcd")), 3, true, 3 * time.Second},
		"admission is not ready":       {apierrors.NewForbidden(schemas, ReportsLevel, errors.New("not yet ready to handle request")), 3, true, 3 * time.Second},
		"a webhook's backend is down":  {apierrors.NewInternalError(errors.New("failed calling webhook")), forever, false, flowControlPatience},
		"a webhook refuses":            {apierrors.NewForbidden(schemas, ReportsLevel, errors.New("no")), forever, false, flowControlPatience},
		"the server takes no such one": {apierrors.NewInvalid(flowcontrolv1.SchemeGroupVersion.WithKind("FlowSchema").GroupKind(), ReportsLevel, nil), forever, false, 0},
		"the API is not served":        {apierrors.NewNotFound(schemas, ""), forever, false, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				client := fake.NewClientset()
				failures := tc.failures
				client.PrependReactor("create", "flowschemas", func(clienttesting.Action) (bool, runtime.Object, error) {
					failures--
					return failures >= 0, nil, tc.failure
				})
				begun := time.Now()
				err := ensureFlowControl(t.Context(), client)
				if tc.want != (err == nil) || (!tc.want && !errors.Is(err, tc.failure)) {
					t.Errorf("got %v", err)
				}
				if took := time.Since(begun); took != tc.took {
					t.Errorf("it took %s, want %s", took, tc.took)
				}
			})
		})
	}
}

// TestStartDoesNotWaitForFlowControl: the server is ready when it has RBAC.
func TestStartDoesNotWaitForFlowControl(t *testing.T) {
	asked := make(chan struct{}, 1)
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		select {
		case asked <- struct{}{}:
		default:
		}
		<-r.Context().Done()
	}))
	defer server.Close()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	_, hook, err := StorageProvider{FlowControl: true}.PostStartHook()
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() {
		done <- hook(genericapiserver.PostStartHookContext{Context: ctx, LoopbackClientConfig: &restclient.Config{Host: server.URL}})
	}()
	limit := time.After(flowControlPatience / 2)
	select {
	case err := <-done:
		if err != nil {
			t.Error(err)
		}
	case <-limit:
		t.Fatal("the hook waits")
	}
	select {
	case <-asked:
	case <-limit:
		t.Error("there is no attempt to write it")
	}
}
