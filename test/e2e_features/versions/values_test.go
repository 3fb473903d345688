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

package versions

import (
	"context"
	"fmt"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/kubernetes-features/test/e2e_features/framework"
	"k8s.io/kubernetes-features/test/utils/localcluster"
)

// followed is a dynamic feature that kube-controller-manager of either version queries when
// it chooses which Pod of a ReplicaSet to delete. No other process does.
const followed = "PodDeletionCost"

// skewed is a cluster of which some processes are this repository's of the minor version
// before. Servers of that have no FeatureValues, and processes of that do not read them.
type skewed struct {
	*framework.Cluster
	// binaries has the files of components, read at each start.
	binaries map[string]string
}

// startSkewed starts the cluster, of which these are of before.
func startSkewed(t *testing.T, servers int, before ...string) *skewed {
	t.Helper()
	s := &skewed{binaries: map[string]string{}}
	for _, name := range before {
		component := localcluster.APIServer
		if name == localcluster.ControllerManager {
			component = name
		}
		s.binaries[name] = framework.PreviousFeatures(t, component)
	}
	config := localcluster.Config{Servers: servers, Only: []string{localcluster.Etcd, localcluster.ControllerManager}, Binaries: s.binaries, ExtraArgs: map[string][]string{}}
	for i := range servers {
		name := localcluster.Nth(localcluster.APIServer, i+1)
		config.Only = append(config.Only, name)
		config.ExtraArgs[name] = append([]string{"--dynamic-features=" + followed}, flags...)
	}
	s.Cluster = framework.Start(t, config)
	labels := map[string]string{"app": "followed"}
	_, err := s.Kube.AppsV1().ReplicaSets(metav1.NamespaceDefault).Create(t.Context(), &appsv1.ReplicaSet{
		ObjectMeta: metav1.ObjectMeta{Name: "followed"},
		Spec: appsv1.ReplicaSetSpec{
			Replicas: new(int32(2)), Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "example"}}}},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	s.query(t)
	return s
}

// query has kube-controller-manager query the feature.
func (s *skewed) query(t *testing.T) {
	t.Helper()
	sets := s.Kube.AppsV1().ReplicaSets(metav1.NamespaceDefault)
	for _, replicas := range []int32{2, 1} {
		if _, err := sets.Patch(t.Context(), "followed", types.MergePatchType, fmt.Appendf(nil, `{"spec":{"replicas":%d}}`, replicas), metav1.PatchOptions{}); err != nil {
			t.Fatal(err)
		}
		err := wait.PollUntilContextTimeout(t.Context(), 100*time.Millisecond, 2*time.Minute, true, func(ctx context.Context) (bool, error) {
			set, err := sets.Get(ctx, "followed", metav1.GetOptions{})
			return err == nil && set.Status.ObservedGeneration == set.Generation && set.Status.Replicas == replicas, nil
		})
		if err != nil {
			t.Fatalf("the ReplicaSet has not %d Pods: %v", replicas, err)
		}
	}
}

// follow waits until kube-controller-manager has a value, and the transition to it has ended.
func (s *skewed) follow(t *testing.T, value bool) {
	t.Helper()
	state := v1alpha1.StateOff
	if value {
		state = v1alpha1.StateOn
	}
	s.WaitForValue("kube-controller-manager", followed, value)
	s.WaitForFeature(followed, string(state), func(f *v1alpha1.Feature) bool { return f.Status.State == state })
}

// flip asks for values in turn, and waits for each.
func (s *skewed) flip(t *testing.T, values ...bool) {
	t.Helper()
	for _, value := range values {
		s.Request(followed, fmt.Sprintf(`{"enabled":%t}`, value))
		s.follow(t, value)
	}
}

// exchange replaces the binary of a component by this version's.
func (s *skewed) exchange(name string) {
	s.MustStop(name)
	delete(s.binaries, name)
	s.MustStart(name)
}

// TestProcessesFollowServersOfBefore: they find no FeatureValues, and watch Features. When
// the servers are exchanged one by one, no value that was requested meanwhile is missed,
// whichever of the servers published it.
func TestProcessesFollowServersOfBefore(t *testing.T) {
	t.Parallel()
	first, second := localcluster.APIServer, localcluster.Nth(localcluster.APIServer, 2)
	s := startSkewed(t, 2, first, second)
	s.follow(t, true)
	s.flip(t, false, true, false)
	// The process is connected to the first.
	s.exchange(first)
	s.Request(followed, `{"enabled":true}`)
	s.exchange(second)
	s.follow(t, true)
	s.flip(t, false, true)
}

// TestServersServeProcessesOfBefore: they watch Features and report whole lists. When they
// are exchanged they follow FeatureValues as all others do.
func TestServersServeProcessesOfBefore(t *testing.T) {
	t.Parallel()
	s := startSkewed(t, 1, localcluster.ControllerManager)
	s.follow(t, true)
	s.flip(t, false, true)
	s.exchange(localcluster.ControllerManager)
	s.query(t)
	s.flip(t, false, true)
}
