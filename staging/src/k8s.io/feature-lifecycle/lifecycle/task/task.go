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

package task

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/openapi"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
)

// Clients are the clients with which tasks access the cluster.
type Clients struct {
	// Dynamic reads and writes objects of any resource (NewDynamicClient). It has to be
	// without a client-side rate limit: the server's priority and fairness decides.
	Dynamic dynamic.Interface
	// Metadata, if not nil, performs writes whose result is not needed: servers answer it
	// with the metadata of an object alone. It needs the permissions of Dynamic.
	Metadata metadata.Interface
	// Mapper maps the resources that the server has now (NewMapper); it is reset before
	// each use. Tasks that name no version need it, and so do those that have to notice a
	// removed API.
	Mapper meta.ResettableRESTMapper
	// Flow is the namespace of the Features for which tasks run. It distinguishes what
	// several flows create in one cluster. The controller sets it to its own; "" is a
	// flow, too.
	Flow string
	// OpenAPI, if not nil, publishes the schemas of what has no definition, and declarations
	// are held against the server (Inspection). kube-apiserver's own flow has none: its
	// resources go and come with features, and the catalog's tests read upstream's types.
	OpenAPI openapi.Client
	// Storage reads what is stored beside the API. Only kube-apiserver has it;
	// without it tasks do what the API alone allows.
	Storage Storage
	// Editor edits what is stored beside the API. Only kube-apiserver has one, unless its
	// flags say otherwise; without it fields are cleared through the API.
	Editor Editor
	// ClearedBy describes in half a sentence which feature deletes the collection of a
	// resource and its progress, "" if none does; nil means unknown. The controller sets
	// it.
	ClearedBy func(resource schema.GroupResource) string
	// HasField returns whether objects of a built-in resource have a field, written as for
	// ClearField, in a version. Tasks use it where the version for which they are declared
	// is not served. Nil means unknown. Custom resources have a definition instead.
	HasField func(resource schema.GroupVersionResource, path string) bool
	// Collector deletes what objects own that are removed from Storage. Without it
	// dependents stay, since no garbage collector notices the removal of their owner.
	Collector *Collector

	// namespace is the only one that the task with these clients reads, "" for all.
	namespace string
	// shared reads collections for several finders at once; nil means that each
	// reads for itself (FindShared).
	shared *sharedFinder
}

// fieldManager names the flow in managed fields. Each has a manager of its own: server-side
// apply knows others by it, and would let one flow overwrite what another has applied, and
// drop what the other does not apply. Namespaces have at most 63 characters, managers 128.
func (c Clients) fieldManager() string {
	if c.Flow == "" {
		return "feature-lifecycle"
	}
	return "feature-lifecycle/" + c.Flow
}

// DefaultDeadline is the time that one attempt at a task may take that sets nothing else.
const DefaultDeadline = 30 * time.Minute

// Attempt is one run of a task.
type Attempt struct {
	// Feature and TransitionID identify the origin of the run. Attempts at one task of one
	// transition have the same.
	Feature, TransitionID string
	// Last is the progress that the attempt before this one was last known to
	// have made, in whatever process; the zero value for the first.
	Last Progress
	// Check returns an error when the transition is no longer wanted, as far as the server
	// knows at this moment. Tasks call it before they begin with a number of writes: a
	// process that was frozen may have missed a change. It is safe for concurrent use. Nil
	// means that there is no check.
	Check func(ctx context.Context) error
	// Report reports the progress of the run. It may be called concurrently and often.
	Report func(Progress)
	// StopAtFirst ends the attempt at the first object that cannot be changed, or in which
	// the server changes something else, too. Writes that are under way end first. It is for
	// a person's client, which no server flow attempts again; others are changed meanwhile
	// without it. It holds for ClearField and ClearCollection through the API; other changes
	// are noticed if Clients.Metadata is nil.
	StopAtFirst bool
}

// check is Check, if there is one.
func (a Attempt) check(ctx context.Context) error {
	if a.Check == nil {
		return nil
	}
	return a.Check(ctx)
}

// Progress is the progress of a task.
type Progress struct {
	// Done and Total count objects; Total may grow while objects are found.
	Done, Total int64
	// Message describes what the task is doing.
	Message string
	// Checkpoint is where another attempt resumes, "" for the beginning. Only the task
	// understands it.
	Checkpoint string
}

// Task is one step of a transition, as data. The zero value is not valid; use a
// constructor.
type Task struct {
	// Name identifies the task among those of its feature. It is stored while a
	// transition is under way, so changing it strands transitions.
	Name string
	// Description is what the task does, for plans.
	Description string
	// Find counts what the task would handle. It writes nothing, and ends when its context
	// does. Resources without leftovers are left out.
	Find func(ctx context.Context, clients Clients) ([]v1alpha1.ResourceLeftovers, error)
	// Run does the task until nothing is left. A *BlockedError means that an external
	// action is needed first. Any other error, or a canceled context, leaves the task to
	// be run again.
	Run func(ctx context.Context, clients Clients, attempt Attempt) error
	// Obstacles returns what would hold Run until an external action, as far as that is
	// known beforehand: a plan shows it. It stores nothing, and is called if Find finds
	// something; nil for a task without such a check. What Find counts of a task that
	// Waits needs no sentence. A *BlockedError is an obstacle, too.
	Obstacles func(ctx context.Context, clients Clients) (Outlook, error)
	// Try does what Run would do with each object, and stores nothing: the server answers
	// as to a dry run. It shows what else the server would change if Clients.Metadata is
	// nil. Check and Report of the attempt are used. It is nil for a task that changes
	// nothing, or of which that cannot be tried.
	Try func(ctx context.Context, clients Clients, attempt Attempt) (Trial, error)
	// Deadline bounds one attempt, and one search for leftovers; 0 means DefaultDeadline.
	// A task that needs longer is attempted again and resumes.
	Deadline time.Duration
	// Fields are those that the task reads, for checks of declarations.
	Fields []Field
	// Waits is true for a task that waits for others and removes nothing.
	Waits bool
	// Installs is true for a task that makes objects: what it finds is missing, or not as
	// it is to be, and nothing of it is left of the feature.
	Installs bool
	// BlocksStartup is true when what the task finds keeps a server that has the feature
	// on from becoming ready: stored objects that no server can decode, of which one makes
	// every LIST of their collection fail. On upgrade the feature has to be off until the
	// task has run, otherwise no server is there to run it.
	BlocksStartup bool
	// NeedsStorage is true for a task that does nothing without Clients.Storage.
	NeedsStorage bool
	// Unread describes why servers of this version do not read what the task finds, in a
	// clause; "" if they read it. What is not read is never in use, also while the feature
	// is on, and another server may have stored it before this one was there.
	Unread string
	// Removed is the field that the task is for, if servers of this version do not have it.
	Removed *RemovedField
	// Rules are the permissions that Find and Run need in all namespaces, and for
	// cluster-scoped objects. NamespacedRules are those that they need in one namespace
	// alone, by its name.
	Rules           []rbacv1.PolicyRule
	NamespacedRules map[string][]rbacv1.PolicyRule
	// collection is the resource that the task handles, of which InNamespace limits it to
	// the objects of one namespace. It is empty for one that cannot be limited; unlimited
	// is the reason. namespace is "" for one that is not limited.
	collection schema.GroupResource
	unlimited  string
	namespace  string
	// about is the resource that the task is declared for, and version the one of its
	// versions, "" for any; empty for what names none. throughStatus is true for a task that
	// writes through the subresource status. They are for an Inspection.
	about         schema.GroupResource
	version       string
	throughStatus bool
	// matches returns true for an object that the task handles or waits for, read in a
	// version with the paths; nil for what finds objects in another way (FindObjects).
	matches func(object *unstructured.Unstructured) bool
	paths   []Path
	// inStorage returns whether the task edits objects where they are stored with these
	// clients; nil for a task that never does.
	inStorage func(ctx context.Context, clients Clients) (bool, error)
	// defines are resources that the task defines, and manifests what it installs or deletes.
	defines   []schema.GroupResource
	manifests []*unstructured.Unstructured
	// invalid is the reason why the declaration is wrong, nil when it is not.
	invalid error
}

// WithDeadline returns the task with another deadline for one attempt.
func (t Task) WithDeadline(deadline time.Duration) Task {
	t.Deadline = deadline
	return t
}

// Validate returns what is wrong with the declaration.
func (t Task) Validate() error {
	switch {
	case t.invalid != nil:
		return t.invalid
	case t.Name == "":
		return errors.New("task without a name; use one of the constructors")
	case t.Name == v1alpha1.TaskWaitForUses:
		return fmt.Errorf("task %s is written by the server flow itself; leave it out", t.Name)
	case len(t.Name) > v1alpha1.MaxNameLength:
		return fmt.Errorf("task %s: the name has %d characters, %d are allowed", t.Name, len(t.Name), v1alpha1.MaxNameLength)
	case t.Deadline < 0:
		return fmt.Errorf("task %s: the deadline must not be negative, it is %s", t.Name, t.Deadline)
	case t.Find == nil || t.Run == nil:
		return fmt.Errorf("task %s needs both Find and Run", t.Name)
	default:
		return nil
	}
}

// Field is a field of a resource, or the whole of it if Path is "".
type Field struct {
	Resource schema.GroupResource
	// Path is written as for ClearField.
	Path string
	// Value is the one value of the field that counts, as in <field>=<value> of
	// WaitForNone; "" is any.
	Value string
	// Chosen is true if a function chooses the values that count (WaitForNoneWhere).
	Chosen bool
}

// In returns whether an object has the field, and has the Value in it if that is set.
// Null is no value. It is an error if the path cannot be read, or if a function chooses
// the values: only the task's finder knows that.
func (f Field) In(object map[string]any) (bool, error) {
	matches, err := f.matches()
	if err != nil {
		return false, err
	}
	return matches(object), nil
}

// matches returns the function that returns whether an object has the field.
func (f Field) matches() (func(object map[string]any) bool, error) {
	if f.Path == "" {
		return func(map[string]any) bool { return true }, nil
	}
	if f.Chosen {
		return nil, fmt.Errorf("%s %s: a function chooses the values that count; ask the finder of its task, or name one in Value", f.Resource, f.Path)
	}
	path, err := ParsePath(f.Path)
	if err != nil {
		return nil, err
	}
	m := matcher{path: path, value: f.Value}
	if f.Value != "" {
		m.wanted = m.isValue
	}
	return m.matches, nil
}

// ErrNotServed is returned for a resource that the API does not serve, so that it does not
// show what is stored.
var ErrNotServed = errors.New("the API does not serve it")

// FindIn counts the objects that have the field, as In finds it, and names some. It reads
// them through the API in one version of the resource, or in the one that the server
// prefers if version is "". The caller needs the verb list. It is for clients that look for
// what another version of the server does not read: a Task has a finder of its own.
func (f Field) FindIn(ctx context.Context, clients Clients, version string) (v1alpha1.ResourceLeftovers, error) {
	none := v1alpha1.ResourceLeftovers{Group: f.Resource.Group, Resource: f.Resource.Resource, Field: f.shown()}
	matches, err := f.matches()
	if err != nil {
		return none, err
	}
	versions, err := servedVersions(clients, f.Resource)
	switch {
	case err != nil:
		return none, err
	case len(versions) == 0 || version != "" && !slices.Contains(versions, version):
		return none, ErrNotServed
	case version == "":
		version = versions[0]
	}
	found, err := find(ctx, clients, f.Resource.WithVersion(version), f.shown(), func(o *unstructured.Unstructured) bool { return matches(o.Object) })
	if err != nil || len(found) == 0 {
		return none, err
	}
	return found[0], nil
}

// shown is the field as findings name it.
func (f Field) shown() string {
	if f.Value == "" {
		return f.Path
	}
	return f.Path + "=" + f.Value
}

// BlockedError is returned for a task that cannot continue without an external action.
type BlockedError struct {
	// Message names what and how much.
	Message string
	// Until returns nil as soon as another attempt is worth it, at little cost
	// while it waits: that may be for days. Without it, or when it returns an
	// error, only time brings the next attempt.
	Until func(ctx context.Context) error
}

func (e *BlockedError) Error() string { return e.Message }
