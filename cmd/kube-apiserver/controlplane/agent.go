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
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/component-base/version"
	"k8s.io/feature-lifecycle/agent"
	"k8s.io/feature-lifecycle/client/clientset/versioned"
	"k8s.io/feature-lifecycle/lifecycle/control"
	"k8s.io/kubernetes-features/pkg/featurelifecycle/reporting"
	controlplaneapiserver "k8s.io/kubernetes/pkg/controlplane/apiserver"
)

// ownLoadTimeout limits the time for which a starting server waits for its own response
// about the values of dynamic features.
const ownLoadTimeout = 30 * time.Second

// newAgent returns the agent of this server, over its own loopback connection. Like the
// agent of any other component, it reports the server's gates and follows the values of
// dynamic features, if there are any.
func newAgent(clients *lifecycleClients, serverID string, options control.Options) (*agent.Agent, error) {
	gate := reporting.Install()
	config := agent.Config{Reporter: agent.ReporterConfig{
		Namespace:      metav1.NamespaceSystem,
		Component:      controlplaneapiserver.KubeAPIServer,
		Instance:       serverID,
		BinaryVersion:  version.Get().GitVersion,
		ListAll:        true,
		LeaseNamespace: metav1.NamespaceSystem,
		Source:         options.Source(gate),
		Clients:        agent.Clients{Features: clients.features, Kube: clients.kube},
	}}
	if len(options.Dynamic) > 0 {
		config.Syncer = &agent.SyncerConfig{
			Gate:        gate,
			Connect:     func() (versioned.Interface, error) { return clients.features, nil },
			LoadTimeout: ownLoadTimeout,
			AlwaysWatch: true,
			Filter:      options.Follows,
		}
	}
	return agent.New(config)
}
