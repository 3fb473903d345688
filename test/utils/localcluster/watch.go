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

package localcluster

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/feature-lifecycle/client/clientset/versioned"
	"k8s.io/feature-lifecycle/watchtools"
)

// WatchFeature calls seen with a Feature of Kubernetes, now and whenever it
// changes, until seen returns true or an error, or the context ends. A server
// that restarts meanwhile is waited for.
func WatchFeature(ctx context.Context, client versioned.Interface, name string, seen func(*v1alpha1.Feature) (bool, error)) error {
	source := cache.NewListWatchFromClient(client.FeaturesV1alpha1().RESTClient(), "features", metav1.NamespaceSystem,
		fields.OneTermEqualSelector(metav1.ObjectNameField, name))
	return watchtools.UntilWithSync(ctx, source, &v1alpha1.Feature{}, nil, func(event watch.Event) (bool, error) {
		feature, ok := event.Object.(*v1alpha1.Feature)
		if !ok || event.Type == watch.Deleted {
			return false, nil
		}
		return seen(feature)
	})
}
