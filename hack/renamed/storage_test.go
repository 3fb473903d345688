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

package main

import (
	"cmp"
	"maps"
	"slices"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	serveroptions "k8s.io/apiserver/pkg/server/options"
	"k8s.io/apiserver/pkg/storage/storagebackend"
	"k8s.io/feature-lifecycle/lifecycle/task"
	"k8s.io/kubernetes-features/pkg/featurelifecycle/catalog"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	"k8s.io/kubernetes/pkg/controlplane"
	"k8s.io/kubernetes/pkg/kubeapiserver"
)

// TestStorageVersionsOfBothSides computes from upstream's storage factory in which version
// each resource is stored. Where the version before has the resource in other versions
// alone, it cannot decode an object, and the tasks of the boundary have to empty the
// collection on the way down.
func TestStorageVersionsOfBothSides(t *testing.T) {
	older, _, below, minor := releases(t)
	before := loaded(t, older)
	// The versions that the version before has of each kind.
	has := map[schema.GroupKind][]string{}
	for _, kind := range before.kinds() {
		version := versionOf(kind.pkg)
		of := resourceOf(version, kind.name)
		gk := schema.GroupKind{Group: of.Group, Kind: kind.name}
		has[gk] = append(has[gk], of.Version)
	}
	stored := storageVersions(t)
	// Many kinds are in both: else one side was not read.
	both := 0
	for gk := range stored {
		if len(has[gk]) > 0 {
			both++
		}
	}
	if both < 50 {
		t.Errorf("%d kinds are stored, %d of them known to %s", len(stored), both, below)
	}
	for _, of := range unreadable(stored, has) {
		resource := of.GroupResource()
		if !slices.ContainsFunc(clearedBelow(minor, catalog.All()...), func(f task.Field) bool { return f.Resource == resource && f.Path == "" }) {
			t.Errorf("%s are stored as %s, which %s does not have: declare ClearCollection in OnDowngrade at the boundary %s of the feature that stores them", resource, of.Version, below, minor)
		}
	}
}

// unreadable returns the resources that are stored in a version which the other side does not
// have, though it has the kind in some version.
func unreadable(stored map[schema.GroupKind]schema.GroupVersionResource, has map[schema.GroupKind][]string) []schema.GroupVersionResource {
	var found []schema.GroupVersionResource
	for _, gk := range slices.SortedFunc(maps.Keys(stored), func(a, b schema.GroupKind) int { return cmp.Compare(a.String(), b.String()) }) {
		if len(has[gk]) > 0 && !slices.Contains(has[gk], stored[gk].Version) && gk.Kind != "Scale" { // a subresource
			found = append(found, stored[gk])
		}
	}
	return found
}

// TestUnreadable: only what is on both sides, in no version that both have, cannot be read.
func TestUnreadable(t *testing.T) {
	kind := func(name string) schema.GroupKind { return schema.GroupKind{Group: "lamps.k8s.io", Kind: name} }
	in := func(version, resource string) schema.GroupVersionResource {
		return schema.GroupVersionResource{Group: "lamps.k8s.io", Version: version, Resource: resource}
	}
	stored := map[schema.GroupKind]schema.GroupVersionResource{
		kind("Lamp"): in("v1beta1", "lamps"), kind("Bulb"): in("v1", "bulbs"), kind("New"): in("v1beta1", "news"), kind("Scale"): in("v1", "scales"),
	}
	has := map[schema.GroupKind][]string{
		kind("Lamp"): {"v1alpha2"}, kind("Bulb"): {"v1beta1", "v1"}, kind("Old"): {"v1"}, kind("Scale"): {"v1beta1"},
	}
	if diff := gocmp.Diff([]schema.GroupVersionResource{in("v1beta1", "lamps")}, unreadable(stored, has)); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

// storageVersions returns the resource and version in which each built-in kind is stored.
func storageVersions(t *testing.T) map[schema.GroupKind]schema.GroupVersionResource {
	t.Helper()
	config := kubeapiserver.NewStorageFactoryConfig()
	config.APIResourceConfig = controlplane.DefaultAPIResourceConfigSource()
	factory, err := config.Complete(serveroptions.NewEtcdOptions(storagebackend.NewDefaultConfig("/registry", nil))).New()
	if err != nil {
		t.Fatal(err)
	}
	stored := map[schema.GroupKind]schema.GroupVersionResource{}
	scheme := legacyscheme.Scheme
	for _, version := range scheme.PrioritizedVersionsAllGroups() {
		for kind := range scheme.KnownTypes(version) {
			gvk := version.WithKind(kind)
			object, err := scheme.New(gvk)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := meta.Accessor(object); err != nil {
				continue
			}
			plural, _ := meta.UnsafeGuessKindToResource(gvk)
			encoded, err := factory.ResourceEncodingConfig.StorageEncodingFor(plural.GroupResource())
			if err != nil {
				continue
			}
			stored[gvk.GroupKind()] = encoded.WithResource(plural.Resource)
		}
	}
	return stored
}
