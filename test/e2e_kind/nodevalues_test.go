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

package e2ekind

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/kubernetes-features/test/e2e_features/framework"
	"k8s.io/kubernetes/pkg/features"
)

// qosReserved has kubelet lower the memory limits of the cgroups of QoS classes, which stay.
func (n *realNode) qosReserved(t *testing.T) {
	gate := string(features.QOSReserved)
	limits := func() string {
		const files = `find /sys/fs/cgroup -path "*kubepods-b*.slice/memory.limit_in_bytes" ! -path "*-pod*"`
		return n.Exec(n.name, "sh", "-c", "for file in $("+files+"); do cat $file; done")
	}
	was := limits()
	if was == "" {
		t.Skip("the cgroups of QoS classes have no memory.limit_in_bytes: this is not cgroup v1")
	}
	n.restart(gate, true, map[string]any{"qosReserved": map[string]any{"memory": "50%"}})
	framework.Eventually(t, "lower limits of memory", func() error {
		if now := limits(); now == was {
			return fmt.Errorf("they are %q", now)
		}
		return nil
	})
	lowered := limits()
	n.restart(gate, false, nil)
	if now := limits(); now != lowered {
		t.Errorf("the limits were %q, with the gate on %q, and are %q with it off again", was, lowered, now)
	}
	n.restart(gate, false, map[string]any{"qosReserved": nil})
}

// http2Probe changes how kubelet defaults probes, and with that the UIDs of static pods with
// probes by HTTP: kubelet starts them again.
func (n *realNode) http2Probe(t *testing.T) {
	gate := string(features.H2CContainerProbe)
	container := func() string {
		return strings.TrimSpace(n.Exec(n.name, "crictl", "ps", "--quiet", "--name", "^etcd$"))
	}
	was := container()
	n.restart(gate, true, nil)
	framework.Eventually(t, "another container of etcd", func() error {
		if now := container(); now == "" || now == was {
			return fmt.Errorf("the containers are %q, and were %q", now, was)
		}
		return nil
	})
	was = container()
	n.restart(gate, false, nil)
	framework.Eventually(t, "another container of etcd with the gate off", func() error {
		if now := container(); now == "" || now == was {
			return fmt.Errorf("the containers are %q, and were %q", now, was)
		}
		return nil
	})
}
