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

package storage

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	pkgfields "k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	genericapirequest "k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/generic"
	genericregistrytest "k8s.io/apiserver/pkg/registry/generic/testing"
	"k8s.io/apiserver/pkg/registry/rest"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/kubernetes-features/pkg/apis/features"
	"k8s.io/kubernetes/pkg/registry/registrytest"
	"k8s.io/utils/ptr"
)

// permitting lets some users do some verbs with Features.
type permitting map[string][]string

func (p permitting) Authorize(_ context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
	of := a.GetAPIGroup() == features.GroupName && a.GetResource() == "features" && a.GetSubresource() == "" && a.GetName() != "" && a.IsResourceRequest()
	switch {
	case a.GetUser().GetName() == "unsure":
		return authorizer.DecisionNoOpinion, "", errors.New("the webhook does not answer")
	case of && slices.Contains(p[a.GetUser().GetName()], a.GetNamespace()+" "+a.GetVerb()):
		return authorizer.DecisionAllow, "", nil
	default:
		return authorizer.DecisionNoOpinion, "", nil
	}
}

// newStorage returns the storage on an etcd of its own. The feature named
// Dynamic is the only one of Kubernetes that the API may set. The user admin may write
// specs everywhere, and others may in the namespace example.
func newStorage(t *testing.T) (FeatureStorage, *Flow) {
	t.Helper()
	config, server := registrytest.NewEtcdStorageForResource(t, features.Resource("features"))
	t.Cleanup(func() { server.Terminate(t) })
	holder := &Flow{}
	s, err := NewStorage(generic.RESTOptions{
		StorageConfig: config, Decorator: generic.UndecoratedStorage, DeleteCollectionWorkers: 1, ResourcePrefix: "features",
	}, permitting{
		"admin":    {"kube-system update", "kube-system patch", "example update", "example patch"},
		"updating": {"example update"},
		"patching": {"example patch"},
	}, func(name string) v1alpha1.FeatureControl {
		if name == "Dynamic" {
			return v1alpha1.ControlDynamic
		}
		return v1alpha1.ControlLocal
	}, holder)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Feature.Store.Destroy)
	return s, holder
}

func as(t *testing.T, name, namespace string) context.Context {
	return genericapirequest.WithNamespace(genericapirequest.WithUser(t.Context(), &user.DefaultInfo{Name: name}), namespace)
}

// server is a request of kube-apiserver to itself.
func server(t *testing.T) context.Context {
	return as(t, FlowUser, metav1.NamespaceSystem)
}

func admin(t *testing.T) context.Context { return as(t, "admin", metav1.NamespaceSystem) }

func newFeature(namespace, name string, enabled *bool) *features.Feature {
	return &features.Feature{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Spec: features.FeatureSpec{Enabled: enabled}}
}

func create(ctx context.Context, s FeatureStorage, feature *features.Feature) (*features.Feature, error) {
	obj, err := s.Feature.Create(ctx, feature, rest.ValidateAllObjectFunc, &metav1.CreateOptions{})
	if err != nil {
		return nil, err
	}
	return obj.(*features.Feature), nil
}

// updater is implemented by the main resource and by status.
type updater interface {
	Update(ctx context.Context, name string, objInfo rest.UpdatedObjectInfo, validateCreate rest.ValidateObjectFunc,
		validateUpdate rest.ValidateObjectUpdateFunc, forceAllowCreate bool, options *metav1.UpdateOptions) (runtime.Object, bool, error)
}

func update(ctx context.Context, to updater, feature *features.Feature) (*features.Feature, error) {
	obj, _, err := to.Update(ctx, feature.Name, rest.DefaultUpdatedObjectInfo(feature), rest.ValidateAllObjectFunc, rest.ValidateAllObjectUpdateFunc, true, &metav1.UpdateOptions{})
	if err != nil {
		return nil, err
	}
	return obj.(*features.Feature), nil
}

// have creates a feature and gives it a status.
func have(t *testing.T, s FeatureStorage, namespace, name string, status features.FeatureStatus) *features.Feature {
	t.Helper()
	ctx := as(t, FlowUser, namespace)
	feature, err := create(ctx, s, newFeature(namespace, name, nil))
	if err != nil {
		t.Fatal(err)
	}
	feature.Status = status
	if feature, err = update(ctx, s.Status, feature); err != nil {
		t.Fatal(err)
	}
	return feature
}

func read(t *testing.T, s FeatureStorage, namespace, name string) *features.Feature {
	t.Helper()
	obj, err := s.Feature.Get(as(t, "reader", namespace), name, &metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return obj.(*features.Feature)
}

// TestStore runs upstream's tests of any storage.
func TestStore(t *testing.T) {
	plain := func() *features.Feature { return newFeature(metav1.NamespaceDefault, "SomeGate", nil) }
	unnamed := func(change func(*features.Feature)) *features.Feature {
		f := &features.Feature{}
		change(f)
		return f
	}
	for name, run := range map[string]func(*genericregistrytest.Tester){
		"create": func(test *genericregistrytest.Tester) {
			test.TestCreate(unnamed(func(*features.Feature) {}),
				unnamed(func(f *features.Feature) { f.Name = "not/a/gate" }),
				unnamed(func(f *features.Feature) { f.Spec.Rollout = &features.FeatureRollout{Percent: ptr.To[int32](101)} }))
		},
		"update": func(test *genericregistrytest.Tester) {
			test.TestUpdate(plain(), func(obj runtime.Object) runtime.Object {
				obj.(*features.Feature).Spec.Paused = true
				return obj
			}, func(obj runtime.Object) runtime.Object {
				obj.(*features.Feature).Spec.Rollout = &features.FeatureRollout{Percent: ptr.To[int32](-1)}
				return obj
			})
		},
		"delete": func(test *genericregistrytest.Tester) { test.TestDelete(plain()) },
		"get":    func(test *genericregistrytest.Tester) { test.TestGet(plain()) },
		"list":   func(test *genericregistrytest.Tester) { test.TestList(plain()) },
		"watch": func(test *genericregistrytest.Tester) {
			test.TestWatch(plain(), nil, []labels.Set{{"a": "b"}},
				[]pkgfields.Set{{"metadata.name": "SomeGate"}, {"status.state": ""}}, []pkgfields.Set{{"metadata.name": "OtherGate"}, {"status.state": "On"}})
		},
	} {
		t.Run(name, func(t *testing.T) {
			s, _ := newStorage(t)
			run(genericregistrytest.New(t, s.Feature.Store))
		})
	}
}

// TestStatusIsWrittenByFlowOnly is S5.
func TestStatusIsWrittenByFlowOnly(t *testing.T) {
	s, _ := newStorage(t)
	const elsewhere = "example"
	have(t, s, metav1.NamespaceSystem, "Gate", features.FeatureStatus{State: features.StateOn})
	have(t, s, elsewhere, "Gate", features.FeatureStatus{State: features.StateOn})
	for name, tc := range map[string]struct {
		who, namespace string
		refused        bool
	}{
		"the server flow writes that of Kubernetes' own": {FlowUser, metav1.NamespaceSystem, false},
		"an administrator does not":                      {"admin", metav1.NamespaceSystem, true},
		"the scheduler does not":                         {user.KubeScheduler, metav1.NamespaceSystem, true},
		"a request without user does not":                {"", metav1.NamespaceSystem, true},
		"an operator writes that of its own":             {"operator", elsewhere, false},
	} {
		t.Run(name, func(t *testing.T) {
			before := read(t, s, tc.namespace, "Gate")
			changed := before.DeepCopy()
			changed.Status.Version = map[string]string{"": "1.35", "1.35": "1.36", "1.36": "1.35"}[before.Status.Version]
			_, err := update(as(t, tc.who, tc.namespace), s.Status, changed)
			after := read(t, s, tc.namespace, "Gate")
			if !tc.refused {
				if err != nil || after.Status.Version != changed.Status.Version {
					t.Errorf("got %v, stored %+v", err, after.Status)
				}
				return
			}
			if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), FlowUser) {
				t.Errorf("got %v, want it forbidden and to say who may", err)
			}
			if diff := cmp.Diff(before, after); diff != "" {
				t.Errorf("the stored feature changed (-want +got):\n%s", diff)
			}
		})
	}
}

// TestStaleStatusConflicts checks that a write of an outdated status fails with a
// conflict, and not because only the flow may write it.
func TestStaleStatusConflicts(t *testing.T) {
	s, _ := newStorage(t)
	have(t, s, metav1.NamespaceSystem, "Gate", features.FeatureStatus{State: features.StateOff})
	before := read(t, s, metav1.NamespaceSystem, "Gate")
	now := before.DeepCopy()
	now.Status.State = features.StateOn
	if _, err := update(as(t, FlowUser, metav1.NamespaceSystem), s.Status, now); err != nil {
		t.Fatal(err)
	}
	if _, err := update(as(t, "migrator", metav1.NamespaceSystem), s.Status, before); !apierrors.IsConflict(err) {
		t.Errorf("got %v, want a conflict", err)
	}
}

func TestStatusAndSpecAreUpdatedSeparately(t *testing.T) {
	s, _ := newStorage(t)
	before := have(t, s, metav1.NamespaceSystem, "Gate", features.FeatureStatus{State: features.StateOn})

	byServer := before.DeepCopy()
	byServer.Spec.Paused = true
	byServer.Labels = map[string]string{"a": "b"}
	byServer.Status.State = features.StateOff
	got, err := update(server(t), s.Status, byServer)
	if err != nil || got.Spec.Paused || len(got.Labels) != 0 || got.Status.State != features.StateOff || got.Generation != 1 {
		t.Errorf("a write of status stored %+v, %v", got, err)
	}

	byAdmin := got.DeepCopy()
	byAdmin.Spec.Paused = true
	byAdmin.Labels = map[string]string{"a": "b"}
	byAdmin.Status = features.FeatureStatus{State: features.StateOn}
	got, err = update(admin(t), s.Feature, byAdmin)
	if err != nil || !got.Spec.Paused || got.Labels["a"] != "b" || got.Status.State != features.StateOff || got.Generation != 2 {
		t.Errorf("a write of spec stored %+v, %v", got, err)
	}

	if _, err := update(server(t), s.Status, byServer); !apierrors.IsConflict(err) {
		t.Errorf("an old status is written: %v", err)
	}
	got.Status.Tasks = []features.FeatureTask{{Name: "A"}}
	if _, err := update(server(t), s.Status, got); !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "no task left") {
		t.Errorf("a task in a state of rest is written: %v", err)
	}
}

func TestStatusUpdateCreatesNothing(t *testing.T) {
	s, _ := newStorage(t)
	if _, err := update(server(t), s.Status, newFeature(metav1.NamespaceSystem, "Gate", nil)); !apierrors.IsNotFound(err) {
		t.Errorf("got %v", err)
	}
	created, err := create(admin(t), s, func() *features.Feature {
		f := newFeature(metav1.NamespaceSystem, "Gate", nil)
		f.Status.State = features.StateOn
		return f
	}())
	if err != nil || created.Status.State != "" {
		t.Errorf("a new feature is stored with state %+v, %v", created, err)
	}
	obj, err := s.Status.Get(admin(t), "Gate", &metav1.GetOptions{})
	if err != nil || obj.(*features.Feature).Name != "Gate" {
		t.Errorf("read through the subresource: %v, %v", obj, err)
	}
}

// TestCreateWithSpecNeedsUpdatePermission checks that creating a Feature with a spec
// needs the permission to write that spec later. Permission to delete and create Features
// would include it otherwise.
func TestCreateWithSpecNeedsUpdatePermission(t *testing.T) {
	s, _ := newStorage(t)
	on, paused := features.FeatureSpec{Enabled: ptr.To(true)}, features.FeatureSpec{Paused: true}
	canary := features.FeatureSpec{Rollout: &features.FeatureRollout{Percent: ptr.To[int32](10)}}
	for name, tc := range map[string]struct {
		who, namespace string
		spec           features.FeatureSpec
		// says is part of a refusal's message, "" for none.
		says string
	}{
		"an operator creates its own":                 {who: "operator", namespace: "example"},
		"the server flow creates those of Kubernetes": {who: FlowUser, namespace: metav1.NamespaceSystem},
		"an operator asks for a value":                {who: "operator", namespace: "example", spec: on, says: `user "operator" may create Features, and not ask for anything in their spec`},
		"an operator pauses":                          {who: "operator", namespace: "example", spec: paused, says: `grant the verb update or patch on features in namespace "example"`},
		"an operator begins a canary":                 {who: "operator", namespace: "example", spec: canary, says: "leave spec out"},
		"the server flow pauses":                      {who: FlowUser, namespace: metav1.NamespaceSystem, spec: paused, says: "may create Features, and not ask"},
		"an updating user asks for a value":           {who: "updating", namespace: "example", spec: on},
		"who may patch asks for a value":              {who: "patching", namespace: "example", spec: on},
		"an updating user of elsewhere":               {who: "updating", namespace: "other", spec: on, says: `in namespace "other"`},
		"an administrator asks for all":               {who: "admin", namespace: "example", spec: features.FeatureSpec{Enabled: ptr.To(true), Rollout: canary.Rollout, Paused: true}},
		"the authorizer fails":                        {who: "unsure", namespace: "example", spec: on, says: "the webhook does not answer"},
	} {
		t.Run(name, func(t *testing.T) {
			ctx := as(t, tc.who, tc.namespace)
			feature := newFeature(tc.namespace, "Gate", nil)
			feature.Spec = *tc.spec.DeepCopy()
			_, err := create(ctx, s, feature)
			if tc.says == "" && err != nil {
				t.Error(err)
			}
			if tc.says != "" && (!apierrors.IsForbidden(err) || !strings.Contains(err.Error(), tc.says)) {
				t.Errorf("got %v, want it forbidden and to say %q", err, tc.says)
			}
			_, _, err = s.Feature.Delete(ctx, "Gate", rest.ValidateAllObjectFunc, &metav1.DeleteOptions{})
			if apierrors.IsNotFound(err) != (tc.says != "") {
				t.Errorf("deleting what was made: %v", err)
			}
		})
	}
}

func TestValueIsRefusedForNonDynamicFeatures(t *testing.T) {
	s, _ := newStorage(t)
	refusal := func(t *testing.T, err error, value string) {
		t.Helper()
		if !apierrors.IsInvalid(err) {
			t.Fatalf("got %v, want it invalid", err)
		}
		for _, says := range []string{"spec.enabled", "--feature-gates=Gate=" + value, "--dynamic-features"} {
			if !strings.Contains(err.Error(), says) {
				t.Errorf("the message does not say %q: %v", says, err)
			}
		}
	}
	_, err := create(admin(t), s, newFeature(metav1.NamespaceSystem, "Gate", ptr.To(true)))
	refusal(t, err, "true")
	gate, err := create(admin(t), s, newFeature(metav1.NamespaceSystem, "Gate", nil))
	if err != nil {
		t.Fatal(err)
	}
	gate.Spec.Enabled = ptr.To(false)
	_, err = update(admin(t), s.Feature, gate)
	refusal(t, err, "false")
	if got := read(t, s, metav1.NamespaceSystem, "Gate"); got.Spec.Enabled != nil {
		t.Errorf("%t is stored", *got.Spec.Enabled)
	}
	for name, feature := range map[string]*features.Feature{
		"a dynamic feature":       newFeature(metav1.NamespaceSystem, "Dynamic", ptr.To(true)),
		"a third party's feature": newFeature("example", "Gate", ptr.To(true)),
	} {
		if _, err := create(as(t, "admin", feature.Namespace), s, feature); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestFeaturesAreSelectedByStateAndStage(t *testing.T) {
	s, _ := newStorage(t)
	have(t, s, metav1.NamespaceSystem, "A", features.FeatureStatus{State: features.StateOn, Stage: features.StageBeta})
	have(t, s, metav1.NamespaceSystem, "B", features.FeatureStatus{State: features.StateOff, Stage: features.StageBeta})
	have(t, s, metav1.NamespaceSystem, "C", features.FeatureStatus{State: features.StateOff, Stage: features.StageAlpha})
	for text, want := range map[string][]string{
		"":                                     {"A", "B", "C"},
		"status.state=Off":                     {"B", "C"},
		"status.state!=Off":                    {"A"},
		"status.stage=Beta,status.state=Off":   {"B"},
		"metadata.namespace=kube-system":       {"A", "B", "C"},
		"metadata.name=C,status.state=Turning": {},
	} {
		selector, err := pkgfields.ParseSelector(text)
		if err != nil {
			t.Fatal(err)
		}
		list, err := s.Feature.List(admin(t), &metainternalversion.ListOptions{FieldSelector: selector})
		if err != nil {
			t.Fatal(err)
		}
		got := []string{}
		for _, item := range list.(*features.FeatureList).Items {
			got = append(got, item.Name)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("by %q (-want +got):\n%s", text, diff)
		}
	}
}

// answering is a server flow that records the requests that it gets.
type answering struct {
	asked []string
	err   error
}

func (a *answering) Plan(_ context.Context, feature *v1alpha1.Feature, plan *v1alpha1.FeaturePlan) (*v1alpha1.FeaturePlanStatus, error) {
	a.asked = append(a.asked, fmt.Sprintf("plan %s from %s to %t", feature.Name, feature.Status.State, *plan.Spec.Enabled))
	return &v1alpha1.FeaturePlanStatus{Tasks: []v1alpha1.PlannedTask{{Name: "WaitForUses"}}, Dependents: []string{"Other"}}, a.err
}

func (a *answering) Clean(_ context.Context, feature *v1alpha1.Feature) (*v1alpha1.FeatureCleanupStatus, error) {
	a.asked = append(a.asked, "clean "+feature.Name)
	return &v1alpha1.FeatureCleanupStatus{TransitionID: "t", Tasks: []v1alpha1.FeatureTask{{Name: "WaitForUses"}}}, a.err
}

func (a *answering) Cleanable(_ context.Context, feature *v1alpha1.Feature) error {
	a.asked = append(a.asked, "may clean "+feature.Name)
	return a.err
}

func plan(ctx context.Context, s FeatureStorage, name string) (runtime.Object, error) {
	return s.Plan.Create(ctx, name, &features.FeaturePlan{Spec: features.FeaturePlanSpec{Enabled: ptr.To(false)}}, rest.ValidateAllObjectFunc, &metav1.CreateOptions{})
}

func clean(ctx context.Context, s FeatureStorage, name string, dryRun ...string) (runtime.Object, error) {
	return s.Clean.Create(ctx, name, &features.FeatureCleanup{}, rest.ValidateAllObjectFunc, &metav1.CreateOptions{DryRun: dryRun})
}

func TestPlanStoresNothing(t *testing.T) {
	s, holder := newStorage(t)
	before := have(t, s, metav1.NamespaceSystem, "Gate", features.FeatureStatus{State: features.StateOn})
	if _, err := plan(admin(t), s, "Gate"); !apierrors.IsServiceUnavailable(err) {
		t.Errorf("before the server flow starts: %v", err)
	}
	flow := &answering{}
	holder.Set(flow)
	obj, err := plan(admin(t), s, "Gate")
	if err != nil {
		t.Fatal(err)
	}
	want := &features.FeaturePlan{
		ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceSystem, Name: "Gate"},
		Spec:       features.FeaturePlanSpec{Enabled: ptr.To(false)},
		Status:     features.FeaturePlanStatus{Tasks: []features.PlannedTask{{Name: "WaitForUses"}}, Dependents: []string{"Other"}},
	}
	if diff := cmp.Diff(want, obj); diff != "" {
		t.Errorf("unexpected answer (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"plan Gate from On to false"}, flow.asked); diff != "" {
		t.Errorf("the server flow was asked (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(before, read(t, s, metav1.NamespaceSystem, "Gate")); diff != "" {
		t.Errorf("the stored feature changed (-want +got):\n%s", diff)
	}
}

func TestSubresourcesAreForKubernetesOwnFeatures(t *testing.T) {
	s, holder := newStorage(t)
	flow := &answering{}
	holder.Set(flow)
	have(t, s, "example", "Gate", features.FeatureStatus{State: features.StateOff})
	for name, ask := range map[string]func(context.Context, FeatureStorage, string) (runtime.Object, error){
		"plan": plan,
		"clean": func(ctx context.Context, s FeatureStorage, name string) (runtime.Object, error) {
			return clean(ctx, s, name)
		},
	} {
		if _, err := ask(admin(t), s, "Gate"); !apierrors.IsNotFound(err) {
			t.Errorf("%s of a feature that is not there: %v", name, err)
		}
		if _, err := ask(as(t, "admin", "example"), s, "Gate"); !apierrors.IsBadRequest(err) || !strings.Contains(err.Error(), "example/Gate") {
			t.Errorf("%s of a third party's feature: %v", name, err)
		}
	}
	if len(flow.asked) > 0 {
		t.Errorf("the server flow was asked: %v", flow.asked)
	}
}

func TestCleanup(t *testing.T) {
	s, holder := newStorage(t)
	leftovers := []metav1.Condition{{Type: v1alpha1.ConditionClean, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonLeftovers, LastTransitionTime: metav1.Now()}}
	nothing := []metav1.Condition{{Type: v1alpha1.ConditionClean, Status: metav1.ConditionTrue, Reason: "NoLeftovers", LastTransitionTime: metav1.Now()}}
	have(t, s, metav1.NamespaceSystem, "Dangling", features.FeatureStatus{State: features.StateOff, Conditions: leftovers})
	have(t, s, metav1.NamespaceSystem, "Pristine", features.FeatureStatus{State: features.StateOff, Conditions: nothing})
	have(t, s, metav1.NamespaceSystem, "Used", features.FeatureStatus{State: features.StateOn})
	if _, err := clean(admin(t), s, "Dangling"); !apierrors.IsServiceUnavailable(err) {
		t.Errorf("before the server flow starts: %v", err)
	}

	flow := &answering{}
	holder.Set(flow)
	if _, err := clean(admin(t), s, "Used"); !apierrors.IsConflict(err) || !strings.Contains(err.Error(), "the feature is On") {
		t.Errorf("got %v, want a conflict that names the state", err)
	}
	if len(flow.asked) > 0 {
		t.Errorf("the server flow was asked: %v", flow.asked)
	}
	// The condition Clean may be old: the flow looks itself, also for a dry run.
	if _, err := clean(admin(t), s, "Pristine"); err != nil {
		t.Errorf("with Clean=True: %v", err)
	}
	if _, err := clean(admin(t), s, "Dangling", metav1.DryRunAll); err != nil {
		t.Errorf("a dry run: %v", err)
	}
	flow.err = errors.New("nothing is left")
	if _, err := clean(admin(t), s, "Dangling", metav1.DryRunAll); !errors.Is(err, flow.err) {
		t.Errorf("a dry run of what the flow refuses: %v", err)
	}
	if diff := cmp.Diff([]string{"clean Pristine", "may clean Dangling", "may clean Dangling"}, flow.asked); diff != "" {
		t.Errorf("the server flow was asked (-want +got):\n%s", diff)
	}
	flow.asked, flow.err = nil, nil

	obj, err := clean(admin(t), s, "Dangling")
	if err != nil {
		t.Fatal(err)
	}
	want := &features.FeatureCleanup{
		ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceSystem, Name: "Dangling"},
		Status:     features.FeatureCleanupStatus{TransitionID: "t", Tasks: []features.FeatureTask{{Name: "WaitForUses"}}},
	}
	if diff := cmp.Diff(want, obj); diff != "" {
		t.Errorf("unexpected answer (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"clean Dangling"}, flow.asked); diff != "" {
		t.Errorf("the server flow was asked (-want +got):\n%s", diff)
	}
	flow.err = errors.New("another server was faster")
	if _, err := clean(admin(t), s, "Dangling"); !errors.Is(err, flow.err) {
		t.Errorf("got %v, want the server flow's error", err)
	}
	if _, err := plan(admin(t), s, "Dangling"); !errors.Is(err, flow.err) {
		t.Errorf("got %v, want the server flow's error", err)
	}
}

// TestOtherNamespacesAreRefused checks that the message names the operator, and the place
// that documents how leftovers go.
func TestOtherNamespacesAreRefused(t *testing.T) {
	s, holder := newStorage(t)
	have(t, s, "widgets", "Colors", features.FeatureStatus{State: features.StateOff})
	flow := &answering{}
	holder.Set(flow)
	ctx := as(t, "admin", "widgets")
	_, planErr := plan(ctx, s, "Colors")
	_, cleanErr := clean(ctx, s, "Colors")
	for what, err := range map[string]error{"a plan": planErr, "a clean-up": cleanErr} {
		if !apierrors.IsBadRequest(err) {
			t.Errorf("%s: got %v, want a bad request", what, err)
			continue
		}
		for _, says := range []string{"feature widgets/Colors is not Kubernetes' own", "ask the operator that looks after it", "condition Clean"} {
			if !strings.Contains(err.Error(), says) {
				t.Errorf("%s: got %v, want it to say %q", what, err, says)
			}
		}
	}
	if len(flow.asked) > 0 {
		t.Errorf("the server flow was asked: %v", flow.asked)
	}
}

func TestCleanupIsValidated(t *testing.T) {
	s, _ := newStorage(t)
	_, err := s.Clean.Create(admin(t), "F", &features.FeatureCleanup{ObjectMeta: metav1.ObjectMeta{Name: "G"}}, nil, nil)
	if !apierrors.IsBadRequest(err) || !strings.Contains(err.Error(), `"G"`) {
		t.Errorf("a cleanup of another feature: %v", err)
	}
	if _, err = s.Clean.Create(admin(t), "F", &features.FeaturePlan{}, nil, nil); !apierrors.IsBadRequest(err) {
		t.Errorf("another kind: %v", err)
	}
	denied := errors.New("denied")
	_, err = s.Clean.Create(admin(t), "F", &features.FeatureCleanup{}, func(context.Context, runtime.Object) error { return denied }, nil)
	if !errors.Is(err, denied) {
		t.Errorf("admission is not asked: %v", err)
	}
}

// TestTable has every column and what a feature in transition shows in it.
func TestTable(t *testing.T) {
	s, _ := newStorage(t)
	shown := newFeature(metav1.NamespaceSystem, "MaxUnavailableStatefulSet", nil)
	shown.Status = features.FeatureStatus{
		Stage: features.StageBeta, Default: ptr.To(true), State: features.StateTurningOff, Control: features.ControlCentral, Version: "1.36",
		Configured: &features.FeatureConfiguration{Source: features.SourceCommandLine},
		Uses:       []features.FeatureUse{{Enabled: ptr.To(true), Count: 1}, {Enabled: ptr.To(false), Count: 4}},
		Tasks:      []features.FeatureTask{{Name: "WaitForUses", Message: "kube-controller-manager has it on"}},
		Conditions: []metav1.Condition{{Type: v1alpha1.ConditionClean, Status: metav1.ConditionFalse}},
	}
	want := [][]any{
		{"Name", int32(0), "MaxUnavailableStatefulSet"},
		{"Stage", int32(0), "Beta"},
		{"State", int32(0), "TurningOff"},
		{"Configured", int32(0), "Off"},
		{"Source", int32(0), "CommandLine"},
		{"On", int32(0), int64(1)},
		{"Off", int32(0), int64(4)},
		{"Progress", int32(0), "WaitForUses: kube-controller-manager has it on"},
		{"Age", int32(0), "<unknown>"},
		{"Control", int32(1), "Central"},
		{"Default", int32(1), "On"},
		{"Version", int32(1), "1.36"},
		{"Clean", int32(1), "False"},
	}
	for name, convert := range map[string]func(context.Context, runtime.Object, runtime.Object) (*metav1.Table, error){
		"features": s.Feature.ConvertToTable, "features/status": s.Status.ConvertToTable,
	} {
		table, err := convert(t.Context(), shown, &metav1.TableOptions{})
		if err != nil {
			t.Fatal(err)
		}
		got := [][]any{}
		for i, column := range table.ColumnDefinitions {
			got = append(got, []any{column.Name, column.Priority, table.Rows[0].Cells[i]})
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("unexpected table of %s (-want +got):\n%s", name, diff)
		}
	}
}
