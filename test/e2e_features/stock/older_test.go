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

package stock

import (
	"strings"
	"testing"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/kubernetes-features/test/e2e_features/framework"
	"k8s.io/kubernetes-features/test/utils/localcluster"
	"k8s.io/utils/ptr"
)

// tolerance is beta in 1.35 and 1.36. It has a field, which its tasks clear.
const tolerance = "HPAConfigurableTolerance"

// tolerant is an autoscaler with tolerances of either direction, "" for none.
func tolerant(name, up, down string) *autoscalingv2.HorizontalPodAutoscaler {
	rules := func(text string) *autoscalingv2.HPAScalingRules {
		r := &autoscalingv2.HPAScalingRules{SelectPolicy: ptr.To(autoscalingv2.MaxChangePolicySelect)}
		if text != "" {
			r.Tolerance = ptr.To(resource.MustParse(text))
		}
		return r
	}
	return &autoscalingv2.HorizontalPodAutoscaler{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: metav1.NamespaceDefault},
		Spec: autoscalingv2.HorizontalPodAutoscalerSpec{
			ScaleTargetRef: autoscalingv2.CrossVersionObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Name: name},
			MaxReplicas:    3,
			Behavior:       &autoscalingv2.HorizontalPodAutoscalerBehavior{ScaleUp: rules(up), ScaleDown: rules(down)},
		},
	}
}

// checkOlderLeftovers: what a gate of an older version leaves is counted by field, and
// removed.
func checkOlderLeftovers(t *testing.T, c *framework.Cluster) {
	t.Helper()
	k, scalers := c.Kubectl(""), c.Kube.AutoscalingV2().HorizontalPodAutoscalers(metav1.NamespaceDefault)
	for _, scaler := range []*autoscalingv2.HorizontalPodAutoscaler{tolerant("both", "0.2", "0.3"), tolerant("up", "0.1", ""), tolerant("none", "", "")} {
		created, err := scalers.Create(t.Context(), scaler, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if (created.Spec.Behavior.ScaleUp.Tolerance == nil) != (scaler.Spec.Behavior.ScaleUp.Tolerance == nil) {
			t.Fatalf("the server stores %+v, want the tolerance that was sent", created.Spec.Behavior.ScaleUp)
		}
	}
	// Users are counted by object, and leftovers by field.
	const users, fields = 2, 3
	output, complaint := k.Run(t, "feature", "list", "--in-use", "-o", "json")
	if n := counted(t, output, tolerance, true); n != users {
		t.Errorf("%d objects use %s, want %d: %s\n%s", n, tolerance, users, complaint, output)
	}

	c.MustRestartWith(tolerance+"=false", localcluster.APIServer)
	output, complaint = k.Run(t, "feature", "leftovers", tolerance, "-o", "json")
	if !strings.HasPrefix(output, "{") {
		t.Fatalf("leftovers: %s\n%s", complaint, output)
	}
	if n := counted(t, output, tolerance, false); n != fields {
		t.Errorf("%d leftovers of %s, want %d: %s\n%s", n, tolerance, fields, complaint, output)
	}
	output, complaint = k.Run(t, "feature", "clean", "--client", unseen, tolerance)
	if complaint != "" || !strings.Contains(output, tolerance+": nothing is left\n") {
		t.Errorf("the clean-up: %s\n%s", complaint, output)
	}
	output, complaint = k.Run(t, "feature", "leftovers", tolerance, "-o", "json")
	if n := counted(t, output, tolerance, false); n != 0 {
		t.Errorf("%d leftovers after the clean-up: %s\n%s", n, complaint, output)
	}
	both, err := scalers.Get(t.Context(), "both", metav1.GetOptions{})
	if err != nil || both.Spec.Behavior.ScaleUp.Tolerance != nil || both.Spec.Behavior.ScaleUp.SelectPolicy == nil {
		t.Errorf("the autoscaler is %+v, %v; want all of it but its tolerances", both, err)
	}
}
