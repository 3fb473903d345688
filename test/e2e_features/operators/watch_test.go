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
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	clientv3 "go.etcd.io/etcd/client/v3"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/feature-lifecycle/watchtools"
	"k8s.io/kubernetes-features/test/e2e_features/framework"
)

// users is how many live processes of a component found a value.
func users(f *v1alpha1.Feature, component string, enabled bool) int {
	n := 0
	for _, use := range f.Status.Uses {
		if use.Component == component && use.Enabled != nil && *use.Enabled == enabled {
			n += int(use.Count)
		}
	}
	return n
}

// waitForState waits until the features of an operator are in a state that so many
// replicas have found.
func (o *thirdParty) waitForState(t *testing.T, state v1alpha1.FeatureState, replicas int, features ...string) {
	t.Helper()
	for _, feature := range features {
		o.w.WaitForFeatureIn(t, o.namespace, feature, fmt.Sprintf("%s in %d replicas", state, replicas), func(f *v1alpha1.Feature) bool {
			return f.Status.State == state && users(f, o.component, state == v1alpha1.StateOn) == replicas
		})
	}
}

// ownKind is a kind of object that the library makes for an operator.
type ownKind struct {
	resource string
	object   runtime.Object
	client   func(*world) rest.Interface
}

// ownKinds are all of them, but for events, which go by themselves after an hour.
var ownKinds = []ownKind{
	{"features", &v1alpha1.Feature{}, func(w *world) rest.Interface { return w.Features.FeaturesV1alpha1().RESTClient() }},
	{"featurereports", &v1alpha1.FeatureReport{}, func(w *world) rest.Interface { return w.Features.FeaturesV1alpha1().RESTClient() }},
	{"featurevalues", &v1alpha1.FeatureValue{}, func(w *world) rest.Interface { return w.Features.FeaturesV1alpha1().RESTClient() }},
	{"leases", &coordinationv1.Lease{}, func(w *world) rest.Interface { return w.Kube.CoordinationV1().RESTClient() }},
}

// owners are those of everything that the library has made in a namespace, by
// "<resource>/<name>".
func (w *world) owners(t *testing.T, namespace string) map[string][]metav1.OwnerReference {
	t.Helper()
	found := map[string][]metav1.OwnerReference{}
	features, err := w.Features.FeaturesV1alpha1().Features(namespace).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, object := range features.Items {
		found["features/"+object.Name] = object.OwnerReferences
	}
	reports, err := w.Features.FeaturesV1alpha1().FeatureReports(namespace).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, object := range reports.Items {
		found["featurereports/"+object.Name] = object.OwnerReferences
	}
	values, err := w.Features.FeaturesV1alpha1().FeatureValues(namespace).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, object := range values.Items {
		found["featurevalues/"+object.Name] = object.OwnerReferences
	}
	leases, err := w.Kube.CoordinationV1().Leases(namespace).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, object := range leases.Items {
		found["leases/"+object.Name] = object.OwnerReferences
	}
	return found
}

// waitForNone watches what the library has made in a namespace until it is gone.
func (w *world) waitForNone(t *testing.T, namespace string) {
	t.Helper()
	for _, kind := range ownKinds {
		waitForNone(t, kind.resource+" in "+namespace, cache.NewListWatchFromClient(kind.client(w), kind.resource, namespace, fields.Everything()), kind.object)
	}
}

// waitForNamespaceGone watches a namespace until it is gone.
func (w *world) waitForNamespaceGone(t *testing.T, name string) {
	t.Helper()
	source := cache.NewListWatchFromClient(w.Kube.CoreV1().RESTClient(), "namespaces", metav1.NamespaceAll, fields.OneTermEqualSelector(metav1.ObjectNameField, name))
	waitForNone(t, "namespace "+name, source, &corev1.Namespace{})
}

// waitForNone watches objects until there is none.
func waitForNone(t *testing.T, what string, source cache.ListerWatcher, object runtime.Object) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), framework.Patience)
	defer cancel()
	there := map[string]runtime.Object{}
	err := watchtools.UntilWithSync(ctx, source, object, func() (bool, error) { return true, nil }, func(event watch.Event) (bool, error) {
		name, err := cache.MetaNamespaceKeyFunc(event.Object)
		there[name] = event.Object
		if event.Type == watch.Deleted {
			delete(there, name)
		}
		return len(there) == 0, err
	})
	if err != nil {
		t.Fatalf("waiting for the end of %s: %v; there are %+v", what, err, there)
	}
}

// settled returns the part of a feature that stays the same without a transition. Uses
// and leftovers may still change.
type settled struct {
	Spec       v1alpha1.FeatureSpec
	Control    v1alpha1.FeatureControl
	State      v1alpha1.FeatureState
	Configured *v1alpha1.FeatureConfiguration
	Transition *v1alpha1.FeatureTransition
}

// quiet follows the Features of a namespace to which nothing is to happen. It is safe
// for concurrent use.
type quiet struct {
	namespace string
	etcd      *clientv3.Client

	mu sync.Mutex
	// first is what they were when they first had a state.
	first    map[string]settled
	revision int64
	problems []string
}

// follow follows every version that is stored of the Features of a namespace, from the
// first one to the end of the test.
func follow(t *testing.T, etcd *clientv3.Client, namespace string) *quiet {
	q := &quiet{namespace: namespace, etcd: etcd, first: map[string]settled{}}
	framework.FollowFeatures(t, etcd, featuresKey(namespace), q.add)
	return q
}

func (q *quiet) add(stored []framework.StoredFeature, err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if err != nil {
		q.problems = append(q.problems, err.Error())
	}
	for _, f := range stored {
		q.revision = max(q.revision, f.Revision)
		is := settled{f.Spec, f.Status.Control, f.Status.State, f.Status.Configured, f.Status.Transition}
		was, known := q.first[f.Name]
		switch {
		case !known && is.State != "":
			q.first[f.Name] = is
		case known:
			if diff := cmp.Diff(was, is); diff != "" {
				q.problems = append(q.problems, fmt.Sprintf("%s (-was +became):\n%s", f.Name, diff))
			}
		}
	}
}

// unchanged is an error if something has happened to a Feature until now. It returns
// how many were followed.
func (q *quiet) unchanged(t *testing.T) int {
	t.Helper()
	newest := int64(0)
	for _, revision := range framework.KeysBelow(t, q.etcd, featuresKey(q.namespace)) {
		newest = max(newest, revision)
	}
	framework.WaitFor(t, "everything that was stored to be seen", func() bool {
		q.mu.Lock()
		defer q.mu.Unlock()
		return q.revision >= newest
	})
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, problem := range q.problems {
		t.Errorf("something happened to a Feature in %s: %s", q.namespace, problem)
	}
	return len(q.first)
}
