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

package values

import (
	"fmt"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/kubernetes-features/test/e2e_features/framework"
	"k8s.io/kubernetes-features/test/utils/examplegates"
	"k8s.io/kubernetes-features/test/utils/localcluster"
	"k8s.io/utils/ptr"
)

// servers is a control plane of three kube-apiservers.
type servers struct {
	*framework.Cluster
	t     *testing.T
	names []string
}

// startServers starts etcd and the three, which let the API decide the value of a feature.
func startServers(t *testing.T, feature string) *servers {
	t.Helper()
	s := &servers{t: t}
	config := localcluster.Config{Servers: 3, Only: []string{localcluster.Etcd}, ExtraArgs: map[string][]string{}}
	for i := range config.Servers {
		name := localcluster.Nth(localcluster.APIServer, i+1)
		s.names = append(s.names, name)
		config.ExtraArgs[name] = []string{"--dynamic-features=" + feature, "--feature-settle-period=1s", "--feature-grace-period=5s"}
	}
	config.Only = append(config.Only, s.names...)
	s.Cluster = framework.Start(t, config)
	return s
}

// signal is what containers get at their end. Its field belongs to the feature.
const signal = corev1.SIGUSR1

// create makes a StatefulSet with the feature's field through one server, which drops
// the field while the feature is off.
func (s *servers) create(server, name string) *appsv1.StatefulSet {
	s.t.Helper()
	object := framework.PlainStatefulSet(name)
	pod := &object.Spec.Template.Spec
	pod.OS = &corev1.PodOS{Name: corev1.Linux}
	pod.Containers[0].Lifecycle = &corev1.Lifecycle{StopSignal: ptr.To(signal)}
	created, err := kubernetes.NewForConfigOrDie(s.ConfigOf(server)).AppsV1().StatefulSets(metav1.NamespaceDefault).Create(s.t.Context(), object, metav1.CreateOptions{})
	if err != nil {
		s.t.Fatalf("creating %s through %s: %v", name, server, err)
	}
	return created
}

// uses reports whether a StatefulSet has the feature's field.
func uses(object *appsv1.StatefulSet) bool {
	lifecycle := object.Spec.Template.Spec.Containers[0].Lifecycle
	return lifecycle != nil && lifecycle.StopSignal != nil
}

// wait waits until a number of servers have asked and have the value, and no
// server has the other one.
func (s *servers) wait(feature string, on bool, count int) {
	s.t.Helper()
	s.WaitForReports(fmt.Sprintf("in which %d servers have %s=%t", count, feature, on), func(reports []v1alpha1.FeatureReport) bool {
		have := 0
		for _, r := range reports {
			f := framework.Reported([]v1alpha1.FeatureReport{r}, localcluster.APIServer, feature)
			if f != nil && f.Enabled == on {
				have++
			}
		}
		return have == count
	})
}

// TestThreeServersFollow: a value that is written through one kube-apiserver is
// used by all, also by one that was not there, from its first request on.
func TestThreeServersFollow(t *testing.T) {
	t.Parallel()
	const feature = examplegates.Dynamic
	s := startServers(t, feature)
	for i, server := range s.names {
		if object := s.create(server, fmt.Sprintf("off-%d", i)); uses(object) {
			t.Errorf("%s keeps the field of a feature that is off in %s", server, object.Name)
		}
	}
	s.wait(feature, false, 3)
	s.Request(feature, `{"enabled":true}`)
	s.wait(feature, true, 3)
	s.WaitForFeature(feature, "On", func(f *v1alpha1.Feature) bool { return f.Status.State == v1alpha1.StateOn })

	// The last server's own value is the default, off.
	away := s.names[2]
	s.MustKill(away)
	s.MustStart(away)
	for i, server := range s.names {
		if object := s.create(server, fmt.Sprintf("on-%d", i)); !uses(object) {
			t.Errorf("%s drops the field of a feature that is on from %s", server, object.Name)
		}
	}

	// It is off for two servers while the third is down, and for the third from
	// its start on. Nothing is left of it.
	s.MustKill(away)
	s.Request(feature, `{"enabled":false}`)
	s.WaitForFeature(feature, "to be turned off", func(f *v1alpha1.Feature) bool {
		return f.Status.State == v1alpha1.StateTurningOff || f.Status.State == v1alpha1.StateOff
	})
	s.MustStart(away)
	if object := s.create(away, "again"); uses(object) {
		t.Errorf("%s keeps the field of a feature that was turned off while it was down in %s", away, object.Name)
	}
	// It waits for objects that have the field, which users delete.
	s.WaitForFeature(feature, "Blocked", func(f *v1alpha1.Feature) bool {
		progressing := meta.FindStatusCondition(f.Status.Conditions, v1alpha1.ConditionProgressing)
		return progressing != nil && progressing.Reason == v1alpha1.ReasonBlocked && strings.Contains(progressing.Message, "default/on-")
	})
	for i := range s.names {
		if err := s.Kube.AppsV1().StatefulSets(metav1.NamespaceDefault).Delete(t.Context(), fmt.Sprintf("on-%d", i), metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	s.WaitForFeature(feature, "Off", func(f *v1alpha1.Feature) bool { return f.Status.State == v1alpha1.StateOff })
	sets, err := s.Kube.AppsV1().StatefulSets(metav1.NamespaceDefault).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if len(sets.Items) != 4 {
		t.Errorf("there are %d StatefulSets, want the 4 that were created while the feature was off", len(sets.Items))
	}
	for i := range sets.Items {
		if uses(&sets.Items[i]) {
			t.Errorf("%s has the feature's field after it was turned off", sets.Items[i].Name)
		}
	}
}
