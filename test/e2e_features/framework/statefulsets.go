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
	"fmt"
	"strings"

	clientv3 "go.etcd.io/etcd/client/v3"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/ptr"
)

// StatefulSetsKey is where etcd has the StatefulSets of the namespace default.
const StatefulSetsKey = "/registry/statefulsets/" + metav1.NamespaceDefault + "/"

// StatefulSet is one without pods that uses MaxUnavailableStatefulSet.
func StatefulSet(name string, maxUnavailable intstr.IntOrString) *appsv1.StatefulSet {
	labels := map[string]string{"app": name}
	return &appsv1.StatefulSet{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: appsv1.StatefulSetSpec{
			Replicas:    ptr.To[int32](0),
			ServiceName: name,
			Selector:    &metav1.LabelSelector{MatchLabels: labels},
			UpdateStrategy: appsv1.StatefulSetUpdateStrategy{
				Type:          appsv1.RollingUpdateStatefulSetStrategyType,
				RollingUpdate: &appsv1.RollingUpdateStatefulSetStrategy{MaxUnavailable: &maxUnavailable},
			},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "example.invalid/c"}}},
			},
		},
	}
}

// StoredStatefulSet is a StatefulSet as etcd has it: without defaults, which a
// server with the gate on would add to what it shows.
type StoredStatefulSet struct {
	*appsv1.StatefulSet
	// Revision is etcd's at the last write, Writes how many there were.
	Revision, Writes int64
}

// StoredStatefulSets reads all StatefulSets of the namespace default from etcd.
func StoredStatefulSets(ctx context.Context, etcd *clientv3.Client) (map[string]StoredStatefulSet, error) {
	response, err := etcd.Get(ctx, StatefulSetsKey, clientv3.WithPrefix())
	if err != nil {
		return nil, fmt.Errorf("reading StatefulSets from etcd: %w", err)
	}
	result := map[string]StoredStatefulSet{}
	for _, kv := range response.Kvs {
		set, err := DecodeStatefulSet(kv.Value)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", kv.Key, err)
		}
		result[strings.TrimPrefix(string(kv.Key), StatefulSetsKey)] = StoredStatefulSet{set, kv.ModRevision, kv.Version}
	}
	return result, nil
}

// DecodeStatefulSet reads one as etcd has it.
func DecodeStatefulSet(data []byte) (*appsv1.StatefulSet, error) {
	set := &appsv1.StatefulSet{}
	_, _, err := scheme.Codecs.UniversalDeserializer().Decode(data, nil, set)
	return set, err
}

// HasMaxUnavailable is true for an object with the field that the gate
// MaxUnavailableStatefulSet guards.
func HasMaxUnavailable(set *appsv1.StatefulSet) bool {
	return set.Spec.UpdateStrategy.RollingUpdate != nil && set.Spec.UpdateStrategy.RollingUpdate.MaxUnavailable != nil
}

// WithoutMaxUnavailable is what clearing that field has to leave as it was (S7).
func WithoutMaxUnavailable(set *appsv1.StatefulSet) *appsv1.StatefulSet {
	set = set.DeepCopy()
	if set.Spec.UpdateStrategy.RollingUpdate != nil {
		set.Spec.UpdateStrategy.RollingUpdate.MaxUnavailable = nil
	}
	set.ResourceVersion, set.Generation, set.ManagedFields = "", 0, nil
	return set
}
