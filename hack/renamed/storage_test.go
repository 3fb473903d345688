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

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	serveroptions "k8s.io/apiserver/pkg/server/options"
	"k8s.io/apiserver/pkg/storage/storagebackend"
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
	other := 0
	for _, gk := range slices.SortedFunc(maps.Keys(stored), func(a, b schema.GroupKind) int { return cmp.Compare(a.String(), b.String()) }) {
		versions, version := has[gk], stored[gk].Version
		if len(versions) == 0 || slices.Contains(versions, version) || gk.Kind == "Scale" { // a subresource
			continue
		}
		other++
		resource := stored[gk].GroupResource()
		cleared := false
		for _, f := range clearedBelow(minor, catalog.All()...) {
			cleared = cleared || f.Resource == resource && f.Path == ""
		}
		if !cleared {
			t.Errorf("%s are stored as %s, and %s has %v alone: declare ClearCollection in OnDowngrade at the boundary %s of the feature that stores them", resource, version, below, versions, minor)
		}
	}
	if len(stored) < 50 || other == 0 && minor == "1.37" {
		t.Errorf("%d resources are stored, %d in a version that %s does not have", len(stored), other, below)
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
