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

package fleet

import (
	"context"
	"errors"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"

	"k8s.io/kubernetes-features/test/benchmark/testbed"
	"k8s.io/kubernetes-features/test/utils/localcluster"
)

// patience bounds waits for what takes seconds.
const patience = 5 * time.Minute

// Templates runs a real node for a while and takes what its kubelet and its
// kube-proxy have reported by then: a process reports what it asks for later a minute
// after its first report.
func Templates(ctx context.Context, bed *testbed.Bed, wait time.Duration) (result map[string]Template, err error) {
	node := localcluster.NodeName(1)
	c, err := bed.Start(ctx, localcluster.Config{Nodes: 1, Only: []string{localcluster.Etcd, localcluster.APIServer, localcluster.Kubelet(node), localcluster.Proxy(node)}})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	result = map[string]Template{}
	for _, component := range []string{Kubelet, KubeProxy} {
		report, err := lastReport(ctx, c, component, wait)
		if err != nil {
			return nil, fmt.Errorf("%w; the end of the log of %s:\n%s", err, component, c.Log(component+"/"+node, 20))
		}
		result[component] = TemplateOf(report)
		bed.Say("a %s reports %d features", component, len(report.Spec.Features))
		// The other one has had its time, too.
		wait = 0
	}
	return result, nil
}

// lastReport follows the report of a component for a while, and in any case until
// there is one.
func lastReport(ctx context.Context, c *testbed.Cluster, component string, wait time.Duration) (*v1alpha1.FeatureReport, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	events, err := c.Features.FeaturesV1alpha1().FeatureReports(metav1.NamespaceSystem).Watch(ctx, metav1.ListOptions{FieldSelector: "spec.component=" + component})
	if err != nil {
		return nil, err
	}
	defer events.Stop()
	var last *v1alpha1.FeatureReport
	for enough := time.After(wait); ; {
		select {
		case event, ok := <-events.ResultChan():
			report, is := event.Object.(*v1alpha1.FeatureReport)
			switch {
			case !ok:
				return nil, fmt.Errorf("no %s has reported: %w", component, ctx.Err())
			case !is:
				return nil, fmt.Errorf("watching reports of %s: %v", component, event.Object)
			}
			if last = report; wait == 0 {
				return last, nil
			}
		case <-enough:
			if wait = 0; last != nil {
				return last, nil
			}
		}
	}
}
