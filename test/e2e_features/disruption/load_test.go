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

package disruption

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/kubernetes-features/test/e2e_features/framework"
	"k8s.io/utils/ptr"
)

// read reads something through one of the servers, as clients do.
func (w *world) read(ctx context.Context, random *rand.Rand) error {
	s, begun := w.any(random), time.Now()
	features, reports := s.features.FeaturesV1alpha1().Features(systemNS), s.features.FeaturesV1alpha1().FeatureReports(systemNS)
	var err error
	switch random.IntN(6) {
	case 0:
		var feature *v1alpha1.Feature
		feature, err = features.Get(ctx, static, metav1.GetOptions{})
		w.answered(request{s.name, begun}, "get", feature, err)
	case 1:
		_, err = features.List(ctx, metav1.ListOptions{})
	case 2:
		_, err = features.List(ctx, metav1.ListOptions{ResourceVersion: "0"})
	case 3:
		_, err = reports.List(ctx, metav1.ListOptions{Limit: 50})
	case 4:
		_, err = s.kube.AppsV1().StatefulSets(objectNS).List(ctx, metav1.ListOptions{Limit: 100})
	default:
		_, err = s.kube.CoreV1().Nodes().List(ctx, metav1.ListOptions{ResourceVersion: "0"})
	}
	return w.outcome("reading", request{s.name, begun}, err)
}

// watch watches for a moment.
func (w *world) watch(ctx context.Context, random *rand.Rand) error {
	s, begun := w.any(random), time.Now()
	timeout := int64(1 + random.IntN(10))
	options := metav1.ListOptions{TimeoutSeconds: &timeout}
	var watching watch.Interface
	var err error
	switch random.IntN(3) {
	case 0:
		watching, err = s.features.FeaturesV1alpha1().Features(systemNS).Watch(ctx, options)
	case 1:
		watching, err = s.features.FeaturesV1alpha1().FeatureReports(systemNS).Watch(ctx, options)
	default:
		watching, err = s.kube.AppsV1().StatefulSets(objectNS).Watch(ctx, options)
	}
	if err == nil {
		// Some let the server end it, others end it themselves.
		ended := time.After(between(random, 0, 15*time.Second))
		for open := true; open; {
			select {
			case event, ok := <-watching.ResultChan():
				open = ok
				if event.Type == watch.Error {
					err = apierrors.FromObject(event.Object)
				}
			case <-ended:
				open = false
			}
		}
		watching.Stop()
	}
	return w.outcome("watching", request{s.name, begun}, err)
}

// write writes something that has nothing to do with features.
func (w *world) write(ctx context.Context, random *rand.Rand) error {
	s, begun := w.any(random), time.Now()
	maps := s.kube.CoreV1().ConfigMaps(objectNS)
	name := fmt.Sprintf("soaked-%d", random.IntN(50))
	patch := fmt.Sprintf(`{"data":{"some":"%d"}}`, random.IntN(1000))
	_, err := maps.Patch(ctx, name, mergePatch, []byte(patch), metav1.PatchOptions{})
	if apierrors.IsNotFound(err) {
		_, err = maps.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{soaked: "true"}}}, metav1.CreateOptions{})
	}
	return w.outcome("writing", request{s.name, begun}, err)
}

// stats counts. It is safe for concurrent use.
type stats struct {
	mu     sync.Mutex
	counts map[string]int
	// longest is the longest time until all states were as configured, and right
	// until the uses were right.
	longest, right time.Duration
	// transitions that were seen, by feature.
	transitions map[string]int
	// leftovers are those in the end, by kind; nil before.
	leftovers map[string][]string
	// surplus is what there was more of in the end than before, by kind.
	surplus map[string]surplus
	// retained are the reports of processes that crashed within the last hour.
	retained int
	// missed is how many versions of Features were not seen.
	missed atomic.Int64
}

func newStats() *stats { return &stats{counts: map[string]int{}, transitions: map[string]int{}} }

func (s *stats) count(what string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.counts[what]++
}

// closeIdle closes connections that a server and this process keep for later.
func closeIdle(s server) {
	for _, each := range append(s.agents[:], client{s.kube, s.features}) {
		for _, client := range []rest.Interface{each.kube.CoreV1().RESTClient(), each.features.FeaturesV1alpha1().RESTClient()} {
			if c, ok := client.(*rest.RESTClient); ok && c.Client != nil {
				c.Client.CloseIdleConnections()
			}
		}
	}
}

const (
	// mostObjects bounds how many StatefulSets and autoscalers there are, of each.
	mostObjects = 150
)

// objects are what clients store that uses features: StatefulSets with
// maxUnavailable and autoscalers.
type objects struct {
	w *world

	mu     sync.Mutex
	number int
	names  map[string]bool
}

// autoscaler returns one of nothing, in whose status HPAGeneration has a field.
func autoscaler(name string) *autoscalingv2.HorizontalPodAutoscaler {
	return &autoscalingv2.HorizontalPodAutoscaler{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{soaked: "true"}},
		Spec: autoscalingv2.HorizontalPodAutoscalerSpec{
			ScaleTargetRef: autoscalingv2.CrossVersionObjectReference{APIVersion: "apps/v1", Kind: "StatefulSet", Name: name},
			MaxReplicas:    1,
			Metrics: []autoscalingv2.MetricSpec{{Type: autoscalingv2.ResourceMetricSourceType, Resource: &autoscalingv2.ResourceMetricSource{
				Name: "cpu", Target: autoscalingv2.MetricTarget{Type: autoscalingv2.UtilizationMetricType, AverageUtilization: ptr.To[int32](50)},
			}}},
		},
	}
}

// churnObjects makes, changes or deletes a StatefulSet and, for every third, an
// autoscaler.
func (w *world) churnObjects(ctx context.Context, random *rand.Rand) error {
	o := w.objects
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

// removeAll deletes all, remembered or not.
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
