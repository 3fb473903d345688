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

package controller

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/feature-lifecycle/client/clientset/versioned"
	clients "k8s.io/feature-lifecycle/client/clientset/versioned/typed/features/v1alpha1"
)

// kind is one of the resources that servers watch.
type kind int

const (
	featureKind kind = iota
	reportKind
	leaseKind
	nodeKind
	valueKind
	kinds
)

func (k kind) String() string {
	return [...]string{"features", "reports", "leases", "nodes", "values"}[k]
}

// change is one entry of etcd's log: what an object became, and when.
type change struct {
	at     time.Duration
	key    string
	object metav1.Object
	gone   bool
}

// etcd is the storage of the model: objects with versions, and everything that
// ever happened to them, in order. Objects in it are not changed.
type etcd struct {
	version int
	log     [kinds][]change
	objects [kinds]map[string]metav1.Object
}

func newEtcd() *etcd {
	e := &etcd{}
	for k := range e.objects {
		e.objects[k] = map[string]metav1.Object{}
	}
	return e
}

func keyOf(object metav1.Object) string {
	if object.GetNamespace() == "" {
		return object.GetName()
	}
	return object.GetNamespace() + "/" + object.GetName()
}

// put stores an object, which belongs to etcd from then on.
func (e *etcd) put(k kind, object metav1.Object, now time.Duration) {
	e.version++
	key := keyOf(object)
	object.SetResourceVersion(strconv.Itoa(e.version))
	if old := e.objects[k][key]; old != nil {
		object.SetUID(old.GetUID())
	} else {
		object.SetUID(types.UID(fmt.Sprintf("uid-%d", e.version)))
	}
	e.objects[k][key] = object
	e.log[k] = append(e.log[k], change{at: now, key: key, object: object})
}

func (e *etcd) remove(k kind, key string, now time.Duration) {
	if old := e.objects[k][key]; old != nil {
		e.version++
		delete(e.objects[k], key)
		e.log[k] = append(e.log[k], change{at: now, key: key, object: old, gone: true})
	}
}

// at is the state after so many changes, by key.
func (e *etcd) at(k kind, changes int) map[string]metav1.Object {
	if changes == len(e.log[k]) {
		return maps.Clone(e.objects[k])
	}
	state := map[string]metav1.Object{}
	for _, c := range e.log[k][:changes] {
		if c.gone {
			delete(state, c.key)
		} else {
			state[c.key] = c.object
		}
	}
	return state
}

func (e *etcd) feature(name string) *v1alpha1.Feature {
	f, _ := e.objects[featureKind]["ns/"+name].(*v1alpha1.Feature)
	return f
}

func (e *etcd) value(name string) *v1alpha1.FeatureValue {
	v, _ := e.objects[valueKind]["ns/"+name].(*v1alpha1.FeatureValue)
	return v
}

func (e *etcd) report(name string) *v1alpha1.FeatureReport {
	r, _ := e.objects[reportKind]["ns/"+name].(*v1alpha1.FeatureReport)
	return r
}

// fate is what becomes of a write.
type fate int

const (
	arrives fate = iota
	// lost: it does not arrive, and the server lives on.
	lost
	// unanswered: it is stored, and the server does not hear of it.
	unanswered
	// crashBefore and crashAfter: the server ends before it arrives, or after
	// it was stored.
	crashBefore
	crashAfter
	fates
)

var errConnection = errors.New("connection reset")

// write lets a server write: store is called unless the write is lost.
func (r *replica) write(verb string, object any, store func() error) error {
	if r.gone() {
		return errConnection
	}
	f := arrives
	if r.fateIn > 0 {
		if r.fateIn--; r.fateIn == 0 {
			f = r.fate
		}
	}
	if f == lost || f == crashBefore {
		r.c.tracef("%s: %s %v is lost", r.id, verb, object)
		r.c.failedWrite = r.c.now
		r.crashed = r.crashed || f == crashBefore
		return errConnection
	}
	err := store()
	r.c.tracef("%s: %s %v: %v", r.id, verb, object, err)
	if err != nil || f != arrives {
		r.c.failedWrite = r.c.now
	}
	if f == crashAfter {
		r.crashed = true
	}
	if f == unanswered || f == crashAfter {
		return errConnection
	}
	return err
}

// api is the API as one server reaches it. Whatever the controller does not use
// is left out.
type api struct {
	versioned.Interface
	clients.FeaturesV1alpha1Interface
	*replica
}

func (a *api) FeaturesV1alpha1() clients.FeaturesV1alpha1Interface { return a }

func (a *api) Features(string) clients.FeatureInterface { return &featuresAPI{replica: a.replica} }

func (a *api) FeatureReports(string) clients.FeatureReportInterface {
	return &reportsAPI{replica: a.replica}
}

func (a *api) FeatureValues(string) clients.FeatureValueInterface {
	return &valuesAPI{replica: a.replica}
}

type featuresAPI struct {
	clients.FeatureInterface
	*replica
}

func (a *featuresAPI) Create(_ context.Context, feature *v1alpha1.Feature, _ metav1.CreateOptions) (*v1alpha1.Feature, error) {
	created := &v1alpha1.Feature{ObjectMeta: metav1.ObjectMeta{Namespace: feature.Namespace, Name: feature.Name}}
	err := a.write("create", feature.Name, func() error {
		if a.c.etcd.feature(feature.Name) != nil {
			return apierrors.NewAlreadyExists(v1alpha1.Resource("features"), feature.Name)
		}
		a.c.etcd.put(featureKind, created, a.c.now)
		a.c.statusWrites++
		return nil
	})
	return created, err
}

func (a *featuresAPI) UpdateStatus(_ context.Context, feature *v1alpha1.Feature, _ metav1.UpdateOptions) (*v1alpha1.Feature, error) {
	var updated *v1alpha1.Feature
	err := a.write("status", described{feature}, func() error {
		before := a.c.etcd.feature(feature.Name)
		if before == nil {
			return apierrors.NewNotFound(v1alpha1.Resource("features"), feature.Name)
		}
		if before.ResourceVersion != feature.ResourceVersion {
			return apierrors.NewConflict(v1alpha1.Resource("features"), feature.Name, errors.New("changed"))
		}
		// What is stored is not changed, and the controller is done with what it
		// sends.
		stored := *before
		stored.Status = feature.Status
		updated = &stored
		a.c.admit(a.replica, before, updated)
		a.c.etcd.put(featureKind, updated, a.c.now)
		a.c.statusWrites++
		return nil
	})
	return updated, err
}

func (a *featuresAPI) Get(_ context.Context, name string, _ metav1.GetOptions) (*v1alpha1.Feature, error) {
	if a.gone() {
		return nil, errConnection
	}
	if f := a.c.etcd.feature(name); f != nil {
		return f, nil
	}
	return nil, apierrors.NewNotFound(v1alpha1.Resource("features"), name)
}

func (a *featuresAPI) Delete(_ context.Context, name string, _ metav1.DeleteOptions) error {
	a.c.violate("feature %s is deleted although servers know it", name)
	return nil
}

// valuesAPI writes what processes follow.
type valuesAPI struct {
	clients.FeatureValueInterface
	*replica
}

func (a *valuesAPI) Create(_ context.Context, value *v1alpha1.FeatureValue, _ metav1.CreateOptions) (*v1alpha1.FeatureValue, error) {
	created := value.DeepCopy()
	err := a.write("create value", value.Name, func() error {
		if a.c.etcd.value(value.Name) != nil {
			return apierrors.NewAlreadyExists(v1alpha1.Resource("featurevalues"), value.Name)
		}
		a.c.storeValue(a.replica, nil, created)
		return nil
	})
	return created, err
}

func (a *valuesAPI) Update(_ context.Context, value *v1alpha1.FeatureValue, _ metav1.UpdateOptions) (*v1alpha1.FeatureValue, error) {
	updated := value.DeepCopy()
	err := a.write("update value", value.Name, func() error {
		before := a.c.etcd.value(value.Name)
		if before == nil {
			return apierrors.NewNotFound(v1alpha1.Resource("featurevalues"), value.Name)
		}
		if before.ResourceVersion != value.ResourceVersion {
			return apierrors.NewConflict(v1alpha1.Resource("featurevalues"), value.Name, errors.New("changed"))
		}
		a.c.storeValue(a.replica, before, updated)
		return nil
	})
	return updated, err
}

func (a *valuesAPI) Delete(_ context.Context, name string, _ metav1.DeleteOptions) error {
	a.c.violate("the value of %s is deleted although its Feature specifies one", name)
	return nil
}

type reportsAPI struct {
	clients.FeatureReportInterface
	*replica
}

func (a *reportsAPI) Delete(_ context.Context, name string, options metav1.DeleteOptions) error {
	return a.write("delete report", name, func() error {
		return a.c.retireObject(reportKind, "ns/"+name, options)
	})
}

// leasesAPI reads and deletes Leases, which the controller does with a dynamic client.
type leasesAPI struct {
	dynamic.Interface
	dynamic.NamespaceableResourceInterface
	*replica
	namespace string
}

func (a *leasesAPI) Resource(schema.GroupVersionResource) dynamic.NamespaceableResourceInterface {
	return a
}

func (a *leasesAPI) Namespace(namespace string) dynamic.ResourceInterface {
	return &leasesAPI{replica: a.replica, namespace: namespace}
}

func (a *leasesAPI) Delete(_ context.Context, name string, options metav1.DeleteOptions, _ ...string) error {
	return a.write("delete lease", name, func() error {
		return a.c.retireObject(leaseKind, a.namespace+"/"+name, options)
	})
}

func (a *leasesAPI) Get(_ context.Context, name string, _ metav1.GetOptions, _ ...string) (*unstructured.Unstructured, error) {
	if a.gone() {
		return nil, errConnection
	}
	lease := a.c.etcd.objects[leaseKind][a.namespace+"/"+name]
	if lease == nil {
		return nil, apierrors.NewNotFound(leases.GroupResource(), name)
	}
	object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(lease)
	return &unstructured.Unstructured{Object: object}, err
}

// retireObject deletes what a process left behind. S5: never what one that lives has
// written, and never what has changed since it was read.
func (c *cluster) retireObject(k kind, key string, options metav1.DeleteOptions) error {
	object := c.etcd.objects[k][key]
	if object == nil {
		return apierrors.NewNotFound(v1alpha1.Resource(k.String()), key)
	}
	p := options.Preconditions
	if p == nil || p.UID == nil || p.ResourceVersion == nil {
		c.violate("S5: %s %s is deleted whatever it is", k, key)
		return nil
	}
	if *p.UID != object.GetUID() || *p.ResourceVersion != object.GetResourceVersion() {
		return apierrors.NewConflict(v1alpha1.Resource(k.String()), key, errors.New("changed"))
	}
	for _, owner := range c.processes() {
		if owner.reportName() == object.GetName() && owner.lives() {
			c.violate("S5: %s %s is deleted although its process lives", k, key)
		}
		if owner.reportName() == object.GetName() && k == reportKind {
			// What it comes back with counts from when it has reported again.
			c.remember(owner)
			owner.stored = nil
		}
	}
	c.etcd.remove(k, key, c.now)
	return nil
}

// described shows what matters of a Feature, when it is shown.
type described struct{ *v1alpha1.Feature }

func (f described) String() string {
	text := f.Name + " " + string(f.Status.State)
	for _, t := range f.Status.Tasks {
		text += fmt.Sprintf(" %s/%d", t.Name, t.Attempts)
	}
	return text
}

func (c *cluster) processes() []*process {
	all := make([]*process, 0, len(c.servers)+len(c.users))
	for _, s := range c.servers {
		all = append(all, &s.process)
	}
	return append(slices.Clip(all), c.users...)
}
