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
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/feature-lifecycle/client/clientset/versioned"
	typed "k8s.io/feature-lifecycle/client/clientset/versioned/typed/features/v1alpha1"
	"k8s.io/feature-lifecycle/operator"
	featurestorage "k8s.io/kubernetes-features/pkg/registry/features/feature/storage"
	"k8s.io/kubernetes-features/test/e2e_features/framework"
	"k8s.io/kubernetes-features/test/utils/localcluster"
	"k8s.io/utils/ptr"
)

// forbidden is a request that must be refused with a message that says why.
type forbidden struct {
	name string
	do   func(context.Context) error
	says string
	// invalid is true where who asks might, and what is asked is wrong.
	invalid bool
}

func (f forbidden) try(t *testing.T) {
	err := f.do(t.Context())
	t.Log(err)
	if f.invalid && !apierrors.IsInvalid(err) || !f.invalid && !apierrors.IsForbidden(err) {
		t.Fatalf("got %v, want it refused (invalid: %t)", err, f.invalid)
	}
	if !strings.Contains(err.Error(), f.says) {
		t.Errorf("got %v, want a message that says %q", err, f.says)
	}
}

// stage is what the rights are tried on: nothing of it runs, so all of it stays as it
// is.
type stage struct {
	w *world
	// red tries it. Other is another service account of its namespace, which has a
	// report, too; blue is another operator.
	red, other, blue *identity
	// server is the report of kube-apiserver.
	server string
}

// rights: an operator with the permissions that the library says, and one with far too
// many, cannot touch what belongs to others, or say what state a feature of Kubernetes is in.
func (w *world) rights(t *testing.T) {
	s := w.stage(t)
	// At home the server flow takes away what processes that are gone have left, whoever they were.
	if err := reports(s.red.features, s.red.namespace).Delete(t.Context(), s.other.name+".x", metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}}); err != nil {
		t.Errorf("an operator deletes a report in its own namespace that another user wrote: %v", err)
	}
	before := s.versions(t)
	if len(before) != 5 {
		t.Fatalf("there are %v, want a feature and a report of each, and the report of another service account", before)
	}
	for _, rows := range [][]forbidden{
		s.elsewhere(s.blue.namespace, colors, s.blue.name+".x"),
		s.elsewhere(metav1.NamespaceSystem, borrowed, s.server),
		s.atHome(),
		s.careless(t),
	} {
		for _, row := range rows {
			t.Run(row.name, row.try)
		}
	}
	if diff := cmp.Diff(before, s.versions(t)); diff != "" {
		t.Errorf("objects have changed (-before +after):\n%s", diff)
	}
	reports, err := w.Features.FeaturesV1alpha1().FeatureReports(metav1.NamespaceSystem).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, report := range reports.Items {
		if strings.HasPrefix(report.Spec.Username, "system:serviceaccount:"+s.red.namespace+":") {
			t.Errorf("%s reports in %s: %+v", report.Spec.Username, metav1.NamespaceSystem, report.Spec)
		}
	}
}

// stage makes two operators without processes. Their identities make what theirs
// would, which shows that they may.
func (w *world) stage(t *testing.T) *stage {
	t.Helper()
	s := &stage{w: w, red: w.identity(t, "redrights", "red-operator"), other: w.identity(t, "redrights", "other-agent"), blue: w.identity(t, "bluerights", "blue-operator")}
	w.permit(t, s.red, operator.Rules(s.red.name), nil)
	w.permit(t, s.blue, operator.Rules(s.blue.name), nil)
	w.permit(t, s.other, []rbacv1.PolicyRule{
		{APIGroups: []string{v1alpha1.GroupName}, Resources: []string{"components"}, ResourceNames: []string{s.other.name}, Verbs: []string{"report"}},
		{APIGroups: []string{v1alpha1.GroupName}, Resources: []string{"featurereports"}, Verbs: []string{"create", "delete"}},
	}, nil)
	for _, id := range []*identity{s.red, s.blue} {
		if _, err := features(id.features, id.namespace).Create(t.Context(), newFeature(colors), metav1.CreateOptions{}); err != nil {
			t.Fatalf("%s creates its own Feature: %v", id.user(), err)
		}
	}
	for _, id := range []*identity{s.red, s.other, s.blue} {
		if _, err := reports(id.features, id.namespace).Create(t.Context(), newReport(id.namespace, id.name), metav1.CreateOptions{}); err != nil {
			t.Fatalf("%s reports as itself: %v", id.user(), err)
		}
	}
	for namespace, feature := range map[string]string{s.blue.namespace: colors, metav1.NamespaceSystem: borrowed} {
		if _, err := features(s.red.features, namespace).Get(t.Context(), feature, metav1.GetOptions{}); err != nil {
			t.Fatalf("everyone may read Features, and %s may not in %s: %v", s.red.user(), namespace, err)
		}
	}
	framework.WaitFor(t, "the report of kube-apiserver", func() bool {
		list, err := reports(w.Features, metav1.NamespaceSystem).List(t.Context(), metav1.ListOptions{FieldSelector: "spec.component=" + localcluster.APIServer})
		if err != nil || len(list.Items) == 0 {
			return false
		}
		s.server = list.Items[0].Name
		return true
	})
	return s
}

// versions are those of all that the operators have.
func (s *stage) versions(t *testing.T) map[string]string {
	t.Helper()
	versions := map[string]string{}
	for _, namespace := range []string{s.red.namespace, s.blue.namespace} {
		list, err := features(s.w.Features, namespace).List(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range list.Items {
			versions[namespace+" "+f.Name] = f.ResourceVersion
		}
		of, err := reports(s.w.Features, namespace).List(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range of.Items {
			versions[namespace+" "+r.Name] = r.ResourceVersion
		}
	}
	return versions
}

// elsewhere is everything that there is to do with a feature and a report in another
// namespace: RBAC refuses it, and says whom what.
func (s *stage) elsewhere(namespace, feature, report string) []forbidden {
	f, r := features(s.red.features, namespace), reports(s.red.features, namespace)
	on, mine := newFeature(feature), newReport(namespace, s.red.name)
	on.Status.State = v1alpha1.StateOn
	theirs := mine.DeepCopy()
	theirs.Name = report
	var rows []forbidden
	for _, try := range []struct {
		verb, resource string
		do             func(context.Context) error
	}{
		{"create", "features", func(ctx context.Context) error {
			return second(f.Create(ctx, newFeature("Made"), metav1.CreateOptions{}))
		}},
		{"update", "features", func(ctx context.Context) error { return second(f.Update(ctx, on, metav1.UpdateOptions{})) }},
		{"patch", "features", func(ctx context.Context) error { return merge(ctx, f.Patch, feature, `{"spec":{"enabled":true}}`) }},
		{"delete", "features", func(ctx context.Context) error { return f.Delete(ctx, feature, metav1.DeleteOptions{}) }},
		{"deletecollection", "features", func(ctx context.Context) error {
			return f.DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{})
		}},
		{"update", "features/status", func(ctx context.Context) error { return second(f.UpdateStatus(ctx, on, metav1.UpdateOptions{})) }},
		{"patch", "features/status", func(ctx context.Context) error {
			return merge(ctx, f.Patch, feature, `{"status":{"state":"On"}}`, "status")
		}},
		{"create", "features/plan", func(ctx context.Context) error {
			return second(f.CreatePlan(ctx, feature, &v1alpha1.FeaturePlan{Spec: v1alpha1.FeaturePlanSpec{Enabled: ptr.To(true)}}, metav1.CreateOptions{}))
		}},
		{"create", "features/cleanup", func(ctx context.Context) error {
			return second(f.CreateCleanup(ctx, feature, &v1alpha1.FeatureCleanup{}, metav1.CreateOptions{}))
		}},
		{"create", "featurereports", func(ctx context.Context) error { return second(r.Create(ctx, mine, metav1.CreateOptions{})) }},
		{"update", "featurereports", func(ctx context.Context) error { return second(r.Update(ctx, theirs, metav1.UpdateOptions{})) }},
		{"patch", "featurereports", func(ctx context.Context) error {
			return merge(ctx, r.Patch, report, `{"spec":{"binaryVersion":"v9.9.9"}}`)
		}},
		{"delete", "featurereports", func(ctx context.Context) error { return r.Delete(ctx, report, metav1.DeleteOptions{}) }},
		{"deletecollection", "featurereports", func(ctx context.Context) error {
			return r.DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{})
		}},
		{"get", "featurereports", func(ctx context.Context) error { return second(r.Get(ctx, report, metav1.GetOptions{})) }},
		{"list", "featurereports", func(ctx context.Context) error { return second(r.List(ctx, metav1.ListOptions{})) }},
	} {
		rows = append(rows, forbidden{
			name: fmt.Sprintf("%s %s in %s", try.verb, try.resource, namespace), do: try.do,
			says: fmt.Sprintf("User %q cannot %s resource %q in API group %q in the namespace %q", s.red.user(), try.verb, try.resource, v1alpha1.GroupName, namespace),
		})
	}
	return rows
}

// atHome has requests that an operator must not make in its own namespace
// either, nor as another user.
func (s *stage) atHome() []forbidden {
	home := s.red.namespace
	f, r := features(s.red.features, home), reports(s.red.features, home)
	other := s.other.name + ".x"
	reportAs := func(component string) func(context.Context) error {
		return func(ctx context.Context) error {
			return second(r.Create(ctx, newReport(home, component), metav1.CreateOptions{}))
		}
	}
	mayNot := func(component string) string {
		return fmt.Sprintf(`user %q may not report as component %q; grant the verb report on components.features.k8s.io %q in namespace %q`, s.red.user(), component, component, home)
	}
	// change changes the report of the other service account.
	change := func(what func(*v1alpha1.FeatureReport)) func(context.Context) error {
		return func(ctx context.Context) error {
			report, err := r.Get(ctx, other, metav1.GetOptions{})
			if err != nil {
				return err
			}
			what(report)
			return second(r.Update(ctx, report, metav1.UpdateOptions{}))
		}
	}
	asFlow := rest.CopyConfig(s.red.config)
	asFlow.Impersonate.UserName = featurestorage.FlowUser
	return []forbidden{
		{name: "reports as kube-apiserver", do: reportAs(localcluster.APIServer), says: mayNot(localcluster.APIServer)},
		{name: "reports as another operator", do: reportAs(s.blue.name), says: mayNot(s.blue.name)},
		{name: "is alive by a Lease elsewhere", do: func(ctx context.Context) error {
			report := newReport(home, s.red.name)
			report.Name, report.Spec.Instance = s.red.name+".y", "y"
			report.Spec.Liveness.Lease = &v1alpha1.LeaseReference{Namespace: s.blue.namespace, Name: report.Name}
			return second(r.Create(ctx, report, metav1.CreateOptions{}))
		}, invalid: true, says: fmt.Sprintf("must be %q for reports of %s", home, s.red.name)},
		{name: "changes what another process reports", do: change(func(report *v1alpha1.FeatureReport) { report.Spec.BinaryVersion = "v9.9.9" }),
			says: fmt.Sprintf("only %q, who created the report, may change it; you are %q; if that process has ended, delete the report, and it can be created again", s.other.user(), s.red.user())},
		{name: "labels the report of another process", do: change(func(report *v1alpha1.FeatureReport) { report.Labels = map[string]string{"a": "b"} }),
			says: "that needs the verb update on featurereports/any"},
		{name: "deletes the report of an operator, as another service account", do: func(ctx context.Context) error {
			return reports(s.other.features, home).Delete(ctx, s.red.name+".x", metav1.DeleteOptions{})
		}, says: fmt.Sprintf("may not delete the report of %q; that needs the verb delete on featurereports/any", s.red.user())},
		{name: "requests a value", do: func(ctx context.Context) error { return merge(ctx, f.Patch, colors, `{"spec":{"enabled":true}}`) },
			says: `cannot patch resource "features"`},
		{name: "requests a value for a feature that it makes", do: func(ctx context.Context) error {
			made := newFeature("Made")
			made.Spec.Enabled = ptr.To(true)
			return second(f.Create(ctx, made, metav1.CreateOptions{}))
		}, says: fmt.Sprintf("user %q may create Features, and not ask for anything in their spec", s.red.user())},
		{name: "pauses a feature that it makes by server-side apply", do: func(ctx context.Context) error {
			applied := fmt.Appendf(nil, `{"apiVersion":%q,"kind":"Feature","metadata":{"name":"Made"},"spec":{"paused":true}}`, v1alpha1.SchemeGroupVersion)
			return second(f.Patch(ctx, "Made", types.ApplyPatchType, applied, metav1.PatchOptions{FieldManager: "red"}))
		}, says: `cannot patch resource "features"`},
		{name: "takes on the identity of the server flow", do: func(ctx context.Context) error {
			return merge(ctx, features(versioned.NewForConfigOrDie(asFlow), metav1.NamespaceSystem).Patch, borrowed, `{"status":{"state":"On"}}`, "status")
		}, says: "impersonate"},
	}
}

// second is an error without what came with it.
func second[T any](_ T, err error) error { return err }

// merge sends a merge patch.
func merge[T any](ctx context.Context, patch func(context.Context, string, types.PatchType, []byte, metav1.PatchOptions, ...string) (T, error), name, body string, subresources ...string) error {
	return second(patch(ctx, name, types.MergePatchType, []byte(body), metav1.PatchOptions{}, subresources...))
}

func features(client versioned.Interface, namespace string) typed.FeatureInterface {
	return client.FeaturesV1alpha1().Features(namespace)
}

func reports(client versioned.Interface, namespace string) typed.FeatureReportInterface {
	return client.FeaturesV1alpha1().FeatureReports(namespace)
}

func newFeature(name string) *v1alpha1.Feature {
	return &v1alpha1.Feature{ObjectMeta: metav1.ObjectMeta{Name: name}}
}
