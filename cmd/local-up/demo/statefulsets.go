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

package demo

import (
	"context"
	"fmt"
	"maps"
	"time"

	"github.com/google/go-cmp/cmp"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/ptr"
)

// untouched is the StatefulSet that never has the field: defaulting writes it
// into those of the strategy RollingUpdate.
const untouched = "on-delete"

var names = []string{"web", "cache", "queue", untouched}

func (s *story) createStatefulSets(ctx context.Context) error {
	_, err := s.kube.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return err
	}
	rolling := func(maxUnavailable intstr.IntOrString) appsv1.StatefulSetUpdateStrategy {
		return appsv1.StatefulSetUpdateStrategy{
			Type:          appsv1.RollingUpdateStatefulSetStrategyType,
			RollingUpdate: &appsv1.RollingUpdateStatefulSetStrategy{MaxUnavailable: &maxUnavailable},
		}
	}
	strategies := map[string]appsv1.StatefulSetUpdateStrategy{
		"web":     rolling(intstr.FromInt32(2)),
		"cache":   rolling(intstr.FromString("50%")),
		"queue":   {}, // defaulted to RollingUpdate, with maxUnavailable 1
		untouched: {Type: appsv1.OnDeleteStatefulSetStrategyType},
	}
	for _, name := range names {
		_, err := s.kube.AppsV1().StatefulSets(namespace).Create(ctx, statefulSet(name, strategies[name]), metav1.CreateOptions{})
		if err != nil {
			return fmt.Errorf("creating StatefulSet %s: %w", name, err)
		}
	}
	return nil
}

func statefulSet(name string, strategy appsv1.StatefulSetUpdateStrategy) *appsv1.StatefulSet {
	labels := map[string]string{"app": name}
	return &appsv1.StatefulSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: labels, Annotations: map[string]string{"demo/owner": "team-a"}},
		Spec: appsv1.StatefulSetSpec{
			Replicas:       ptr.To[int32](2),
			ServiceName:    name,
			Selector:       &metav1.LabelSelector{MatchLabels: labels},
			UpdateStrategy: strategy,
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec: corev1.PodSpec{
					TerminationGracePeriodSeconds: ptr.To[int64](1),
					Containers:                    []corev1.Container{{Name: "main", Image: "example.invalid/demo"}},
				},
			},
		},
	}
}

// settled waits until the StatefulSets' controllers have nothing more to do, and
// returns them.
func (s *story) settled(ctx context.Context) (map[string]*appsv1.StatefulSet, error) {
	var sets map[string]*appsv1.StatefulSet
	var missing string
	err := wait.PollUntilContextTimeout(ctx, 500*time.Millisecond, patience, true, func(ctx context.Context) (bool, error) {
		list, err := s.kube.AppsV1().StatefulSets(namespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			return false, err
		}
		sets = map[string]*appsv1.StatefulSet{}
		for i := range list.Items {
			set := &list.Items[i]
			if set.Status.ObservedGeneration != set.Generation || set.Status.AvailableReplicas != *set.Spec.Replicas {
				missing = fmt.Sprintf("StatefulSet %s has %d of %d pods available", set.Name, set.Status.AvailableReplicas, *set.Spec.Replicas)
				return false, nil
			}
			sets[set.Name] = set
		}
		return len(sets) == len(names), nil
	})
	if err != nil {
		return nil, fmt.Errorf("waiting for the StatefulSets: %w (%s)", err, missing)
	}
	return sets, nil
}

func maxUnavailable(set *appsv1.StatefulSet) string {
	if rolling := set.Spec.UpdateStrategy.RollingUpdate; rolling != nil && rolling.MaxUnavailable != nil {
		return rolling.MaxUnavailable.String()
	}
	return ""
}

// compare checks that the field is gone and that nothing else changed.
func (s *story) compare(before, after map[string]*appsv1.StatefulSet) error {
	if diff := cmp.Diff(keys(before), keys(after)); diff != "" {
		return fmt.Errorf("StatefulSets came or went (-before +after):\n%s", diff)
	}
	for _, name := range names {
		was, is := before[name], after[name]
		if value := maxUnavailable(is); value != "" {
			return fmt.Errorf("StatefulSet %s still has %s: %s", name, field, value)
		}
		if diff := cmp.Diff(rest(was), rest(is)); diff != "" {
			return fmt.Errorf("StatefulSet %s changed elsewhere (-before +after):\n%s", name, diff)
		}
		if name == untouched {
			if was.Generation != is.Generation || managers(was) != managers(is) {
				return fmt.Errorf("StatefulSet %s never had the field and was written: generation %d, now %d", name, was.Generation, is.Generation)
			}
			s.say("%-10s never had the field: not written (resourceVersion %s, now %s)", name, was.ResourceVersion, is.ResourceVersion)
			continue
		}
		s.say("%-10s maxUnavailable %s is gone, all else is as it was", name, maxUnavailable(was))
	}
	return nil
}

// rest is what has to stay as it was: everything but the field and what follows
// from any write. The controllers' status is theirs.
func rest(set *appsv1.StatefulSet) *appsv1.StatefulSet {
	set = set.DeepCopy()
	if set.Spec.UpdateStrategy.RollingUpdate != nil {
		set.Spec.UpdateStrategy.RollingUpdate.MaxUnavailable = nil
	}
	set.ResourceVersion, set.Generation, set.ManagedFields = "", 0, nil
	set.Status = appsv1.StatefulSetStatus{}
	return set
}

// managers names who wrote the spec.
func managers(set *appsv1.StatefulSet) string {
	text := ""
	for _, entry := range set.ManagedFields {
		if entry.Subresource == "" {
			text += entry.Manager + " "
		}
	}
	return text
}

func keys(sets map[string]*appsv1.StatefulSet) map[string]bool {
	result := map[string]bool{}
	for name := range maps.Keys(sets) {
		result[name] = true
	}
	return result
}
