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

package observe

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/pager"
)

// nodes reads the kubelets of Nodes.
func (r *reader) nodes(ctx context.Context) {
	nodes, err := r.listNodes(ctx)
	if err != nil {
		why, next := explain(ctx, err, "list nodes")
		r.gap(Gap{Component: Kubelet, Why: "which there are is not known: " + why, Next: next})
		return
	}
	asked := sample(nodes, r.options.Nodes)
	r.mu.Lock()
	r.found.Nodes, r.found.Asked = len(nodes), len(asked)
	r.mu.Unlock()
	r.expect(len(asked))
	// Where the first is refused, so are all others.
	var refused atomic.Pointer[Gap]
	var all sync.WaitGroup
	next := make(chan corev1.Node)
	for range min(r.options.Parallel, len(asked)) {
		all.Go(func() {
			for node := range next {
				r.kubelet(ctx, &node, &refused)
				r.finish()
			}
		})
	}
	for _, node := range asked {
		next <- node
	}
	close(next)
	all.Wait()
}

// listNodes reads all Nodes, in pages, without what is not needed of them.
func (r *reader) listNodes(ctx context.Context) ([]corev1.Node, error) {
	var nodes []corev1.Node
	list := pager.New(func(ctx context.Context, opts metav1.ListOptions) (runtime.Object, error) {
		return r.client.CoreV1().Nodes().List(ctx, opts)
	})
	err := list.EachListItem(ctx, metav1.ListOptions{}, func(object runtime.Object) error {
		node, ok := object.(*corev1.Node)
		if !ok {
			return fmt.Errorf("the server sent a %T", object)
		}
		kept := corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: node.Name}}
		kept.Status.NodeInfo.KubeletVersion = node.Status.NodeInfo.KubeletVersion
		nodes = append(nodes, kept)
		return nil
	})
	return nodes, err
}

// sample returns n of some Nodes, spread evenly; all for 0.
func sample(nodes []corev1.Node, n int) []corev1.Node {
	if n <= 0 || n >= len(nodes) {
		return nodes
	}
	var some []corev1.Node
	for i := range n {
		some = append(some, nodes[i*len(nodes)/n])
	}
	return some
}

// kubelet reads one: its metrics have all values, its configuration those that are set,
// flags included. Where it does not show that, its flags are read, which lack what only its
// file sets.
func (r *reader) kubelet(ctx context.Context, node *corev1.Node, refused *atomic.Pointer[Gap]) {
	if gap := refused.Load(); gap != nil {
		r.gap(Gap{Component: gap.Component, Instances: []string{node.Name}, Why: gap.Why, Next: gap.Next})
		return
	}
	client := r.client.CoreV1().RESTClient()
	path := "/api/v1/nodes/" + node.Name + "/proxy"
	p := Process{Component: Kubelet, Instance: node.Name, Node: node.Name, Version: node.Status.NodeInfo.KubeletVersion, Gates: map[string]Value{}}
	s, metricsErr := r.scrape(ctx, client, path+"/metrics")
	if metricsErr == nil {
		p.Complete, p.Gates = true, sourced(s.gates, "its metrics")
		r.conflicts(p, s)
	}
	set, err := r.configured(ctx, path)
	switch {
	case err == nil:
		explicitly(p.Gates, set, "its configuration (configz)")
	case refusedByServer(err) && refusedByServer(metricsErr):
		// The proxy is refused, whatever the path.
	default:
		var body []byte
		if body, err = r.bytes(ctx, client, path+"/flagz", flagzAccept); err == nil {
			set, err = parseFlagz(body)
		}
		if err == nil {
			p.Unread = true
			setBy(p.Gates, set, "its /flagz")
		}
	}
	if metricsErr == nil || err == nil && !p.Unread {
		r.process(p)
		return
	}
	why, next := explain(ctx, metricsErr, "get nodes/proxy")
	if refusedBehindProxy(metricsErr) {
		why, next = "not permitted, and not by the API server: "+message(metricsErr), "permission for the API server's own client (ClusterRole system:kubelet-api-admin)"
	}
	gap := Gap{Component: Kubelet, Why: why, Next: next}
	if p.Unread {
		gap.Why += "; only what its flags set is known, and not what its configuration sets"
		r.process(p)
	} else if refusedByServer(metricsErr) {
		refused.CompareAndSwap(nil, &gap)
	}
	gap.Instances = []string{node.Name}
	r.gap(gap)
}

// refusedBehindProxy is true for a refusal that is not the API server's, which answers with a Status: the kubelet does
// not let the API server in, and no permission of the caller changes that.
func refusedBehindProxy(err error) bool {
	return (apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err)) && apierrors.IsUnexpectedServerError(err)
}

// refusedByServer is true where the API server does not let the caller use the proxy, of whatever node.
func refusedByServer(err error) bool { return apierrors.IsForbidden(err) && !refusedBehindProxy(err) }

// configured are the gates that a kubelet is told by its configuration and its flags,
// which are one by then.
func (r *reader) configured(ctx context.Context, path string) (map[string]bool, error) {
	body, err := r.bytes(ctx, r.client.CoreV1().RESTClient(), path+"/configz", "application/json")
	if err != nil {
		return nil, err
	}
	var answer struct {
		Config *struct {
			FeatureGates map[string]bool `json:"featureGates"`
		} `json:"kubeletconfig"`
	}
	if err := json.Unmarshal(body, &answer); err != nil {
		return nil, fmt.Errorf("its configz: %w", err)
	}
	if answer.Config == nil {
		return nil, fmt.Errorf("its configz has no kubeletconfig")
	}
	return answer.Config.FeatureGates, nil
}
