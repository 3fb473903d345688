/*
Copyright 2026 The Kubernetes Authors.

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
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/feature-lifecycle/until"
)

// WaitFor watches the Features of cases until all are in a state. Each version
// of each is given to seen, which may be nil.
func (k *Kit) WaitFor(ctx context.Context, state v1alpha1.FeatureState, seen func(*v1alpha1.Feature) error, cases ...*Case) error {
	waiting := sets.New[string]()
	for _, c := range cases {
		waiting.Insert(string(c.Feature.Name))
	}
	all := waiting.Clone()
	client := k.Features.FeaturesV1alpha1().Features(k.Namespace)
	source := &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			return client.List(ctx, options)
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			return client.Watch(ctx, options)
		},
	}
	err := until.Met(ctx, cache.ToListWatcherWithWatchListSemantics(source, k.Features), &v1alpha1.Feature{}, nil, func(event watch.Event) (bool, error) {
		feature, ok := event.Object.(*v1alpha1.Feature)
		if !ok || event.Type == watch.Deleted || !all.Has(feature.Name) {
			return false, nil
		}
		waiting.Insert(feature.Name)
		if feature.Status.State == state {
			waiting.Delete(feature.Name)
		}
		if seen != nil {
			if err := seen(feature); err != nil {
				return false, err
			}
		}
		return len(waiting) == 0, nil
	})
	if err != nil {
		return fmt.Errorf("waiting for %d features to be %s: %w; not yet: %s", all.Len(), state, err, strings.Join(sets.List(waiting), ", "))
	}
	return nil
}
