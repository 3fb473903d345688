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

package controlplane

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/feature-lifecycle/client/clientset/versioned"
	"k8s.io/feature-lifecycle/lifecycle/control"
	"k8s.io/feature-lifecycle/values"
	"k8s.io/kubernetes-features/pkg/featurelifecycle/reporting"
	controlplaneapiserver "k8s.io/kubernetes/pkg/controlplane/apiserver"
)

// ownAnswer is how long a server that starts waits for its own answer about the
// values of dynamic features.
const ownAnswer = 30 * time.Second

// newFollower makes this server follow the values of its dynamic features like
// any other component, over its own loopback connection. It is nil if there are
// none.
func newFollower(clients *lifecycleClients, serverID string, decides control.Options) (*values.Follower, error) {
	if len(decides.Dynamic) == 0 {
		return nil, nil
	}
	return values.New(values.Config{
		Namespace:   metav1.NamespaceSystem,
		Component:   controlplaneapiserver.KubeAPIServer,
		Instance:    serverID,
		Gate:        reporting.Install(),
		Connect:     func() (versioned.Interface, error) { return clients.features, nil },
		Patience:    ownAnswer,
		AlwaysWatch: true,
		Only:        decides.Follows,
	})
}
