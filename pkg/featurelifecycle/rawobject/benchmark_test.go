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

package rawobject

import (
	"fmt"
	"reflect"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
)

// containersOf returns so many containers of some 700 bytes.
func containersOf(n int) (containers []corev1.Container) {
	for i := range n {
		containers = append(containers, corev1.Container{
			Name: fmt.Sprint("c-", i), Image: "registry.example.com/team/application/server:v1.2.3", Command: []string{"/bin/server", "--listen=:8080", "--verbosity=2"},
			Env: []corev1.EnvVar{
				{Name: "POD_NAME", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{APIVersion: "v1", FieldPath: "metadata.name"}}},
				{Name: "SETTINGS", Value: "some settings of the application that are longer than a word"},
			},
			Resources: corev1.ResourceRequirements{
				Limits:   corev1.ResourceList{"cpu": resource.MustParse("2"), "memory": resource.MustParse("2Gi")},
				Requests: corev1.ResourceList{"cpu": resource.MustParse("500m"), "memory": resource.MustParse("1Gi")},
			},
			VolumeMounts:  []corev1.VolumeMount{{Name: "data", MountPath: "/var/lib/data"}, {Name: "kube-api-access-x8v5c", ReadOnly: true, MountPath: "/var/run/secrets/kubernetes.io/serviceaccount"}},
			LivenessProbe: &corev1.Probe{ProbeHandler: corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: "/healthz", Port: intstr.FromInt32(8080), Scheme: "HTTP"}}, TimeoutSeconds: 1, PeriodSeconds: 10},
			Ports:         []corev1.ContainerPort{{Name: "http", ContainerPort: 8080, Protocol: "TCP"}},
			Lifecycle:     &corev1.Lifecycle{StopSignal: ptr.To(corev1.SIGUSR1)},
		})
	}
	return containers
}

// podOf returns a pod with so many containers.
func podOf(containers int) *corev1.Pod {
	pod := &corev1.Pod{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}}
	described().ObjectMeta.DeepCopyInto(&pod.ObjectMeta)
	pod.Labels = map[string]string{"app": "server", "pod-template-hash": "5d78c9869d"}
	pod.Spec = corev1.PodSpec{Containers: containersOf(containers), NodeName: "node-0", Volumes: []corev1.Volume{
		{Name: "data", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}},
		{Name: "config", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: "config"}}}},
	}}
	for i := range containers {
		pod.Status.ContainerStatuses = append(pod.Status.ContainerStatuses, corev1.ContainerStatus{
			Name: fmt.Sprint("c-", i), Ready: true, Image: "registry.example.com/team/application/server:v1.2.3",
			ImageID: "registry.example.com/team/application/server@sha256:0123456789abcdef", ContainerID: "containerd://0123456789abcdef0123456789abcdef",
			State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: *described().DeletionTimestamp}},
		})
	}
	pod.Status.Phase, pod.Status.Conditions = corev1.PodRunning, []corev1.PodCondition{{Type: "Ready", Status: "True"}, {Type: "PodReadyToStartContainers", Status: "True"}}
	return pod
}

// sliceOf returns a ResourceSlice of so many devices.
func sliceOf(devices int) *resourcev1.ResourceSlice {
	slice := &resourcev1.ResourceSlice{TypeMeta: metav1.TypeMeta{APIVersion: "resource.k8s.io/v1", Kind: "ResourceSlice"}}
	described().ObjectMeta.DeepCopyInto(&slice.ObjectMeta)
	slice.Spec = resourcev1.ResourceSliceSpec{Driver: "gpu.example.com", NodeName: ptr.To("node-0"), Pool: resourcev1.ResourcePool{Name: "node-0", Generation: 1, ResourceSliceCount: 1}}
	for i := range devices {
		slice.Spec.Devices = append(slice.Spec.Devices, resourcev1.Device{
			Name: fmt.Sprint("gpu-", i),
			Attributes: map[resourcev1.QualifiedName]resourcev1.DeviceAttribute{
				"model": {StringValue: ptr.To("model of the device")}, "uuid": {StringValue: ptr.To("gpu-18db0e85-99e9-c746-8531-ffeb86328b39")}, "index": {IntValue: ptr.To(int64(i))},
			},
			Capacity: map[resourcev1.QualifiedName]resourcev1.DeviceCapacity{"memory": {Value: resource.MustParse("40Gi")}},
		})
	}
	slice.Spec.Devices[devices-1].Taints = []resourcev1.DeviceTaint{{Key: "k", Effect: "NoSchedule"}}
	return slice
}

// measured are objects of usual sizes, with a field that they hold.
func measured() map[string]struct {
	object runtime.Object
	path   string
} {
	set := &appsv1.StatefulSet{TypeMeta: typedMeta("StatefulSet")}
	described().ObjectMeta.DeepCopyInto(&set.ObjectMeta)
	set.Spec = appsv1.StatefulSetSpec{ServiceName: "s", Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: containersOf(2)}}}
	one := intstr.FromInt32(1)
	set.Spec.UpdateStrategy = appsv1.StatefulSetUpdateStrategy{Type: "RollingUpdate", RollingUpdate: &appsv1.RollingUpdateStatefulSetStrategy{MaxUnavailable: &one}}
	return map[string]struct {
		object runtime.Object
		path   string
	}{
		"StatefulSet":   {set, "spec.updateStrategy.rollingUpdate.maxUnavailable"},
		"Pod":           {podOf(10), "status.conditions[type=PodReadyToStartContainers]"},
		"ResourceSlice": {sliceOf(85), "spec.devices[*].taints"},
	}
}

// BenchmarkField compares a field in the bytes with what decoding alone takes.
func BenchmarkField(b *testing.B) {
	for name, m := range measured() {
		typ := reflect.TypeOf(m.object).Elem()
		field := newField(b, typ, m.path)
		plain := encoded(b, m.object)
		text := encodedJSON(b, m.object)
		b.Run(fmt.Sprintf("%s of %d bytes/Unmarshal", name, len(plain)), func(b *testing.B) {
			o := parsed(b, plain)
			for b.Loop() {
				if err := reflect.New(typ).Interface().(unmarshaler).Unmarshal(o.body); err != nil {
					b.Fatal(err)
				}
			}
		})
		for encoding, plain := range map[string][]byte{"protobuf": plain, "JSON": text} {
			measure(b, fmt.Sprintf("%s of %d bytes/%s", name, len(plain), encoding), field, plain)
		}
	}
}

func measure(b *testing.B, name string, field *Field, plain []byte) {
	b.Run(name+"/Holds", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if has, err := field.Holds(parsed(b, plain)); !has || err != nil {
				b.Fatal(has, err)
			}
		}
	})
	b.Run(name+"/Remove", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			edited, removed, err := field.Remove(parsed(b, plain))
			if removed == 0 || err != nil || len(edited.Bytes()) >= len(plain) {
				b.Fatal(removed, err)
			}
		}
	})
	b.Run(name+"/Disown", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := field.Disown(parsed(b, plain), taker, func(string) bool { return true }); err != nil {
				b.Fatal(err)
			}
		}
	})
}
