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
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	pkgfields "k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/authentication/user"
	genericapirequest "k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/generic"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/kubernetes-features/pkg/apis/features"
	_ "k8s.io/kubernetes-features/pkg/apis/features/install" // the kinds that are stored
	"k8s.io/kubernetes/pkg/registry/registrytest"
)

// newREST returns the storage on an etcd of its own. These may report: the
// scheduler, the manager, and nodes; gc may touch any report.
func newREST(t *testing.T) *REST {
	t.Helper()
	config, server := registrytest.NewEtcdStorageForResource(t, features.Resource("featurereports"))
	t.Cleanup(func() { server.Terminate(t) })
	r, err := NewREST(generic.RESTOptions{
		StorageConfig: config, Decorator: generic.UndecoratedStorage, DeleteCollectionWorkers: 1, ResourcePrefix: "featurereports",
	}, grants{
		"scheduler report components/kube-scheduler",
		"manager report components/kube-controller-manager",
		"agent report components/agent",
		"system:node:n1 report components/kubelet",
		"system:node:n2 report components/kubelet",
		"gc delete featurereports/any", "gc update featurereports/any",
	}, func(name string) (*corev1.Node, error) {
		return nil, apierrors.NewNotFound(corev1.Resource("nodes"), name)
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Store.Destroy)
	return r
}

// in is a request of a user in kube-system.
func in(t *testing.T, name string, groups ...string) context.Context {
	return genericapirequest.WithNamespace(as(t, name, groups...), metav1.NamespaceSystem)
}

func node(t *testing.T, name string) context.Context {
	return in(t, "system:node:"+name, user.NodesGroup)
}

// created creates a report that has to be accepted.
func created(ctx context.Context, t *testing.T, r *REST, report *features.FeatureReport) *features.FeatureReport {
	t.Helper()
	obj, err := r.Create(ctx, report, rest.ValidateAllObjectFunc, &metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return obj.(*features.FeatureReport)
}

func read(t *testing.T, r *REST, name string) *features.FeatureReport {
	t.Helper()
	obj, err := r.Get(in(t, "reader"), name, &metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return obj.(*features.FeatureReport)
}

func stored(t *testing.T, r *REST, fieldSelector string) []string {
	t.Helper()
	selector, err := pkgfields.ParseSelector(fieldSelector)
	if err != nil {
		t.Fatal(err)
	}
	list, err := r.List(in(t, "reader"), &metainternalversion.ListOptions{FieldSelector: selector})
	if err != nil {
		t.Fatal(err)
	}
	names := []string{}
	for _, item := range list.(*features.FeatureReportList).Items {
		names = append(names, item.Name)
	}
	return names
}

func update(ctx context.Context, r *REST, report *features.FeatureReport, forceAllowCreate bool) (*features.FeatureReport, error) {
	obj, _, err := r.Update(ctx, report.Name, rest.DefaultUpdatedObjectInfo(report), rest.ValidateAllObjectFunc, rest.ValidateAllObjectUpdateFunc,
		forceAllowCreate, &metav1.UpdateOptions{})
	if err != nil {
		return nil, err
	}
	return obj.(*features.FeatureReport), nil
}

func wantForbidden(t *testing.T, err error, says string) {
	t.Helper()
	if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), says) {
		t.Errorf("got %v, want it forbidden and to say %q", err, says)
	}
}

func TestStoredReportNamesRequester(t *testing.T) {
	r := newREST(t)
	got := created(in(t, "scheduler"), t, r, report("kube-scheduler", "i", "", "stranger"))
	if got.Spec.Username != "scheduler" || got.Generation != 1 {
		t.Errorf("created by %q, generation %d", got.Spec.Username, got.Generation)
	}
	got.Spec.Username = "stranger"
	got.Spec.BinaryVersion = "v1.36.4"
	if _, err := update(in(t, "scheduler"), r, got, false); err != nil {
		t.Fatal(err)
	}
	got = read(t, r, "kube-scheduler.i")
	if got.Spec.Username != "scheduler" || got.Spec.BinaryVersion != "v1.36.4" || got.Generation != 2 {
		t.Errorf("stored %+v, generation %d", got.Spec, got.Generation)
	}
}

func TestForbiddenReportIsNotStored(t *testing.T) {
	r := newREST(t)
	for name, tc := range map[string]struct {
		ctx    context.Context
		report *features.FeatureReport
		says   string
	}{
		"by a user":                  {in(t, "jane"), report("kube-scheduler", "i", "", ""), "jane"},
		"of another component":       {in(t, "manager"), report("kube-scheduler", "i", "", ""), "kube-scheduler"},
		"of another node":            {node(t, "n1"), report("kubelet", "n2", "n2", ""), `node "n1"`},
		"of a component on no node":  {node(t, "n1"), report("agent", "n1", "", ""), `node "n1"`},
		"claiming another's account": {in(t, "jane"), report("kube-scheduler", "i", "", "scheduler"), "jane"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := r.Create(tc.ctx, tc.report.DeepCopy(), rest.ValidateAllObjectFunc, &metav1.CreateOptions{})
			wantForbidden(t, err, tc.says)
			// Server-side apply creates by an update.
			_, err = update(tc.ctx, r, tc.report.DeepCopy(), true)
			wantForbidden(t, err, tc.says)
		})
	}
	if names := stored(t, r, ""); len(names) != 0 {
		t.Errorf("stored %v", names)
	}
}

func TestUpdateCreatesForServerSideApplyOnly(t *testing.T) {
	r := newREST(t)
	if _, err := update(in(t, "scheduler"), r, report("kube-scheduler", "i", "", ""), false); !apierrors.IsNotFound(err) {
		t.Errorf("a PUT to a report that is not there: %v", err)
	}
	got, err := update(in(t, "scheduler"), r, report("kube-scheduler", "i", "", "stranger"), true)
	if err != nil || got.Spec.Username != "scheduler" {
		t.Errorf("applied as %+v, %v", got, err)
	}
}

// TestReportOfOtherIdentityIsForbidden is S5.
func TestReportOfOtherIdentityIsForbidden(t *testing.T) {
	r := newREST(t)
	before := created(node(t, "n1"), t, r, report("kubelet", "n1", "n1", ""))
	for name, tc := range map[string]struct {
		ctx    context.Context
		change func(*features.FeatureReport)
		says   string
	}{
		"another node changes what it says":  {node(t, "n2"), func(r *features.FeatureReport) { r.Spec.BinaryVersion = "v1.0.0" }, `only "system:node:n1"`},
		"another node changes its labels":    {node(t, "n2"), func(r *features.FeatureReport) { r.Labels = map[string]string{"a": "b"} }, "featurereports/any"},
		"the collector changes what it says": {in(t, "gc"), func(r *features.FeatureReport) { r.Spec.Features = nil; r.Spec.EmulationVersion = "1.35" }, `only "system:node:n1"`},
		"a user claims to be the creator":    {in(t, "jane"), func(r *features.FeatureReport) { r.Spec.Username = "jane" }, "featurereports/any"},
		"a user adds a finalizer to it":      {in(t, "jane"), func(r *features.FeatureReport) { r.Finalizers = []string{"example.com/held"} }, "featurereports/any"},
		"a user adds a Pod as its owner": {in(t, "jane"), func(r *features.FeatureReport) {
			r.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Pod", Name: "p", UID: "u"}}
		}, "featurereports/any"},
		"another component says more in it": {in(t, "scheduler"), func(r *features.FeatureReport) { r.Spec.Features = []features.ReportedFeature{{Name: "A"}} }, `only "system:node:n1"`},
	} {
		t.Run(name, func(t *testing.T) {
			changed := before.DeepCopy()
			tc.change(changed)
			_, err := update(tc.ctx, r, changed, false)
			wantForbidden(t, err, tc.says)
		})
	}
	if diff := cmp.Diff(before, read(t, r, "kubelet.n1")); diff != "" {
		t.Errorf("the stored report changed (-want +got):\n%s", diff)
	}
	changed := before.DeepCopy()
	changed.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Node", Name: "n1", UID: "u"}}
	got, err := update(in(t, "gc"), r, changed, false)
	if err != nil || len(got.OwnerReferences) != 1 || got.Generation != before.Generation {
		t.Errorf("the collector sets an owner: %+v, %v", got, err)
	}
}

func TestUpdateNeedsResourceVersion(t *testing.T) {
	r := newREST(t)
	first := created(in(t, "scheduler"), t, r, report("kube-scheduler", "i", "", ""))
	second := first.DeepCopy()
	second.Spec.BinaryVersion = "v1.36.4"
	if _, err := update(in(t, "scheduler"), r, second, false); err != nil {
		t.Fatal(err)
	}
	if _, err := update(in(t, "scheduler"), r, first, false); !apierrors.IsConflict(err) {
		t.Errorf("an old version is written: %v", err)
	}
	second.ResourceVersion = ""
	if _, err := update(in(t, "scheduler"), r, second, false); !apierrors.IsInvalid(err) {
		t.Errorf("no version is written: %v", err)
	}
}

func TestDeleteReportPermissions(t *testing.T) {
	r := newREST(t)
	remove := func(ctx context.Context, options *metav1.DeleteOptions) error {
		_, _, err := r.Delete(ctx, "kubelet.n1", rest.ValidateAllObjectFunc, options)
		return err
	}
	created(node(t, "n1"), t, r, report("kubelet", "n1", "n1", ""))
	for name, ctx := range map[string]context.Context{"another node": node(t, "n2"), "a user": in(t, "jane")} {
		t.Run(name+" does not", func(t *testing.T) {
			wantForbidden(t, remove(ctx, &metav1.DeleteOptions{}), "featurereports/any")
			wantForbidden(t, remove(ctx, &metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}}), "featurereports/any")
		})
	}
	if err := remove(in(t, "gc"), &metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}}); err != nil {
		t.Errorf("the collector tries: %v", err)
	}
	for name, ctx := range map[string]context.Context{"its creator": node(t, "n1"), "the collector": in(t, "gc")} {
		t.Run(name+" does", func(t *testing.T) {
			if names := stored(t, r, ""); len(names) == 0 {
				created(node(t, "n1"), t, r, report("kubelet", "n1", "n1", ""))
			}
			if err := remove(ctx, &metav1.DeleteOptions{}); err != nil {
				t.Error(err)
			}
			if names := stored(t, r, ""); len(names) != 0 {
				t.Errorf("%v stayed", names)
			}
		})
	}
}

func TestDeleteCollectionChecksEachReport(t *testing.T) {
	r := newREST(t)
	remove := func(ctx context.Context, selector pkgfields.Selector) error {
		_, err := r.DeleteCollection(ctx, rest.ValidateAllObjectFunc, &metav1.DeleteOptions{}, &metainternalversion.ListOptions{FieldSelector: selector})
		return err
	}
	created(node(t, "n1"), t, r, report("kubelet", "n1", "n1", ""))
	created(node(t, "n2"), t, r, report("kubelet", "n2", "n2", ""))
	created(in(t, "scheduler"), t, r, report("kube-scheduler", "i", "", ""))

	wantForbidden(t, remove(in(t, "jane"), pkgfields.Everything()), "featurereports/any")
	if diff := cmp.Diff([]string{"kube-scheduler.i", "kubelet.n1", "kubelet.n2"}, stored(t, r, "")); diff != "" {
		t.Errorf("other users deleted reports (-want +got):\n%s", diff)
	}
	wantForbidden(t, remove(node(t, "n1"), pkgfields.OneTermEqualSelector("spec.component", "kubelet")), "system:node:n2")
	if diff := cmp.Diff([]string{"kubelet.n2"}, stored(t, r, "spec.nodeName=n2")); diff != "" {
		t.Errorf("a node deleted another's report (-want +got):\n%s", diff)
	}
	if err := remove(in(t, "gc"), pkgfields.Everything()); err != nil {
		t.Error(err)
	}
	if names := stored(t, r, ""); len(names) != 0 {
		t.Errorf("%v stayed", names)
	}
}

// TestReportsOfIdentityAreLimited and no more, of each kind, in a namespace.
func TestReportsOfIdentityAreLimited(t *testing.T) {
	r := newREST(t)
	r.limits = limits{onNodes: 3, others: 2}
	made := func(ctx context.Context, component, instance, node string) error {
		_, err := r.Create(ctx, report(component, instance, node, ""), rest.ValidateAllObjectFunc, &metav1.CreateOptions{})
		return err
	}
	for _, step := range []struct {
		what string
		err  error
		says string
	}{
		{"a first", made(in(t, "scheduler"), "kube-scheduler", "a", ""), ""},
		{"a second", made(in(t, "scheduler"), "kube-scheduler", "b", ""), ""},
		{"a third", made(in(t, "scheduler"), "kube-scheduler", "c", ""), "has 2 reports without a node"},
		{"one of another identity", made(in(t, "manager"), "kube-controller-manager", "a", ""), ""},
		{"one of a node", made(in(t, "agent"), "agent", "n1", "n1"), ""},
		{"a second", made(in(t, "agent"), "agent", "n2", "n2"), ""},
		{"a third", made(in(t, "agent"), "agent", "n3", "n3"), ""},
		{"a fourth", made(in(t, "agent"), "agent", "n4", "n4"), "has 3 reports of nodes"},
		{"one of its own beside them", made(in(t, "agent"), "agent", "x", ""), ""},
	} {
		switch {
		case step.says == "" && step.err != nil:
			t.Errorf("%s: %v", step.what, step.err)
		case step.says != "":
			wantForbidden(t, step.err, step.says)
		}
	}
	_, err := update(in(t, "scheduler"), r, report("kube-scheduler", "d", "", ""), true)
	wantForbidden(t, err, "has 2 reports")
	if _, _, err := r.Delete(in(t, "scheduler"), "kube-scheduler.a", rest.ValidateAllObjectFunc, &metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := made(in(t, "scheduler"), "kube-scheduler", "c", ""); err != nil {
		t.Errorf("after one was deleted: %v", err)
	}
}

func TestReportsAreSelectedByComponentAndNode(t *testing.T) {
	r := newREST(t)
	created(node(t, "n1"), t, r, report("kubelet", "n1", "n1", ""))
	created(node(t, "n2"), t, r, report("kubelet", "n2", "n2", ""))
	created(in(t, "scheduler"), t, r, report("kube-scheduler", "i", "", ""))
	for selector, want := range map[string][]string{
		"":                       {"kube-scheduler.i", "kubelet.n1", "kubelet.n2"},
		"spec.component=kubelet": {"kubelet.n1", "kubelet.n2"},
		"spec.nodeName=n2":       {"kubelet.n2"},
		"spec.component=kubelet,metadata.name=kubelet.n1": {"kubelet.n1"},
		"spec.component=kube-proxy":                       {},
		"spec.username=scheduler":                         {"kube-scheduler.i"},
	} {
		if diff := cmp.Diff(want, stored(t, r, selector)); diff != "" {
			t.Errorf("by %q (-want +got):\n%s", selector, diff)
		}
	}
}

func TestAdmissionIsCalled(t *testing.T) {
	r := newREST(t)
	refuse := errors.New("a webhook refuses")
	_, err := r.Create(in(t, "scheduler"), report("kube-scheduler", "i", "", ""), func(context.Context, runtime.Object) error { return refuse }, &metav1.CreateOptions{})
	if !errors.Is(err, refuse) {
		t.Errorf("the creation ended with %v", err)
	}
	before := created(in(t, "scheduler"), t, r, report("kube-scheduler", "i", "", ""))
	_, _, err = r.Update(in(t, "scheduler"), before.Name, rest.DefaultUpdatedObjectInfo(before), rest.ValidateAllObjectFunc,
		func(context.Context, runtime.Object, runtime.Object) error { return refuse }, false, &metav1.UpdateOptions{})
	if !errors.Is(err, refuse) {
		t.Errorf("the update ended with %v", err)
	}
	_, _, err = r.Delete(in(t, "scheduler"), before.Name, func(context.Context, runtime.Object) error { return refuse }, &metav1.DeleteOptions{})
	if !errors.Is(err, refuse) {
		t.Errorf("the deletion ended with %v", err)
	}
}

// TestTable has every column and what a report shows in it.
func TestTable(t *testing.T) {
	r := newREST(t)
	shown := report("kubelet", "n1", "n1", "system:node:n1")
	shown.Spec.BinaryVersion, shown.Spec.EmulationVersion = "v1.36.3", "1.35"
	shown.Spec.Features = make([]features.ReportedFeature, 3)
	table, err := r.ConvertToTable(t.Context(), shown, &metav1.TableOptions{})
	if err != nil {
		t.Fatal(err)
	}
	got := [][]any{}
	for i, column := range table.ColumnDefinitions {
		got = append(got, []any{column.Name, column.Priority, table.Rows[0].Cells[i]})
	}
	want := [][]any{
		{"Name", int32(0), "kubelet.n1"},
		{"Component", int32(0), "kubelet"},
		{"Version", int32(0), "v1.36.3"},
		{"Node", int32(0), "n1"},
		{"Liveness", int32(0), "Node"},
		{"Features", int32(0), int64(3)},
		{"Age", int32(0), "<unknown>"},
		{"Emulation", int32(1), "1.35"},
		{"Username", int32(1), "system:node:n1"},
		{"Lease", int32(1), "<none>"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("unexpected table (-want +got):\n%s", diff)
	}
}
