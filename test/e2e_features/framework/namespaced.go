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

package framework

import (
	"context"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/feature-lifecycle/watchtools"
)

// WaitForFeatureIn watches a Feature of an operator until it is as wanted, and returns
// it. One that is deleted and made again meanwhile is the same to it.
func (c *Cluster) WaitForFeatureIn(t testing.TB, namespace, name, what string, wanted func(*v1alpha1.Feature) bool) *v1alpha1.Feature {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), Patience)
	defer cancel()
	source := cache.NewListWatchFromClient(c.Features.FeaturesV1alpha1().RESTClient(), "features", namespace, fields.OneTermEqualSelector(metav1.ObjectNameField, name))
	var last *v1alpha1.Feature
	err := watchtools.UntilWithSync(ctx, source, &v1alpha1.Feature{}, nil, func(event watch.Event) (bool, error) {
		feature, ok := event.Object.(*v1alpha1.Feature)
		if !ok || event.Type == watch.Deleted {
			return false, nil
		}
		last = feature
		return wanted(feature), nil
	})
	if err != nil {
		t.Fatalf("waiting for feature %s/%s to be %s: %v; it is %+v", namespace, name, what, err, last)
	}
	return last
}
