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

package controlplane

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	goruntime "runtime"
	"strings"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/audit"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/feature-lifecycle/lifecycle/task"
	"k8s.io/kubernetes-features/pkg/featurelifecycle/rawobject"
)

// editor removes fields from objects where they are stored (task.Editor). It edits their
// bytes, so that all other fields stay, those that this binary does not know among them.
// The registry of the resource prepares and validates each change, as it does for
// requests. Whatever is unusual is left to the API.
//
// Each object has a transaction of its own: the objects of one would share a revision, and
// a watch that resumes between them would lose the rest.
type editor struct {
	stored *Stored
	// kinds finds how objects of a resource are decoded and updated. The error is why they
	// can be so through the API alone.
	kinds func(resource schema.GroupVersionResource, path string) (kinds, error)
	audit *auditor
	// turns has room for the edits that are being computed.
	turns chan struct{}
}

// coresPerTurn is the number of processor cores for each edit that is computed at once:
// while writes wait for etcd together, as many edits would be runnable, and requests of
// others wait behind them for a core.
const coresPerTurn = 4

var _ task.Editor = &editor{}

// EditorConfig is what an Editor needs beside storage.
type EditorConfig struct {
	// Namespaces and Authorizer are for the registry's validation of ResourceClaims.
	Namespaces typedcorev1.NamespaceInterface
	Authorizer authorizer.UnconditionalAuthorizer
	// Definition returns that of a custom resource by its name. The result is not changed.
	Definition func(name string) (*apiextensionsv1.CustomResourceDefinition, error)
	// AuditBackend gets an event for each object that is written, as AuditPolicy has it for
	// a patch by the server flow. Nil ones audit nothing.
	AuditBackend audit.Sink
	AuditPolicy  audit.PolicyRuleEvaluator
}

// NewEditor returns what edits objects where they are stored.
func NewEditor(stored *Stored, config EditorConfig) task.Editor {
	of := registry{builtIn: registryStrategies(config.Namespaces, config.Authorizer), definition: config.Definition}
	return &editor{
		stored: stored, kinds: of.kinds, audit: &auditor{backend: config.AuditBackend, policy: config.AuditPolicy},
		turns: make(chan struct{}, max(1, goruntime.GOMAXPROCS(0)/coresPerTurn)),
	}
}

// kinds are the versions of one resource, and how the server updates its objects.
type kinds interface {
	// updatable returns why objects are written through the API alone, nil if they are not.
	// It comes before the first update.
	updatable() error
	// field returns a field in objects of an API version, an error if they have none.
	field(apiVersion, kind string) (*rawobject.Field, error)
	// hasField returns whether objects have the field in an API version.
	hasField(apiVersion string) bool
	// converted returns a stored object in the version of the path, for what bytes do not
	// show. It is not written.
	converted(at place, plain []byte) (rawobject.Object, error)
	// content shows an object as the API does.
	content(object rawobject.Object) (map[string]any, error)
	// update has the registry prepare and validate the change of an object.
	update(ctx context.Context, at place, before, after rawobject.Object) (rawobject.Object, error)
}

// Edits implements task.Editor.
func (e *editor) Edits(_ context.Context, what task.FieldEdit) (task.FieldEdits, error) {
	of, err := e.kinds(what.Resource, what.Path)
	if err != nil {
		return nil, throughAPI(err)
	}
	at, err := e.served(what.Resource.GroupResource())
	if err != nil {
		return nil, err
	}
	if err := of.updatable(); err != nil {
		return nil, throughAPI(err)
	}
	return &fieldEdits{FieldEdit: what, storedPages: newStoredPages(at, what.Namespace), fields: newFieldVersions(of), kinds: of, audit: e.audit, turns: e.turns}, nil
}

// served is where a resource is stored that the server serves, in any version. What becomes
// of objects of another one is for the API path of tasks, which describes how to reach them.
func (e *editor) served(resource schema.GroupResource) (place, error) {
	at, err := e.stored.sharedPlace(resource)
	if err == nil && at.builtIn && !e.stored.serves(resource) {
		err = fmt.Errorf("%s is not served", resource)
	}
	if err != nil {
		return place{}, throughAPI(err)
	}
	return at, nil
}

// throughAPI is the error for what has to be cleared through the API.
func throughAPI(reason error) error {
	return &task.ThroughAPIError{Reason: reason.Error()}
}

// fieldEdits are the edits of one field in one resource.
type fieldEdits struct {
	task.FieldEdit
	*storedPages
	kinds  kinds
	fields *fieldVersions
	audit  *auditor
	turns  chan struct{}
}

// Page implements task.FieldEdits. From is a key without the prefix.
func (f *fieldEdits) Page(ctx context.Context, from string) (page task.EditPage, err error) {
	page.Objects, page.Remaining, page.Next, err = f.read(ctx, from, func(object storedObject) error {
		edit, err := f.edit(object)
		if edit != nil {
			page.Edits = append(page.Edits, *edit)
		}
		return err
	})
	return page, err
}

// Again implements task.FieldEdits.
func (f *fieldEdits) Again(ctx context.Context, key string) (*task.Edit, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	found, err := f.at.client.Get(ctx, key)
	if err != nil {
		return nil, fmt.Errorf("reading the stored object %s: %w", key, err)
	}
	if len(found.Kvs) == 0 {
		return nil, nil
	}
	object, err := f.at.decrypted(ctx, found.Kvs[0])
	if err != nil {
		return nil, err
	}
	return f.edit(object)
}

// Probe implements task.FieldEdits with a transaction that never succeeds. It passes
// through etcd's log like others, since it would write if it did.
func (f *fieldEdits) Probe(ctx context.Context) (time.Duration, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	begun := time.Now()
	// No key has a revision below zero.
	done, err := f.at.client.Txn(ctx).
		If(clientv3.Compare(clientv3.ModRevision(f.at.prefix), "<", 0)).
		Then(clientv3.OpPut(f.at.prefix, "")).
		Commit()
	switch {
	case err != nil:
		return 0, fmt.Errorf("probing how long etcd takes to write: %w", err)
	case done.Succeeded:
		return 0, errors.New("etcd wrote the key of a probe, whose condition is never true")
	}
	return time.Since(begun), nil
}

// edit returns the edit of a stored object, nil if it needs none. One in which bytes do not
// show the field is looked at in the version of the path, and is written through the API.
func (f *fieldEdits) edit(stored storedObject) (*task.Edit, error) {
	object, field, unusual := f.withField(rawobject.Parse(stored.plain))
	if unusual != nil {
		var err error
		if object, field, err = f.withField(f.kinds.converted(f.at, stored.plain)); err != nil {
			return nil, throughAPI(fmt.Errorf("the stored object %s: %w", stored.key, errors.Join(unusual, err)))
		}
	}
	wanted, holds, err := f.wants(object, field)
	switch {
	case err != nil:
		return nil, throughAPI(fmt.Errorf("the stored object %s: %w", stored.key, err))
	case !wanted:
		return nil, nil
	case !holds:
		unusual = rawobject.ErrUnfinished
	}
	about := f.at.keyed(stored.key)
	edit := &task.Edit{Namespace: about.Namespace, Name: about.Name, Key: stored.key}
	edit.Write = func(ctx context.Context) error {
		if unusual != nil {
			return throughAPI(unusual)
		}
		return f.write(ctx, objectEdit{StoredObject: about, revision: stored.revision, before: object, field: field})
	}
	return edit, nil
}

// withField returns an object and the field in its version, unless there is an error.
func (f *fieldEdits) withField(object rawobject.Object, err error) (rawobject.Object, *rawobject.Field, error) {
	if err != nil {
		return object, nil, err
	}
	field, err := f.fields.field(object)
	return object, field, err
}

// wants returns whether a field is to be removed from an object, and whether the object has
// it. One without it may be left from an attempt through the API.
func (f *fieldEdits) wants(object rawobject.Object, field *rawobject.Field) (wanted, holds bool, err error) {
	if holds, err = field.Holds(object); err != nil {
		return false, false, err
	}
	if wanted = holds; !holds {
		if wanted, err = object.IsUnfinished(f.Manager); err != nil {
			return false, false, err
		}
	}
	if !wanted || !f.Uncontrolled {
		return wanted, holds, nil
	}
	controlled, err := isControlled(object)
	return !controlled, holds, err
}

// isControlled returns true for an object that a controller made.
func isControlled(object rawobject.Object) (bool, error) {
	metadata, err := object.Metadata()
	return err == nil && metav1.GetControllerOf(&metadata) != nil, err
}

// fieldVersions is one field in the versions in which objects are stored. It is safe for
// concurrent use.
type fieldVersions struct {
	kinds kinds

	mu     sync.Mutex
	fields map[[2]string]*rawobject.Field
}

func newFieldVersions(of kinds) *fieldVersions {
	return &fieldVersions{kinds: of, fields: map[[2]string]*rawobject.Field{}}
}

// field returns the field in the version of an object.
func (v *fieldVersions) field(object rawobject.Object) (*rawobject.Field, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	kind := [2]string{object.APIVersion(), object.Kind()}
	if field, ok := v.fields[kind]; ok {
		return field, nil
	}
	field, err := v.kinds.field(kind[0], kind[1])
	if err == nil {
		v.fields[kind] = field
	}
	return field, err
}

// isStatus is true for a field that is written through the subresource status.
func isStatus(path string) bool { return path == "status" || strings.HasPrefix(path, "status.") }

// goTypeOf returns the Go type of a kind.
func goTypeOf(scheme *runtime.Scheme, apiVersion, kind string, resource schema.GroupResource) (reflect.Type, error) {
	gvk := schema.FromAPIVersionAndKind(apiVersion, kind)
	if err := isOf(gvk, resource); err != nil {
		return nil, err
	}
	return structOf(scheme, gvk)
}

// structOf returns the struct of a kind.
func structOf(scheme *runtime.Scheme, kind schema.GroupVersionKind) (reflect.Type, error) {
	object, err := scheme.New(kind)
	if err != nil {
		return nil, fmt.Errorf("this server has no type %s", kind)
	}
	return reflect.TypeOf(object).Elem(), nil
}
