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

package controller

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/feature-lifecycle/lifecycle"
)

// TestUpgradeOfMissingKubeletShown although its Node stays what it is otherwise.
func TestUpgradeOfMissingKubeletShown(t *testing.T) {
	inWorld(t, func(w *world) {
		w.report("server", "s1", gate("A", false))
		w.serve("s1")
		for _, version := range []string{"v1.34.0", "v1.35.0"} {
			w.put(nodesResource, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1"}, Status: corev1.NodeStatus{
				Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}},
				NodeInfo:   corev1.NodeSystemInfo{KubeletVersion: version},
			}}, "")
			w.until(2*reportingDelay, "the version "+version+" is shown", func() bool {
				w.mu.Lock()
				defer w.mu.Unlock()
				f := w.stored("A")
				return f != nil && slices.ContainsFunc(f.Status.Uses, func(u v1alpha1.FeatureUse) bool {
					return u.Component == kubelet && u.Version == version && u.Expected == 1
				})
			})
		}
	}, lifecycle.Feature{Name: "A"})
}
