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
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"

	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// WorkloadsKey is where etcd has Workloads.
const WorkloadsKey = "/registry/workloads/"

// StoreWorkload stores a Workload in the namespace default, in a version of the API that
// the server need not know: 1.36 stores scheduling.k8s.io/v1alpha2, which 1.37 lacks.
func StoreWorkload(t testing.TB, etcd *clientv3.Client, version, name string) {
	t.Helper()
	object := schedulingv1beta1.Workload{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: name}}
	raw, err := object.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	unknown := runtime.Unknown{TypeMeta: runtime.TypeMeta{APIVersion: version, Kind: "Workload"}, Raw: raw}
	data, err := unknown.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	// The prefix of protobuf in storage (apimachinery's serializer/protobuf).
	if _, err := etcd.Put(t.Context(), WorkloadsKey+metav1.NamespaceDefault+"/"+name, string(append([]byte("k8s\x00"), data...))); err != nil {
		t.Fatalf("storing Workload %s: %v", name, err)
	}
}
