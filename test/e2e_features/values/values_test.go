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

package values

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/kubernetes-features/test/e2e_features/framework"
	"k8s.io/kubernetes-features/test/utils/localcluster"
)

const central, dynamic = v1alpha1.ControlCentral, v1alpha1.ControlDynamic

var everyComponent = []string{"kube-controller-manager", "kube-scheduler", "kubelet", "kube-proxy"}

// TestValuesAreTakenAndFollowed runs a control plane and a node.
func TestValuesAreTakenAndFollowed(t *testing.T) {
	t.Parallel()
	c := start(t, map[string][]string{
		localcluster.ControllerManager: {"--feature-gates=" + explicitFeature + "=true", "--feature-change-policy=Restart", "--feature-restart-window=1ms"},
		localcluster.Scheduler:         {"--feature-change-policy=Restart", "--feature-restart-window=1ms"},
	})
	for _, feature := range []string{nodeFeature, managerFeature, explicitFeature, schedulerFeature} {
		c.SetConfigured(feature, central, false)
	}
	c.SetConfigured(sharedFeature, dynamic, false)
	c.MustStart(localcluster.ControllerManager, localcluster.Scheduler, localcluster.Kubelet("node-1"), localcluster.Proxy("node-1"))

	// What was set on the process itself wins, and shows. All ask for the shared
	// feature at once.
	reports := c.WaitForReports("in which all asked for "+sharedFeature, func(reports []v1alpha1.FeatureReport) bool {
		for _, component := range everyComponent {
			if f := framework.Reported(reports, component, sharedFeature); f == nil || f.Enabled {
				return false
			}
		}
		return true
	})
	if f := framework.Reported(reports, "kube-controller-manager", explicitFeature); f == nil || !f.Enabled || !f.Explicit {
		t.Errorf("%s is set to true on the controller manager, which reports %+v", explicitFeature, f)
	}

	// Controllers ask when they start. First questions are reported together, at
	// most once a minute; a changed value is reported at once, with all of them.
	framework.Eventually(t, "the controllers to run", func() error {
		_, err := c.Kube.CoreV1().ServiceAccounts(metav1.NamespaceDefault).Get(t.Context(), "default", metav1.GetOptions{})
		return err
	})
	flipTogether(t, c)

	// Each component had its value before its code asked.
	c.WaitForValue("kube-controller-manager", managerFeature, false)
	c.WaitForValue("kube-scheduler", schedulerFeature, false)
	c.WaitForValue("kubelet", nodeFeature, false)
	if f := framework.Reported(c.Reports(), "kube-scheduler", schedulerFeature); f == nil || f.Explicit {
		t.Errorf("a central value is reported as explicit: %+v", f)
	}
	waitMetric(t, c, "kube-controller-manager", `feature_lifecycle_remote_values{feature="`+explicitFeature+`",reason="ExplicitlySet"} 1`)
	waitMetric(t, c, "kube-controller-manager", `feature_lifecycle_remote_values_origin{origin="Server"} 1`)
	waitMetric(t, c, "kube-controller-manager", `kubernetes_feature_enabled{name="`+managerFeature+`",stage="BETA"} 0`)
	waitMetric(t, c, "kube-controller-manager", `kubernetes_feature_enabled{name="`+sharedFeature+`",stage="ALPHA"} 1`)

	// A static value changes: the scheduler ends itself, and its supervisor, which
	// is this test, starts it again. Nothing changes for the kubelet, whose policy
	// is to report, nor for the controller manager, where it is explicit.
	c.SetConfigured(explicitFeature, central, true)
	c.SetConfigured(explicitFeature, central, false)
	c.SetConfigured(nodeFeature, central, true)
	c.SetConfigured(schedulerFeature, central, true)
	waitEnded(t, c, localcluster.Scheduler)
	c.MustStart(localcluster.Scheduler)
	c.WaitForValue("kube-scheduler", schedulerFeature, true)
	for _, p := range c.Processes() {
		if p.Name != localcluster.Scheduler && !p.Alive() {
			t.Errorf("%s ended", p.Name)
		}
	}
	if f := framework.Reported(c.Reports(), "kubelet", nodeFeature); f == nil || f.Enabled {
		t.Errorf("the kubelet, which was not restarted, reports %+v", f)
	}
}

// flipTogether changes the dynamic feature some times and leaves it on. Everybody
// follows each time; how fast is for people to read.
func flipTogether(t *testing.T, c *framework.Cluster) {
	t.Helper()
	for i := range 5 {
		value := i%2 == 0
		begun := time.Now()
		c.SetConfigured(sharedFeature, dynamic, value)
		c.WaitForReports(fmt.Sprintf("in which all have %s=%t", sharedFeature, value), func(reports []v1alpha1.FeatureReport) bool {
			for _, component := range everyComponent {
				if f := framework.Reported(reports, component, sharedFeature); f == nil || f.Enabled != value {
					return false
				}
			}
			return true
		})
		t.Logf("all %d reports have %s=%t after %v", len(everyComponent), sharedFeature, value, time.Since(begun).Round(time.Millisecond))
	}
}

// waitEnded waits until a component has ended by itself.
func waitEnded(t *testing.T, c *framework.Cluster, name string) {
	t.Helper()
	framework.Eventually(t, name+" to end itself", func() error {
		for _, p := range c.Processes() {
			if p.Name == name && p.Alive() {
				return fmt.Errorf("it runs, the end of its log:\n%s", c.Log(name, 10))
			}
		}
		return nil
	})
}

// waitMetric waits until a component shows a line of metrics. Its port is in its
// instance's name.
func waitMetric(t *testing.T, c *framework.Cluster, component, line string) {
	t.Helper()
	port := ""
	for _, r := range c.Reports() {
		if r.Spec.Component == component {
			port = r.Spec.Instance[strings.LastIndex(r.Spec.Instance, "-")+1:]
		}
	}
	config := rest.CopyConfig(c.Config)
	config.TLSClientConfig.CAFile, config.TLSClientConfig.CAData, config.TLSClientConfig.Insecure = "", nil, true
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	framework.Eventually(t, component+" to show "+line, func() error {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://127.0.0.1:"+port+"/metrics", nil)
		if err != nil {
			return err
		}
		response, err := client.Do(request)
		if err != nil {
			return err
		}
		defer response.Body.Close()
		body, err := io.ReadAll(response.Body)
		if err != nil {
			return err
		}
		return framework.ShowsMetrics(string(body), line)
	})
}
