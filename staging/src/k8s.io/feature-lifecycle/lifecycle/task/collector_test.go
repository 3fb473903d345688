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
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	metadatafake "k8s.io/client-go/metadata/fake"
	clienttesting "k8s.io/client-go/testing"
)

var configMaps = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}

// preferring answers with the resources that a server prefers.
type preferring struct {
	discovery.ServerResourcesInterface
	err error
}

func (p preferring) ServerPreferredResources() ([]*metav1.APIResourceList, error) {
	verbs := metav1.Verbs{"list", "delete", "patch"}
	return []*metav1.APIResourceList{
		{GroupVersion: "v1", APIResources: []metav1.APIResource{{Name: "configmaps", Verbs: verbs}, {Name: "events", Verbs: verbs}, {Name: "bindings", Verbs: metav1.Verbs{"create"}}}},
		{GroupVersion: widgets.GroupVersion().String(), APIResources: []metav1.APIResource{{Name: "widgets", Verbs: verbs}}},
	}, p.err
}

// ownership is a cluster in which objects own others.
type ownership struct {
	*metadatafake.FakeMetadataClient
	storage *storage
}

// reference is one to a widget.
func reference(name string) metav1.OwnerReference {
	return metav1.OwnerReference{APIVersion: widgets.Group + "/v1alpha1", Kind: "Widget", Name: name, UID: types.UID("uid-" + name)}
}

// owned makes a ConfigMap with owners.
func owned(name string, owners ...metav1.OwnerReference) *metav1.PartialObjectMetadata {
	return &metav1.PartialObjectMetadata{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID("uid-" + name), ResourceVersion: "1", OwnerReferences: owners},
	}
}

func newOwnership(stored []StoredObject, objects ...*metav1.PartialObjectMetadata) *ownership {
	scheme := metadatafake.NewTestScheme()
	if err := metav1.AddMetaToScheme(scheme); err != nil {
		panic(err)
	}
	var list []runtime.Object
	for _, o := range objects {
		list = append(list, o)
	}
	for i := range stored {
		stored[i].UID = types.UID("uid-" + stored[i].Name)
	}
	return &ownership{metadatafake.NewSimpleMetadataClient(scheme, list...), store(stored...)}
}

func (o *ownership) clients(t *testing.T, err error) Clients {
	clients := finalizing(t, "").unserved(o.storage)
	clients.Collector = &Collector{Discovery: preferring{err: err}, Metadata: o}
	return clients
}

// left returns the ConfigMaps that are left, with their owners.
func (o *ownership) left(t *testing.T) []string {
	t.Helper()
	list, err := o.Resource(configMaps).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	names := []string{}
	for _, item := range list.Items {
		name := item.Name
		for _, owner := range item.OwnerReferences {
			name += " " + owner.Name
		}
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// TestClearCollectionCollectsDependents checks dependents that no garbage collector
// handles once no version is served.
func TestClearCollectionCollectsDependents(t *testing.T) {
	o := newOwnership([]StoredObject{
		{Namespace: "ns", Name: "a"}, {Namespace: "ns", Name: "b"}, {Name: "everywhere"}, {Namespace: "elsewhere", Name: "c"},
		{Namespace: "ns", Name: "left-behind", Finalizers: []string{metav1.FinalizerOrphanDependents}},
		{Namespace: "ns", Name: "held", Finalizers: []string{foreign}},
		{Namespace: "ns", Name: "garbage", Unreadable: errors.New("of a removed version")},
	},
		owned("of-none"), owned("of-a", reference("a")), owned("of-a-and-b", reference("a"), reference("b")), owned("of-everywhere", reference("everywhere")),
		owned("of-garbage", reference("garbage")),
		owned("of-a-and-another", reference("a"), reference("other")), owned("of-held", reference("held")), owned("of-a-and-held", reference("a"), reference("held")),
		owned("of-another-namespace", reference("c")), owned("orphan", reference("left-behind")),
		owned("of-another-kind", metav1.OwnerReference{APIVersion: "v1", Kind: "Secret", Name: "a", UID: "uid-a"}),
	)
	blocked := blockedBy(t, ClearCollection(widgets.GroupResource()), o.clients(t, nil), ignored)
	if !strings.Contains(blocked.Message, "ns/held") {
		t.Errorf("blocked by %q", blocked.Message)
	}
	if diff := cmp.Diff([]string{"ns/held"}, o.storage.keys()); diff != "" {
		t.Errorf("what is stored (-want +got):\n%s", diff)
	}
	want := []string{"of-a-and-another other", "of-a-and-held held", "of-another-kind a", "of-another-namespace c", "of-held held", "of-none", "orphan"}
	if diff := cmp.Diff(want, o.left(t)); diff != "" {
		t.Errorf("what is left (-want +got):\n%s", diff)
	}
	for _, a := range o.Actions() {
		if a.GetResource().Resource == "events" || a.GetResource().Resource == "widgets" {
			t.Errorf("it reads %s", a.GetResource())
		}
	}
}

// TestOwnersStayWhileDependentsDo: an attempt that follows has to find them.
func TestOwnersStayWhileDependentsDo(t *testing.T) {
	forbidden := func(verb string) func(*ownership) {
		return func(o *ownership) {
			o.PrependReactor(verb, "configmaps", func(clienttesting.Action) (bool, runtime.Object, error) {
				return true, nil, apierrors.NewForbidden(configMaps.GroupResource(), "of-a", errors.New("no"))
			})
		}
	}
	for name, tc := range map[string]struct {
		refuse    func(*ownership)
		discovery error
		want      string
	}{
		"what is owned may not be deleted": {forbidden("delete"), nil, "1 object is owned by objects of widgets.example.com and cannot be collected: configmaps ns/of-a: "},
		"what is owned may not be read":    {forbidden("list"), nil, "configmaps may be owned and cannot be read"},
		"what is owned cannot be read": {func(o *ownership) {
			o.PrependReactor("list", "configmaps", func(clienttesting.Action) (bool, runtime.Object, error) {
				return true, nil, apierrors.NewInternalError(errors.New("does not decode"))
			})
		}, nil, "configmaps may be owned and cannot be read; if an object does not decode, repair or delete it: "},
		"a group does not answer": {func(*ownership) {}, &discovery.ErrGroupDiscoveryFailed{Groups: map[schema.GroupVersion]error{{Group: "metrics.k8s.io", Version: "v1beta1"}: errors.New("gone")}},
			"cannot be seen in metrics.k8s.io/v1beta1, whose server does not answer: let it answer, or delete its APIService"},
	} {
		o := newOwnership([]StoredObject{{Namespace: "ns", Name: "a"}}, owned("of-a", reference("a")))
		tc.refuse(o)
		blocked := blockedBy(t, ClearCollection(widgets.GroupResource()), o.clients(t, tc.discovery), ignored)
		if !strings.Contains(blocked.Message, tc.want) {
			t.Errorf("%s: got %q, want %q", name, blocked.Message, tc.want)
		}
		if diff := cmp.Diff([]string{"ns/a"}, o.storage.keys()); diff != "" {
			t.Errorf("%s: what is stored (-want +got):\n%s", name, diff)
		}
	}
}

// TestCollectingConflicts checks that what was read is deleted, and nothing that was
// written since.
func TestCollectingConflicts(t *testing.T) {
	o := newOwnership([]StoredObject{{Namespace: "ns", Name: "a"}}, owned("of-a", reference("a")))
	conflicts := 0
	o.PrependReactor("delete", "configmaps", func(a clienttesting.Action) (bool, runtime.Object, error) {
		options := a.(clienttesting.DeleteActionImpl).DeleteOptions
		if p := options.Preconditions; p == nil || *p.UID != "uid-of-a" || *p.ResourceVersion != fmt.Sprint(conflicts+1) {
			t.Errorf("deleted with the preconditions %v after %d conflicts", p, conflicts)
		}
		if conflicts++; conflicts > 1 {
			return false, nil, nil
		}
		now := owned("of-a", reference("a"), reference("other"))
		now.ResourceVersion = "2"
		if err := o.Tracker().Update(configMaps, now, "ns"); err != nil {
			t.Error(err)
		}
		return true, nil, apierrors.NewConflict(configMaps.GroupResource(), "of-a", errors.New("changed"))
	})
	if err := ClearCollection(widgets.GroupResource()).Run(t.Context(), o.clients(t, nil), ignored); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"of-a other"}, o.left(t)); diff != "" || conflicts != 1 {
		t.Errorf("after %d deletions (-want +got):\n%s", conflicts, diff)
	}
}

// TestNothingCollectedForReplacedTransition, nor read when nothing is to be removed.
func TestNothingCollectedForReplacedTransition(t *testing.T) {
	o := newOwnership([]StoredObject{{Namespace: "ns", Name: "a"}}, owned("of-a", reference("a")))
	replaced := Attempt{Report: func(Progress) {}, Check: func(context.Context) error { return errors.New("replaced") }}
	if err := ClearCollection(widgets.GroupResource()).Run(t.Context(), o.clients(t, nil), replaced); err == nil {
		t.Error("it ends well")
	}
	if diff := cmp.Diff([]string{"of-a a"}, o.left(t)); diff != "" {
		t.Errorf("what is left (-want +got):\n%s", diff)
	}
	none := newOwnership(nil, owned("of-a", reference("a")))
	if err := ClearCollection(widgets.GroupResource()).Run(t.Context(), none.clients(t, nil), ignored); err != nil || len(none.Actions()) > 0 {
		t.Errorf("%v, after %v", err, none.Actions())
	}
}
