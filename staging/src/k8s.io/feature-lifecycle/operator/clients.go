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

package operator

import (
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/feature-lifecycle/agent"
	"k8s.io/feature-lifecycle/client/clientset/versioned"
	"k8s.io/feature-lifecycle/lifecycle/task"
)

// clients are those of one replica.
type clients struct {
	// own is for the process itself: its values and its report, which have pauses of
	// their own.
	own versioned.Interface
	// features is for the server flow.
	features versioned.Interface
	// ownKube renews the Lease, kube is for all else.
	ownKube, kube kubernetes.Interface
	tasks         task.Clients
}

func connect(config *rest.Config) (c clients, err error) {
	if c.own, err = versioned.NewForConfig(agent.ClientConfig(config)); err != nil {
		return c, err
	}
	if c.ownKube, err = kubernetes.NewForConfig(agent.ClientConfig(config)); err != nil {
		return c, err
	}
	if c.features, err = versioned.NewForConfig(config); err != nil {
		return c, err
	}
	if c.kube, err = kubernetes.NewForConfig(config); err != nil {
		return c, err
	}
	// Tasks are slowed down by the server's priority and fairness, not by the client.
	unlimited := rest.CopyConfig(config)
	unlimited.QPS, unlimited.RateLimiter = -1, nil
	if c.tasks.Dynamic, err = task.NewDynamicClient(unlimited); err != nil {
		return c, err
	}
	// A task that clears a field does not read the rest of the object back.
	if c.tasks.Metadata, err = metadata.NewForConfig(unlimited); err != nil {
		return c, err
	}
	groups, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return c, err
	}
	c.tasks.Mapper = task.NewMapper(groups)
	// Declarations are held against what the server has.
	c.tasks.OpenAPI = groups.OpenAPIV3()
	return c, nil
}
