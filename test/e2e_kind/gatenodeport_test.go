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
	"context"
	"errors"
	"fmt"
	"net"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/kubernetes-features/test/e2e_kind/nodeconfig"
)

const (
	// servedPod is the name of the Pod behind a node port, and of its Service. Comments of
	// rules have it, so it must not be like a name of what is looked for there.
	servedPod  = "served"
	servedPort = 8080
	// served is what the Pod answers, and refused what request returns where nothing listens.
	served  = "answered"
	refused = "exit code 7"
)

// servedLabels are those by which the Service finds the Pod.
var servedLabels = map[string]string{"app": servedPod}

// selectLocalhost adds loopback to the addresses with node ports, on which kube-proxy with
// nftables serves them only if that is said. It takes this when it starts again.
func (n *usedNode) selectLocalhost() {
	n.EditKubeProxies(func(data []byte) ([]byte, error) {
		return nodeconfig.SetField(data, []any{"primary", "localhost"}, "nodePortAddresses")
	})
}

// createNodePort creates the Service, to which the server gives a port of nodes.
func (n *usedNode) createNodePort() {
	n.Eventually("the Service to be created", func(ctx context.Context) error {
		_, err := n.Kube.CoreV1().Services(metav1.NamespaceDefault).Create(ctx, &corev1.Service{
			ObjectMeta: metav1.ObjectMeta{Name: servedPod},
			Spec:       corev1.ServiceSpec{Type: corev1.ServiceTypeNodePort, Selector: servedLabels, Ports: []corev1.ServicePort{{Port: servedPort}}},
		}, metav1.CreateOptions{})
		if apierrors.IsAlreadyExists(err) {
			return nil
		}
		return err
	})
}

// hasLocalhostRules returns an error unless kube-proxy has rules and counters for what it
// does not serve on localhost, or has nothing of them.
func (n *usedNode) hasLocalhostRules(wanted bool) error {
	rules := n.shell("nft list table ip kube-proxy")
	texts := []string{"localhost-nodeport"}
	if wanted {
		texts = []string{"chain localhost-nodeport-reject-udp", "counter localhost-nodeport-rejected-udp"}
	}
	for _, text := range texts {
		if strings.Contains(rules, text) != wanted || !strings.Contains(rules, "cluster-ips") {
			return fmt.Errorf("want %q among the rules of kube-proxy: %t; they are:\n%s", text, wanted, rules)
		}
	}
	return nil
}

// servesOnLocalhost returns an error unless the Pod answers at its own address, and the node's
// port on localhost either answers, too, or has no listener.
func (n *usedNode) servesOnLocalhost(wanted bool) error {
	service, err := n.Kube.CoreV1().Services(metav1.NamespaceDefault).Get(n.t.Context(), servedPod, metav1.GetOptions{})
	if err != nil {
		return err
	}
	own := net.JoinHostPort(n.pod(servedPod).Status.PodIP, fmt.Sprint(servedPort))
	local := net.JoinHostPort("127.0.0.1", fmt.Sprint(service.Spec.Ports[0].NodePort))
	expected := refused
	if wanted {
		expected = served
	}
	return errors.Join(want("the answer of the Pod at "+own, n.request(own), served), want("the answer at "+local, n.request(local), expected))
}

// request asks an address of the node by HTTP. It returns the answer, or curl's exit code.
func (n *usedNode) request(address string) string {
	return n.shell(`curl --silent --noproxy "*" --max-time 5 "http://$1/" || echo "exit code $?"`, address)
}
