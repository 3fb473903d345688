//go:build linux

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
	"k8s.io/kubernetes-features/cmd/local-up/cluster"
	"k8s.io/kubernetes-features/test/integration/framework"
)

const central, dynamic = v1alpha1.ControlCentral, v1alpha1.ControlDynamic

var everyComponent = []string{"kube-controller-manager", "kube-scheduler", "kubelet", "kube-proxy"}

// TestValuesAreTakenAndFollowed runs a control plane and a node.
func TestValuesAreTakenAndFollowed(t *testing.T) {
	t.Parallel()
	w := start(t, map[string][]string{
		cluster.ControllerManager: {"--feature-gates=" + explicitFeature + "=true", "--feature-change-policy=Restart", "--feature-restart-window=1ms"},
		cluster.Scheduler:         {"--feature-change-policy=Restart", "--feature-restart-window=1ms"},
	})
	for _, feature := range []string{nodeFeature, managerFeature, explicitFeature, schedulerFeature} {
		w.set(feature, central, false)
	}
	w.set(sharedFeature, dynamic, false)
	w.start(cluster.ControllerManager, cluster.Scheduler, cluster.Kubelet("node-1"), cluster.Proxy("node-1"))

	// What was set on the process itself wins, and shows. All ask for the shared
	// feature at once.
	reports := w.WaitForReports("in which all asked for "+sharedFeature, func(reports []v1alpha1.FeatureReport) bool {
		for _, component := range everyComponent {
			if f := found(reports, component, sharedFeature); f == nil || f.Enabled {
				return false
			}
		}
		return true
	})
	if f := found(reports, "kube-controller-manager", explicitFeature); f == nil || !f.Enabled || !f.Explicit {
		t.Errorf("%s is set to true on the controller manager, which reports %+v", explicitFeature, f)
	}

	// Controllers ask when they start. First questions are reported together, at
	// most once a minute; a changed value is reported at once, with all of them.
	framework.WaitFor(t, "the controllers to run", func() bool {
		_, err := w.Kube.CoreV1().ServiceAccounts(metav1.NamespaceDefault).Get(t.Context(), "default", metav1.GetOptions{})
		return err == nil
	})
	w.flipTogether()

	// Each component had its value before its code asked.
	w.waitFound("kube-controller-manager", managerFeature, false)
	w.waitFound("kube-scheduler", schedulerFeature, false)
	w.waitFound("kubelet", nodeFeature, false)
	if f := found(w.Reports(), "kube-scheduler", schedulerFeature); f == nil || f.Explicit {
		t.Errorf("a central value is reported as explicit: %+v", f)
	}
	w.waitMetric("kube-controller-manager", `feature_lifecycle_remote_values{feature="`+explicitFeature+`",reason="ExplicitlySet"} 1`)
	w.waitMetric("kube-controller-manager", `feature_lifecycle_remote_values_origin{origin="Server"} 1`)
	w.waitMetric("kube-controller-manager", `kubernetes_feature_enabled{name="`+managerFeature+`",stage="BETA"} 0`)
	w.waitMetric("kube-controller-manager", `kubernetes_feature_enabled{name="`+sharedFeature+`",stage="ALPHA"} 1`)

	// A static value changes: the scheduler ends itself, and its supervisor, which
	// is this test, starts it again. Nothing changes for the kubelet, whose policy
	// is to report, nor for the controller manager, where it is explicit.
	w.set(explicitFeature, central, true)
	w.set(explicitFeature, central, false)
	w.set(nodeFeature, central, true)
	w.set(schedulerFeature, central, true)
	w.waitEnded(cluster.Scheduler)
	w.start(cluster.Scheduler)
	w.waitFound("kube-scheduler", schedulerFeature, true)
	for _, p := range w.Processes() {
		if p.Name != cluster.Scheduler && !p.Alive() {
			t.Errorf("%s ended", p.Name)
		}
	}
	if f := found(w.Reports(), "kubelet", nodeFeature); f == nil || f.Enabled {
		t.Errorf("the kubelet, which was not restarted, reports %+v", f)
	}
}

// flipTogether changes the dynamic feature some times and leaves it on. Everybody
// follows each time; how fast is for people to read.
func (w *world) flipTogether() {
	w.t.Helper()
	for i := range 5 {
		value := i%2 == 0
		begun := time.Now()
		w.set(sharedFeature, dynamic, value)
		w.WaitForReports(fmt.Sprintf("in which all have %s=%t", sharedFeature, value), func(reports []v1alpha1.FeatureReport) bool {
			for _, component := range everyComponent {
				if f := found(reports, component, sharedFeature); f == nil || f.Enabled != value {
					return false
				}
			}
			return true
		})
		w.t.Logf("all %d reports have %s=%t after %v", len(everyComponent), sharedFeature, value, time.Since(begun).Round(time.Millisecond))
	}
}

// waitEnded waits until a component has ended by itself.
func (w *world) waitEnded(name string) {
	w.t.Helper()
	framework.WaitFor(w.t, name+" to end itself", func() bool {
		for _, p := range w.Processes() {
			if p.Name == name {
				return !p.Alive()
			}
		}
		return true
	})
}

// waitMetric waits until a component shows a line of metrics. Its port is in its
// instance's name.
func (w *world) waitMetric(component, line string) {
	w.t.Helper()
	port := ""
	for _, r := range w.Reports() {
		if r.Spec.Component == component {
			port = r.Spec.Instance[strings.LastIndex(r.Spec.Instance, "-")+1:]
		}
	}
	config := rest.CopyConfig(w.Config)
	config.TLSClientConfig.CAFile, config.TLSClientConfig.CAData, config.TLSClientConfig.Insecure = "", nil, true
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		w.t.Fatal(err)
	}
	framework.WaitFor(w.t, component+" to show "+line, func() bool {
		request, err := http.NewRequestWithContext(w.t.Context(), http.MethodGet, "https://127.0.0.1:"+port+"/metrics", nil)
		if err != nil {
			w.t.Fatal(err)
		}
		response, err := client.Do(request)
		if err != nil {
			return false
		}
		defer response.Body.Close()
		body, err := io.ReadAll(response.Body)
		return err == nil && strings.Contains(string(body), "\n"+line+"\n")
	})
}
