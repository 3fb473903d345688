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

package controlplane

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
)

// GarbageCollector is the identity of the garbage collector of kube-controller-manager
// (k8s.io/kubernetes/cmd/kube-controller-manager/names and --use-service-account-credentials).
// The server flow impersonates it to collect dependents of objects whose API is no longer
// served. The role system:controller:generic-garbage-collector permits that, so the flow's own
// role need not permit to list and delete everything.
var GarbageCollector = serviceaccount.MakeUsername(metav1.NamespaceSystem, "generic-garbage-collector")

// newCollectorClient makes a client of this server that acts as the garbage collector.
func newCollectorClient(loopback *rest.Config) (metadata.Interface, error) {
	config := rest.CopyConfig(loopback)
	config.Impersonate = rest.ImpersonationConfig{UserName: GarbageCollector}
	config.UserAgent = "feature-lifecycle"
	config.QPS = -1
	return metadata.NewForConfig(config)
}
