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

package lifecycletest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/feature-lifecycle/lifecycle/task"
)

const (
	// gonePatience is the time that an object may take to go after its deletion.
	gonePatience = time.Minute
	// unusePatience bounds the end of a cycle.
	unusePatience = 5 * time.Minute
)

// Cycle takes a case through on, used, off and pristine. Set gives the feature a
// value: it restarts the operator with the gate, or asks for the value (Ask). The
// resources are those whose objects are looked at; without any they are those that
// the tasks of the feature read. A fixture may have objects that do not use the
// feature, too: they have to stay as they are. Where a fixture has objects, those that
// are there before the cycle, and stay as they are, prove nothing, unless the feature is on
// already: only what came with it counts as use.
//
// Problems are sentences for the author of the feature: what the fixture lacks,
// what went wrong on the way, what is left in the end, and what else changed in the
// fixture's objects, and in those that controllers made for them. A status counts
// only where a task touches one: operators write theirs at any time.
//
// The error is what kept the cycle from its end; problems may explain it. Cycle
// ends when the context does. In any case the fixture's objects are deleted then,
// so that a cycle can be repeated; after an error the feature may still be on. Cases
// that take their cycles at the same time must not share resources.
func (k *Kit) Cycle(ctx context.Context, c *Case, set func(ctx context.Context, enabled bool) error, resources ...schema.GroupVersionResource) (problems []string, err error) {
	// Whatever is there before proves nothing of the fixture.
	strangers, err := k.alreadyThere(ctx, c, resources)
	if err != nil {
		return nil, err
	}
	if err := set(ctx, true); err != nil {
		return nil, fmt.Errorf("turning %s on: %w", c.Feature.Name, err)
	}
	if err := k.WaitFor(ctx, v1alpha1.StateOn, nil, c); err != nil {
		return nil, err
	}
	defer func() {
		ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), unusePatience)
		defer cancel()
		err = errors.Join(err, k.Unuse(ending, c))
	}()
	if err := k.Use(ctx, c); err != nil {
		return nil, err
	}
	if k.Settle != nil {
		if err := k.Settle(ctx, c); err != nil {
			return nil, fmt.Errorf("waiting until controllers are done with the objects of %s: %w", c.Fixture, err)
		}
	}
	if len(resources) == 0 {
		if resources, err = k.readBy(ctx, c); err != nil {
			return nil, err
		}
	}
	before, err := k.View(ctx, resources...)
	if err != nil {
		return nil, err
	}
	problems = c.Used(ctx, before.only(func(object *unstructured.Unstructured) bool {
		// A controller may have written the field into one that was there.
		version, there := strangers[object.GetUID()]
		return !there || version != object.GetResourceVersion()
	}))

	if err := set(ctx, false); err != nil {
		return problems, fmt.Errorf("turning %s off: %w", c.Feature.Name, err)
	}
	r, err := k.untilOff(ctx, before, c)
	problems = append(problems, r.outcomes[string(c.Feature.Name)].Problems...)
	if err != nil {
		return problems, err
	}
	after, err := k.stillServed(ctx, resources)
	if err != nil {
		return problems, err
	}
	_, left := c.Left(ctx, after)
	return slices.Concat(problems, left, c.changedElsewhere(ctx, before, after, r.removed)), nil
}

// alreadyThere returns the versions of the objects of resources, or of those that the tasks of
// a feature read, before it is turned on. What a server does not have yet has none. There
// are none either without a fixture, or with the feature on already: what turning the
// feature on installs may be there since an earlier cycle.
func (k *Kit) alreadyThere(ctx context.Context, c *Case, resources []schema.GroupVersionResource) (map[types.UID]string, error) {
	feature, err := k.Features.FeaturesV1alpha1().Features(k.Namespace).Get(ctx, string(c.Feature.Name), metav1.GetOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("looking whether %s is on before its cycle: %w", c.Feature.Name, err)
	}
	if len(c.Objects) == 0 || err == nil && feature.Status.State == v1alpha1.StateOn {
		return nil, nil
	}
	if len(resources) == 0 {
		reads := &noting{Interface: k.Dynamic}
		for _, t := range c.Feature.OnDisable {
			// What cannot be read yet is asked for again once the feature is on.
			_, _ = t.Find(ctx, task.Clients{Dynamic: reads, Mapper: k.Mapper, Flow: k.Namespace})
		}
		// One version has all objects.
		seen := map[schema.GroupResource]bool{}
		for _, resource := range reads.resources {
			if !seen[resource.GroupResource()] {
				resources = append(resources, resource)
			}
			seen[resource.GroupResource()] = true
		}
	}
	view, err := k.stillServed(ctx, resources)
	if err != nil {
		return nil, err
	}
	there := map[types.UID]string{}
	for _, object := range view.Objects {
		there[object.GetUID()] = object.GetResourceVersion()
	}
	return there, nil
}

// readBy returns the resources that the tasks of a feature read, in the versions in
// which they do.
func (k *Kit) readBy(ctx context.Context, c *Case) ([]schema.GroupVersionResource, error) {
	reads := &noting{Interface: k.Dynamic}
	for _, t := range c.Feature.OnDisable {
		if _, err := t.Find(ctx, task.Clients{Dynamic: reads, Mapper: k.Mapper, Flow: k.Namespace}); err != nil {
			return nil, fmt.Errorf("finding out what task %s of %s reads: %w", t.Name, c.Feature.Name, err)
		}
	}
	versions := map[schema.GroupResource]string{}
	for _, resource := range reads.resources {
		if other, ok := versions[resource.GroupResource()]; ok {
			return nil, fmt.Errorf("the tasks of %s read %s in the versions %s and %s; objects are compared in one, so name it to Cycle",
				c.Feature.Name, resource.GroupResource(), other, resource.Version)
		}
		versions[resource.GroupResource()] = resource.Version
	}
	return reads.resources, nil
}

// definitions are looked at for what they say of objects; they are none of these.
var definitions = schema.GroupResource{Group: "apiextensions.k8s.io", Resource: "customresourcedefinitions"}

// noting is a client that remembers which resources it was asked for, but for definitions.
type noting struct {
	dynamic.Interface
	lock      sync.Mutex
	resources []schema.GroupVersionResource
}

func (n *noting) Resource(resource schema.GroupVersionResource) dynamic.NamespaceableResourceInterface {
	n.lock.Lock()
	defer n.lock.Unlock()
	if resource.GroupResource() != definitions && !slices.Contains(n.resources, resource) {
		n.resources = append(n.resources, resource)
	}
	return n.Interface.Resource(resource)
}

// stillServed returns a view without the resources that went with the feature, or have not
// come with it yet.
func (k *Kit) stillServed(ctx context.Context, resources []schema.GroupVersionResource) (*View, error) {
	all := NewView(nil, k.Mapper, nil)
	for _, resource := range resources {
		view, err := k.View(ctx, resource)
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return nil, err
		}
		all.Objects = append(all.Objects, view.Objects...)
	}
	return all, nil
}

// changedElsewhere returns what became of the objects of a case beside what the tasks
// of its feature are for (S7). What was removed to release the feature does not
// count, and neither does what went with that.
func (c *Case) changedElsewhere(ctx context.Context, before, after *View, removed map[string]bool) []string {
	var problems []string
	own, now := c.Own(before), after.ByID()
	for _, was := range own.Objects {
		fields := c.touched(ctx, before, was.Resource)
		// Left says what stays of a collection that goes.
		if removed[was.ID()] || ownedBy(was, own, removed) || slices.ContainsFunc(fields, func(f task.Field) bool { return f.Path == "" }) {
			continue
		}
		is, ok := now[was.ID()]
		if !ok {
			problems = append(problems, fmt.Sprintf("%s: %s is gone, and no task is declared that removes it", c.Feature.Name, was.ID()))
			continue
		}
		if !slices.ContainsFunc(fields, inStatus) {
			fields = append(fields, task.Field{Path: "status"})
		}
		if diff := Changed(was.Unstructured, is.Unstructured, fields); diff != "" {
			problems = append(problems, fmt.Sprintf("%s: %s changed elsewhere than in what its tasks look after (-before +after):\n%s", c.Feature.Name, was.ID(), diff))
		}
	}
	return problems
}

// touched returns the fields of a resource that tasks touch. Tasks of an author's own
// declare none, and say it with what they find.
func (c *Case) touched(ctx context.Context, before *View, resource schema.GroupResource) []task.Field {
	var touched []task.Field
	for _, t := range c.Feature.OnDisable {
		fields := t.Fields
		if len(fields) == 0 {
			found, err := t.Find(ctx, before.Clients())
			if err != nil {
				continue // Used says so.
			}
			for _, f := range found {
				fields = append(fields, task.Field{Resource: schema.GroupResource{Group: f.Group, Resource: f.Resource}, Path: f.Field})
			}
		}
		for _, field := range fields {
			if field.Resource == resource {
				touched = append(touched, field)
			}
		}
	}
	return touched
}

// inStatus returns true for the field status and those in it.
func inStatus(field task.Field) bool {
	first, _, _ := strings.Cut(field.Path, ".")
	key, _, _ := strings.Cut(first, "[")
	key, _, _ = strings.Cut(key, "{")
	return key == "status"
}

// Unuse deletes the objects of a case that Use created, the last one first, and
// returns when they are gone. Objects of the same names that others made
// stay. What controllers made for them is left to the garbage collector. The error
// names what stays.
func (k *Kit) Unuse(ctx context.Context, c *Case) error {
	var errs []error
	problem := func(object *unstructured.Unstructured, err error) {
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: deleting %s %s: %w", c.Fixture, object.GetKind(), name(object.GetNamespace(), object.GetName()), err))
		}
	}
	var deleted []*unstructured.Unstructured
	for _, object := range slices.Backward(c.Objects) {
		ok, err := k.delete(ctx, object, c.uids)
		if ok {
			deleted = append(deleted, object)
		}
		problem(object, err)
	}
	for _, object := range deleted {
		problem(object, k.waitUntilGone(ctx, object, c.uids))
	}
	return errors.Join(errs...)
}

// delete deletes an object if it is one of those of the UIDs.
func (k *Kit) delete(ctx context.Context, object *unstructured.Unstructured, uids map[types.UID]bool) (deleted bool, err error) {
	client, current, err := k.current(ctx, object, uids)
	if err != nil || current == nil {
		return false, err
	}
	// In the background: without a controller manager, a deletion in the
	// foreground never completes.
	background, now, uid := metav1.DeletePropagationBackground, int64(0), current.GetUID()
	err = client.Delete(ctx, object.GetName(), metav1.DeleteOptions{
		PropagationPolicy: &background, GracePeriodSeconds: &now, Preconditions: &metav1.Preconditions{UID: &uid},
	})
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	return err == nil, err
}

func (k *Kit) waitUntilGone(ctx context.Context, object *unstructured.Unstructured, uids map[types.UID]bool) error {
	var finalizers []string
	err := wait.PollUntilContextTimeout(ctx, servedPeriod, gonePatience, true, func(ctx context.Context) (bool, error) {
		_, current, err := k.current(ctx, object, uids)
		if err != nil || current == nil {
			return true, err
		}
		finalizers = current.GetFinalizers()
		return false, nil
	})
	if wait.Interrupted(err) {
		return fmt.Errorf("it is still there: %w; does what removes it, or its finalizers %q, run?", err, finalizers)
	}
	return err
}

// current returns an object as it is, nil if none of the UIDs is there.
func (k *Kit) current(ctx context.Context, object *unstructured.Unstructured, uids map[types.UID]bool) (dynamic.ResourceInterface, *unstructured.Unstructured, error) {
	client, err := k.served(object)
	if meta.IsNoMatchError(err) {
		// Its definition is gone, and it went with that.
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, err
	}
	current, err := client.Get(ctx, object.GetName(), metav1.GetOptions{})
	if apierrors.IsNotFound(err) || err == nil && !uids[current.GetUID()] {
		return nil, nil, nil
	}
	return client, current, err
}
