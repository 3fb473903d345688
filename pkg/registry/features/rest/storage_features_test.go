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

package rest

import (
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/registry/generic"
	"k8s.io/apiserver/pkg/registry/rest"
	serverstorage "k8s.io/apiserver/pkg/server/storage"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/apiserver/pkg/storage/storagebackend"
	"k8s.io/apiserver/pkg/storage/storagebackend/factory"
	"k8s.io/client-go/tools/cache"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	_ "k8s.io/kubernetes-features/pkg/apis/features/install" // the group's types
	featurestorage "k8s.io/kubernetes-features/pkg/registry/features/feature/storage"
)

// nowhere stores nothing: the served resources are decided before the first
// write.
func nowhere(*storagebackend.ConfigForResource, string, func(runtime.Object) (string, error), func() runtime.Object, func() runtime.Object,
	storage.AttrFunc, storage.IndexerFuncs, *cache.Indexers) (storage.Interface, factory.DestroyFunc, error) {
	return nil, func() {}, nil
}

func provider() StorageProvider {
	return StorageProvider{Control: func(string) v1alpha1.FeatureControl { return v1alpha1.ControlLocal }, Flow: &featurestorage.Flow{}}
}

func served(t *testing.T, resources *serverstorage.ResourceConfig) map[string]rest.Storage {
	t.Helper()
	group, err := provider().NewRESTStorage(resources, generic.RESTOptions{
		StorageConfig: &storagebackend.ConfigForResource{}, Decorator: nowhere, ResourcePrefix: "any",
	})
	if err != nil {
		t.Fatal(err)
	}
	return group.VersionedResourcesStorageMap[v1alpha1.SchemeGroupVersion.Version]
}

func TestServedResources(t *testing.T) {
	features, reports := []string{"features", "features/cleanup", "features/plan", "features/status"}, []string{"featurereports", "featurereports/confirmation"}
	for name, tc := range map[string]struct {
		configure func(*serverstorage.ResourceConfig)
		want      []string
	}{
		"none unless enabled": {func(*serverstorage.ResourceConfig) {}, nil},
		"all of the version": {func(c *serverstorage.ResourceConfig) { c.EnableVersions(v1alpha1.SchemeGroupVersion) },
			slices.Concat(reports, features, []string{"featurevalues"})},
		"features without reports": {func(c *serverstorage.ResourceConfig) {
			c.EnableVersions(v1alpha1.SchemeGroupVersion)
			c.DisableResources(v1alpha1.SchemeGroupVersion.WithResource("featurereports"))
		}, slices.Concat(features, []string{"featurevalues"})},
		"all without values, as before": {func(c *serverstorage.ResourceConfig) {
			c.EnableVersions(v1alpha1.SchemeGroupVersion)
			c.DisableResources(v1alpha1.SchemeGroupVersion.WithResource("featurevalues"))
		}, slices.Concat(reports, features)},
		"reports without features": {func(c *serverstorage.ResourceConfig) {
			c.EnableVersions(v1alpha1.SchemeGroupVersion)
			c.DisableResources(v1alpha1.SchemeGroupVersion.WithResource("features"))
		}, slices.Concat(reports, []string{"featurevalues"})},
	} {
		t.Run(name, func(t *testing.T) {
			resources := serverstorage.NewResourceConfig()
			tc.configure(resources)
			got := slices.Sorted(maps.Keys(served(t, resources)))
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("unexpected resources (-want +got):\n%s", diff)
			}
		})
	}
}

// TestServedVerbs: verbs in discovery follow from what storage implements.
func TestServedVerbs(t *testing.T) {
	resources := serverstorage.NewResourceConfig()
	resources.EnableVersions(v1alpha1.SchemeGroupVersion)
	verbs := map[string][]string{}
	for resource, s := range served(t, resources) {
		for verb, implemented := range map[string]bool{
			"create": is[rest.Creater](s) || is[rest.NamedCreater](s), "get": is[rest.Getter](s), "list": is[rest.Lister](s), "watch": is[rest.Watcher](s),
			"update": is[rest.Updater](s), "patch": is[rest.Patcher](s), "delete": is[rest.GracefulDeleter](s), "deletecollection": is[rest.CollectionDeleter](s),
		} {
			if implemented {
				verbs[resource] = append(verbs[resource], verb)
			}
		}
		slices.Sort(verbs[resource])
	}
	all := []string{"create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"}
	want := map[string][]string{
		"features": all, "featurereports": all, "featurevalues": all,
		"features/status": {"get", "patch", "update"},
		"features/plan":   {"create"}, "features/cleanup": {"create"},
		"featurereports/confirmation": {"create"},
	}
	if diff := cmp.Diff(want, verbs); diff != "" {
		t.Errorf("unexpected verbs (-want +got):\n%s", diff)
	}
}

func is[T any](s rest.Storage) bool {
	_, ok := s.(T)
	return ok
}

func TestGroupAndHook(t *testing.T) {
	if got := provider().GroupName(); got != "features.k8s.io" {
		t.Errorf("the group is %s", got)
	}
	name, hook, err := provider().PostStartHook()
	if name != PolicyHookName || hook == nil || err != nil {
		t.Errorf("the hook is %q, %v", name, err)
	}
}
