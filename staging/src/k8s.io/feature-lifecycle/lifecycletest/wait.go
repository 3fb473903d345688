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
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/feature-lifecycle/watchtools"
)

// WaitFor watches the Features of cases until all are in a state. Each version
// of each is given to seen, which may be nil.
func (k *Kit) WaitFor(ctx context.Context, state v1alpha1.FeatureState, seen func(*v1alpha1.Feature) error, cases ...*Case) error {
	waiting := sets.New[string]()
	for _, c := range cases {
		waiting.Insert(string(c.Feature.Name))
	}
	all := waiting.Clone()
	err := watchtools.UntilWithSync(ctx, k.features(), &v1alpha1.Feature{}, nil, func(event watch.Event) (bool, error) {
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

// Ask asks for a value of a feature through the API, as administrators do with
// kubectl feature enable and disable. It waits until the Feature is there and its
// value is one that may be asked for: the operator says both when it starts. When
// the context ends before, the error says what was missing.
func (k *Kit) Ask(ctx context.Context, feature string, enabled bool) error {
	missing := "there is no Feature " + name(k.Namespace, feature) + "; does the operator run, and does its server flow?"
	err := watchtools.UntilWithSync(ctx, k.features(), &v1alpha1.Feature{}, nil, func(event watch.Event) (bool, error) {
		seen, ok := event.Object.(*v1alpha1.Feature)
		if !ok || event.Type == watch.Deleted || seen.Name != feature {
			return false, nil
		}
		missing = fmt.Sprintf("command lines decide the value of %s; start what decides it with --dynamic-features=%s, or turn it with its own flags", feature, feature)
		return seen.Status.Control == v1alpha1.ControlDynamic, nil
	})
	if err != nil {
		return fmt.Errorf("waiting to ask for %s=%t: %w; %s", feature, enabled, err, missing)
	}
	patch := fmt.Appendf(nil, `{"spec":{"enabled":%t}}`, enabled)
	_, err = k.Features.FeaturesV1alpha1().Features(k.Namespace).Patch(ctx, feature, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: manager})
	if err != nil {
		return fmt.Errorf("asking for %s=%t: %w", feature, enabled, err)
	}
	return nil
}

// features lists and watches those of the namespace.
func (k *Kit) features() cache.ListerWatcher {
	client := k.Features.FeaturesV1alpha1().Features(k.Namespace)
	return cache.ToListWatcherWithWatchListSemantics(&cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			return client.List(ctx, options)
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			return client.Watch(ctx, options)
		},
	}, k.Features)
}
