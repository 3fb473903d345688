//go:build linux

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

package disruption

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/kubernetes-features/test/integration/framework"
	"k8s.io/utils/ptr"
)

const (
	mergePatch = types.MergePatchType
	objectNS   = metav1.NamespaceDefault
	// mostObjects bounds how many StatefulSets and autoscalers there are, of each.
	mostObjects = 150
)

// objects are what clients store that uses features: StatefulSets with
// maxUnavailable and autoscalers with a tolerance.
type objects struct {
	w *world

	mu     sync.Mutex
	number int
	names  map[string]bool
}

// autoscaler is one that uses HPAConfigurableTolerance, of nothing.
func autoscaler(name string) *autoscalingv2.HorizontalPodAutoscaler {
	return &autoscalingv2.HorizontalPodAutoscaler{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{soaked: "true"}},
		Spec: autoscalingv2.HorizontalPodAutoscalerSpec{
			ScaleTargetRef: autoscalingv2.CrossVersionObjectReference{APIVersion: "apps/v1", Kind: "StatefulSet", Name: name},
			MaxReplicas:    1,
			Metrics: []autoscalingv2.MetricSpec{{Type: autoscalingv2.ResourceMetricSourceType, Resource: &autoscalingv2.ResourceMetricSource{
				Name: "cpu", Target: autoscalingv2.MetricTarget{Type: autoscalingv2.UtilizationMetricType, AverageUtilization: ptr.To[int32](50)},
			}}},
			Behavior: &autoscalingv2.HorizontalPodAutoscalerBehavior{ScaleUp: &autoscalingv2.HPAScalingRules{Tolerance: ptr.To(resource.MustParse("50m"))}},
		},
	}
}

// churn makes, changes or deletes a StatefulSet and, for every third, an
// autoscaler.
func (o *objects) churn(ctx context.Context, random *rand.Rand) error {
	o.mu.Lock()
	count, name := len(o.names), pick(random, o.names)
	o.mu.Unlock()
	switch what := random.IntN(6); {
	case count < 20 || what < 3 && count < mostObjects:
		return o.create(ctx, random)
	case what < 5:
		patch := fmt.Sprintf(`{"metadata":{"annotations":{"changed":"%d"}}}`, random.IntN(1000))
		return o.w.try(ctx, random, "changing a StatefulSet", func(ctx context.Context, s server) error {
			_, err := s.kube.AppsV1().StatefulSets(objectNS).Patch(ctx, name, mergePatch, []byte(patch), metav1.PatchOptions{})
			return err
		})
	default:
		return o.remove(ctx, random, name)
	}
}

func (o *objects) create(ctx context.Context, random *rand.Rand) error {
	o.mu.Lock()
	o.number++
	number := o.number
	o.mu.Unlock()
	name := fmt.Sprintf("soaked-%06d", number)
	set := framework.StatefulSet(name, intstr.FromInt32(1+random.Int32N(5)))
	set.Labels = map[string]string{soaked: "true"}
	err := o.w.try(ctx, random, "creating a StatefulSet", func(ctx context.Context, s server) error {
		_, err := s.kube.AppsV1().StatefulSets(objectNS).Create(ctx, set, metav1.CreateOptions{})
		return done(err)
	})
	if err == nil && number%3 == 0 {
		err = o.w.try(ctx, random, "creating an autoscaler", func(ctx context.Context, s server) error {
			_, err := s.kube.AutoscalingV2().HorizontalPodAutoscalers(objectNS).Create(ctx, autoscaler(name), metav1.CreateOptions{})
			return done(err)
		})
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.names[name] = true
	o.w.stats.count("objects created")
	return err
}

func (o *objects) remove(ctx context.Context, random *rand.Rand, name string) error {
	o.mu.Lock()
	delete(o.names, name)
	o.mu.Unlock()
	o.w.stats.count("objects deleted")
	return o.w.try(ctx, random, "deleting an object", func(ctx context.Context, s server) error {
		err := s.kube.AutoscalingV2().HorizontalPodAutoscalers(objectNS).Delete(ctx, name, metav1.DeleteOptions{})
		if err != nil && !apierrors.IsNotFound(err) {
			return err
		}
		return done(s.kube.AppsV1().StatefulSets(objectNS).Delete(ctx, name, metav1.DeleteOptions{PropagationPolicy: ptr.To(metav1.DeletePropagationBackground)}))
	})
}

// removeAll deletes all, whoever remembers them.
func (o *objects) removeAll(ctx context.Context, random *rand.Rand) error {
	options := metav1.ListOptions{LabelSelector: soaked}
	return o.w.try(ctx, random, "deleting all objects", func(ctx context.Context, s server) error {
		background := metav1.DeleteOptions{PropagationPolicy: ptr.To(metav1.DeletePropagationBackground)}
		if err := s.kube.AutoscalingV2().HorizontalPodAutoscalers(objectNS).DeleteCollection(ctx, background, options); err != nil {
			return err
		}
		if err := s.kube.AppsV1().StatefulSets(objectNS).DeleteCollection(ctx, background, options); err != nil {
			return err
		}
		return s.kube.CoreV1().ConfigMaps(objectNS).DeleteCollection(ctx, background, options)
	})
}
