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
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/feature-lifecycle/operator"
	"k8s.io/kubernetes-features/test/e2e_features/framework"
)

// mostRequests is how many requests a replica may send in some 10 to 20 seconds in
// which nothing that it asks for is there any more. One that asks without a pause sends
// thousands.
const mostRequests = 500

// namespaceDeleted: the namespace of an operator that runs goes with all that is in it.
// The replicas bear it, and end when they are told to.
func (w *world) namespaceDeleted(t *testing.T) {
	o := w.install(t, "doomed")
	replicas := []*replica{o.start(t, "a", nil), o.start(t, "b", nil)}
	o.waitForState(t, v1alpha1.StateOff, 2, colors, borrowed)
	o.ask(t, colors, true)
	o.waitForState(t, v1alpha1.StateOn, 2, colors)
	kept := w.make(t, o.resource, "kept", map[string]any{"color": "red"})
	if len(w.keys(t, o.namespace)) == 0 {
		t.Fatal("etcd has nothing of the namespace, as far as this test sees")
	}

	if err := w.Kube.CoreV1().Namespaces().Delete(t.Context(), o.namespace, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	w.waitForNamespaceGone(t, o.namespace)
	nothing := func(when string) {
		t.Helper()
		if keys := w.keys(t, o.namespace); len(keys) > 0 {
			t.Errorf("%s there are in etcd:\n%s", when, strings.Join(keys, "\n"))
		}
	}
	nothing("when the namespace is gone")
	for _, r := range replicas {
		gone := len(r.requests.after(0))
		framework.WaitFor(t, "a replica to renew its Lease in vain, and again", func() bool {
			return count(r.requests.after(gone), func(sent request) bool {
				return strings.Contains(sent.path, "/leases/") && sent.code >= 400
			}) >= 2
		})
		if n := len(r.requests.after(gone)); n > mostRequests {
			t.Errorf("a replica sent %d requests since its namespace is gone, want at most %d", n, mostRequests)
		}
	}
	for _, r := range replicas {
		if err := r.finish(t); err != nil {
			t.Errorf("Start of a replica that was told to end: %v", err)
		}
		// Its identity is gone, so it cannot know that its report is.
		t.Logf("Close without a namespace: %v", r.Close(t.Context()))
	}
	nothing("when the replicas have ended")
	w.untouched(t, o.resource, kept)
}

// serviceAccountDeleted: what the library made for an operator that has crashed goes
// with its service account, although the namespace stays.
func (w *world) serviceAccountDeleted(t *testing.T) {
	o := w.install(t, "owned")
	owned := func(c *operator.Config) { c.OwnedByServiceAccount = true }
	replicas := []*replica{o.start(t, "a", owned), o.start(t, "b", owned)}
	o.waitForState(t, v1alpha1.StateOff, 2, colors, borrowed)
	account, err := w.Kube.CoreV1().ServiceAccounts(o.namespace).Get(t.Context(), o.name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	framework.WaitFor(t, "the values to be published", func() bool {
		values, err := w.Features.FeaturesV1alpha1().FeatureValues(o.namespace).List(t.Context(), metav1.ListOptions{})
		return err == nil && len(values.Items) == 2
	})
	for _, r := range replicas {
		if err := r.crash(t); err != nil {
			t.Errorf("Start of a replica that was told to end: %v", err)
		}
	}

	// A crashed replica removes nothing.
	want := map[string][]metav1.OwnerReference{}
	for _, name := range []string{
		"features/" + colors, "features/" + borrowed, "featurevalues/" + colors, "featurevalues/" + borrowed,
		"featurereports/" + o.component + ".a", "featurereports/" + o.component + ".b", "leases/" + o.component + ".a", "leases/" + o.component + ".b",
	} {
		want[name] = []metav1.OwnerReference{{APIVersion: "v1", Kind: "ServiceAccount", Name: account.Name, UID: account.UID}}
	}
	if diff := cmp.Diff(want, w.owners(t, o.namespace)); diff != "" {
		t.Errorf("unexpected owners of what the operator has made (-want +got):\n%s", diff)
	}
	w.remove(t, o.identity)
	w.waitForNone(t, o.namespace)
	namespace, err := w.Kube.CoreV1().Namespaces().Get(t.Context(), o.namespace, metav1.GetOptions{})
	if err != nil || namespace.Status.Phase != corev1.NamespaceActive {
		t.Errorf("the namespace is %+v, %v; want it to stay", namespace, err)
	}
}

// orderlyEnd: replicas that end in order take their reports and Leases with them. The
// Features and their values stay, with what is known of them.
func (w *world) orderlyEnd(t *testing.T) {
	o := w.install(t, "orderly")
	replicas := []*replica{o.start(t, "a", nil), o.start(t, "b", nil)}
	o.waitForState(t, v1alpha1.StateOff, 2, colors, borrowed)
	framework.WaitFor(t, "the values to be published", func() bool {
		values, err := w.Features.FeaturesV1alpha1().FeatureValues(o.namespace).List(t.Context(), metav1.ListOptions{})
		return err == nil && len(values.Items) == 2
	})
	for _, r := range replicas {
		r.end(t)
	}
	left := slices.Sorted(maps.Keys(w.owners(t, o.namespace)))
	if diff := cmp.Diff([]string{"features/" + colors, "features/" + borrowed, "featurevalues/" + colors, "featurevalues/" + borrowed}, left); diff != "" {
		t.Errorf("unexpected objects after the end (-want +got):\n%s", diff)
	}
}

// withoutOwner checks that only a service account of the namespace can own what is made
// there. For others Start says so, and makes nothing.
func (w *world) withoutOwner(t *testing.T) {
	o, stranger := w.install(t, "misplaced"), w.identity(t, "elsewhere", "stranger")
	// The stranger may do all that a replica does: the server has to take reports before
	// the owner of these is queried.
	bindings := w.Kube.RbacV1().RoleBindings(o.namespace)
	binding, err := bindings.Get(t.Context(), o.name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	binding.Subjects = append(binding.Subjects, rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: stranger.namespace, Name: stranger.name})
	if _, err := bindings.Update(t.Context(), binding, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	w.WaitForPermission(t, stranger.grantee(), o.namespace, rbacv1.PolicyRule{APIGroups: []string{v1alpha1.GroupName}, Resources: []string{"featurereports"}, Verbs: []string{"get"}})
	for name, test := range map[string]struct {
		client func(*operator.Config)
		says   string
	}{
		"an administrator":                       {func(c *operator.Config) { c.Client = w.Config }, "the operator runs as kubernetes-admin"},
		"a service account of another namespace": {func(c *operator.Config) { c.Client = stranger.config }, "the operator runs as " + stranger.user()},
	} {
		t.Run(name, func(t *testing.T) {
			r := o.start(t, "a", func(c *operator.Config) {
				test.client(c)
				c.OwnedByServiceAccount = true
			})
			// It ends by itself.
			err := r.wait(t)
			for _, says := range []string{test.says, "no service account of the operator's namespace " + o.namespace, "or leave OwnedByServiceAccount out"} {
				if err == nil || !strings.Contains(err.Error(), says) {
					t.Errorf("Start: %v, want an error that says %q", err, says)
				}
			}
			if made := w.owners(t, o.namespace); len(made) > 0 {
				t.Errorf("it has made %v", made)
			}
		})
	}
}

// anotherServiceAccount: replicas of an operator crashed, and those that take their place
// run as another service account. One has the name of a replica that crashed. Without
// manual steps, the report of that name is taken over, and the server flow deletes the
// other one.
func (w *world) anotherServiceAccount(t *testing.T) {
	o := w.install(t, "renamed")
	earlier := w.identity(t, o.namespace, "earlier")
	w.permit(t, earlier, operator.Rules(o.component), nil)
	for instance, annotations := range map[string]map[string]string{
		"a": nil,
		// The report of a process that ended without notice is kept for an hour.
		"ended": {v1alpha1.AnnotationTerminating: "true"},
	} {
		report := newReport(o.namespace, o.component)
		report.Name, report.Spec.Instance, report.Annotations = o.component+"."+instance, instance, annotations
		report.Spec.Liveness.Lease.Name = report.Name
		if _, err := reports(earlier.features, o.namespace).Create(t.Context(), report, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	a := o.start(t, "a", nil)
	// By users of reports, as the server knows them.
	left := func() map[string]string {
		list, err := reports(w.Features, o.namespace).List(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		by := map[string]string{}
		for _, report := range list.Items {
			by[report.Spec.Instance] = report.Spec.Username
		}
		return by
	}
	want := map[string]string{"a": o.user()}
	framework.Eventually(t, "the reports of the earlier service account to go", func() error {
		if is := left(); !maps.Equal(is, want) {
			return fmt.Errorf("there are %v, want %v", is, want)
		}
		return nil
	})
	o.waitForState(t, v1alpha1.StateOff, 1, colors, borrowed)
	if n := a.said("who created the report, may change it"); n != 1 {
		t.Errorf("the replica said %d times that the report was another user's, want once", n)
	}
	a.end(t)
	if diff := cmp.Diff(map[string]string{}, left()); diff != "" {
		t.Errorf("reports are left (-want +got):\n%s", diff)
	}
}
