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

package gates

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/feature-lifecycle/lifecycletest"
	"k8s.io/kubernetes-features/pkg/featurelifecycle/catalog"
	"k8s.io/kubernetes-features/test/e2e_features/framework"
)

// volatile begins the keys of what changes while nothing happens: what is about
// processes that were started again, or expires by itself.
var volatile = []string{
	registry + "events/", registry + "leases/", registry + "masterleases/", registry + "minions/",
	registry + "peerserverleases/", registry + "ranges/", registry + "features/", registry + "featurereports/", registry + "featurevalues/",
	registry + "serviceips/", registry + "services/endpoints/", registry + "services/specs/default/kubernetes",
}

// begin creates the control objects in a cluster that has never had the features
// on, waits until controllers have done with them, and returns what is stored
// then.
func (w *world) begin(t *testing.T) (control *lifecycletest.Case) {
	t.Helper()
	w.waitForAccounts(t)
	control = controlCase(t)
	if err := w.Use(t.Context(), control); err != nil {
		t.Fatal(err)
	}
	w.waitForCopies(t, control)
	last, quiet := int64(0), 0
	_ = wait.PollUntilContextTimeout(t.Context(), controllersPeriod, controllersPatience, true, func(context.Context) (bool, error) {
		newest := int64(0)
		for _, object := range control.Own(w.stored(t)).Objects {
			newest = max(newest, object.Revision)
		}
		if quiet++; newest != last {
			last, quiet = newest, 0
		}
		return quiet == quietPeriods, nil
	})
	return control
}

// waitForAccounts waits until Pods can be created.
func (w *world) waitForAccounts(t *testing.T) {
	t.Helper()
	w.waitForAccount(t, metav1.NamespaceDefault, "default")
}

// waitForControllers waits until the controllers run that entries name: after a
// restart, the manager starts them one after the other.
func (w *world) waitForControllers(t *testing.T, entries []catalog.Entry) {
	t.Helper()
	for _, entry := range entries {
		if entry.Controller != "" {
			w.waitForAccount(t, metav1.NamespaceSystem, entry.Controller)
		}
	}
}

// waitForAccount waits until a ServiceAccount is there. Any error is waited out:
// the server may have trouble while it starts.
func (w *world) waitForAccount(t *testing.T, namespace, name string) {
	t.Helper()
	framework.WaitFor(t, "ServiceAccount "+namespace+"/"+name, func() bool {
		_, err := w.Kube.CoreV1().ServiceAccounts(namespace).Get(t.Context(), name, metav1.GetOptions{})
		return err == nil
	})
}

// quietPeriods is for how many looks in a row nothing is written.
const quietPeriods = 6

// pristine says in what etcd differs from that of a cluster that has never had
// the features on. It does not depend on tasks, so undeclared leftovers show,
// too. What fixtures made does not count, and neither do rules of bootstrap roles
// and controllers' accounts of which an entry says that they stay.
func pristine(never, after moment, entries []catalog.Entry, all []*lifecycletest.Case) []string {
	expected := expectedOf(after, entries, all)
	var problems []string
	was, is := byKey(never), byKey(after)
	for _, key := range after.keys {
		if !slices.Contains(never.keys, key) && !expected.left(key, is[key]) {
			problems = append(problems, key+" is left, which was not there before the features were on; add a task for it, or what stays to the entry in pkg/featurelifecycle/catalog")
		}
	}
	for _, key := range never.keys {
		before, decodes := was[key]
		now, ok := is[key]
		switch {
		case changes(key) || (!decodes && slices.Contains(after.keys, key)):
		case !ok:
			problems = append(problems, key+" is gone, which was there before the features were on")
		case expected.bootstrapRBAC && isBootstrapRBAC(before):
		default:
			if diff := lifecycletest.Changed(steady(before), steady(now), nil); diff != "" {
				problems = append(problems, fmt.Sprintf("%s is not what it was before the features were on (-never on +after):\n%s", key, diff))
			}
		}
	}
	for account := range expected.accounts {
		if !slices.Contains(after.keys, account) || slices.Contains(never.keys, account) {
			problems = append(problems, account+" is there without the feature, too, or does not stay; remove Controller from the entry in pkg/featurelifecycle/catalog that names it")
		}
	}
	return problems
}

// changes is true for what changes while nothing happens.
func changes(key string) bool {
	return slices.ContainsFunc(volatile, func(prefix string) bool { return strings.HasPrefix(key, prefix) })
}

// expected is what may be left.
type expected struct {
	// made are the objects of fixtures, and what controllers made for them.
	made map[types.UID]bool
	// services begin the keys of APIServices of definitions that fixtures made.
	services []string
	// namespaces are those that fixtures made; controllers put into each what filled has.
	namespaces []string
	// accounts are the keys of ServiceAccounts of controllers.
	accounts      map[string]bool
	bootstrapRBAC bool
}

// filled are the names of the objects that controllers make in every namespace, by resource.
var filled = map[schema.GroupResource]string{
	{Resource: "serviceaccounts"}: "default",
	{Resource: "configmaps"}:      "kube-root-ca.crt",
}

func expectedOf(after moment, entries []catalog.Entry, all []*lifecycletest.Case) expected {
	e := expected{made: map[types.UID]bool{}, accounts: map[string]bool{}}
	for _, c := range all {
		for _, object := range c.Own(after.View).Objects {
			e.made[object.GetUID()] = true
			if object.GetKind() == "Namespace" {
				e.namespaces = append(e.namespaces, object.GetName())
			}
			if group, _, _ := unstructured.NestedString(object.Object, "spec", "group"); object.Resource.Resource == "customresourcedefinitions" {
				e.services = append(e.services, "."+group)
			}
		}
	}
	for _, entry := range entries {
		e.bootstrapRBAC = e.bootstrapRBAC || entry.BootstrapRBAC
		if entry.Controller != "" {
			e.accounts[registry+"serviceaccounts/"+metav1.NamespaceSystem+"/"+entry.Controller] = true
		}
	}
	return e
}

func (e expected) left(key string, object lifecycletest.Object) bool {
	switch {
	case changes(key) || e.accounts[key]:
		return true
	case strings.HasPrefix(key, registry+"apiregistration.k8s.io/apiservices/"):
		return slices.ContainsFunc(e.services, func(group string) bool { return strings.HasSuffix(key, group) })
	case object.Unstructured == nil:
		return false
	default:
		fills := slices.Contains(e.namespaces, object.GetNamespace()) && filled[object.Resource] == object.GetName()
		return e.made[object.GetUID()] || fills || e.bootstrapRBAC && isBootstrapRBAC(object)
	}
}

func isBootstrapRBAC(object lifecycletest.Object) bool {
	return object.Resource.Group == rbacv1.GroupName && object.GetLabels()["kubernetes.io/bootstrapping"] != ""
}

func byKey(m moment) map[string]lifecycletest.Object {
	objects := map[string]lifecycletest.Object{}
	for _, object := range m.Objects {
		objects[object.Key] = object
	}
	return objects
}

// TestLeftInNamespaces: of what is in a fixture's namespace, only the fixture's objects and
// those that every namespace has may be left.
func TestLeftInNamespaces(t *testing.T) {
	e := expected{namespaces: []string{"fixture"}, made: map[types.UID]bool{"made": true}}
	for name, test := range map[string]struct {
		resource, namespace, name, uid string
		want                           bool
	}{
		"its ServiceAccount":             {resource: "serviceaccounts", namespace: "fixture", name: "default", want: true},
		"its ConfigMap":                  {resource: "configmaps", namespace: "fixture", name: "kube-root-ca.crt", want: true},
		"an object of the fixture":       {resource: "resourceclaims.resource.k8s.io", namespace: "fixture", name: "a", uid: "made", want: true},
		"another ServiceAccount":         {resource: "serviceaccounts", namespace: "fixture", name: "a"},
		"another resource":               {resource: "secrets", namespace: "fixture", name: "default"},
		"another group":                  {resource: "configmaps.example.com", namespace: "fixture", name: "kube-root-ca.crt"},
		"a namespace that was there":     {resource: "serviceaccounts", namespace: "default", name: "default"},
		"a resource without a namespace": {resource: "nodes", name: "default"},
	} {
		object := lifecycletest.Object{Resource: schema.ParseGroupResource(test.resource), Unstructured: &unstructured.Unstructured{Object: map[string]any{
			"metadata": map[string]any{"namespace": test.namespace, "name": test.name, "uid": test.uid},
		}}}
		if got := e.left(registry+test.resource+"/"+test.namespace+"/"+test.name, object); got != test.want {
			t.Errorf("%s: may be left is %t, want %t", name, got, test.want)
		}
	}
}
