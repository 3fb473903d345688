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

package reporting

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/spf13/cobra"

	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/component-base/version"
	cmfeatures "k8s.io/controller-manager/pkg/features"
	"k8s.io/feature-lifecycle/agent"
	"k8s.io/feature-lifecycle/featuregate"
	"k8s.io/kubernetes-features/pkg/features"
)

// gateWith is a layer of the test's own over a copy of the process's gate, with
// the gates that kube-controller-manager adds.
func gateWith(t *testing.T, values map[string]bool) *featuregate.Gate {
	t.Helper()
	gate := featuregate.Wrap(utilfeature.DefaultFeatureGate.DeepCopy())
	if err := cmfeatures.SetupCurrentKubernetesSpecificFeatureGates(gate); err != nil {
		t.Fatal(err)
	}
	if err := gate.SetFromMap(values); err != nil {
		t.Fatal(err)
	}
	return gate
}

func TestProcessReportsAsComponentAndInstance(t *testing.T) {
	host, err := parseArguments(nil).instance()
	if err != nil {
		t.Fatal(err)
	}
	nodeName, err := parseArguments(nil).node("kubelet")
	if err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		component Component
		args      []string
		want      agent.ReporterConfig
	}{
		"a control plane component renews a Lease": {Component{Name: "kube-scheduler"}, nil,
			agent.ReporterConfig{Component: "kube-scheduler", Instance: host, LeaseNamespace: "kube-feature-lease"}},
		"two on one host differ": {Component{Name: "kube-scheduler"}, []string{"--secure-port=7"},
			agent.ReporterConfig{Component: "kube-scheduler", Instance: host + "-7", LeaseNamespace: "kube-feature-lease"}},
		"a node component has its Node": {Component{Name: "kubelet", Node: true}, nil,
			agent.ReporterConfig{Component: "kubelet", Instance: nodeName, NodeName: nodeName}},
		"a hollow kubelet": {Component{Name: "kubemark", Node: true}, []string{"--morph=kubelet", "--name=h1"},
			agent.ReporterConfig{Component: "kubelet", Instance: "h1", NodeName: "h1"}},
		"a hollow proxy": {Component{Name: "kubemark", Node: true}, []string{"--morph", "proxy", "--name", "h1"},
			agent.ReporterConfig{Component: "kube-proxy", Instance: "h1", NodeName: "h1"}},
	} {
		t.Run(name, func(t *testing.T) {
			p := &process{component: tc.component, arguments: parseArguments(append([]string{"--kubeconfig=" + kubeconfig(t, "https://server")}, tc.args...))}
			got, err := p.reporterConfig()
			if err != nil {
				t.Fatal(err)
			}
			if clients, err := got.Connect(); err != nil || clients.Features == nil || clients.Kube == nil {
				t.Errorf("there are no clients: %v", err)
			}
			tc.want.Namespace, tc.want.BinaryVersion, tc.want.Source = "kube-system", version.Get().GitVersion, p.gate
			if diff := cmp.Diff(tc.want, got, cmpopts.IgnoreFields(agent.ReporterConfig{}, "Clients", "Connect", "Source")); diff != "" {
				t.Errorf("unexpected configuration (-want +got):\n%s", diff)
			}
		})
	}
}

// TestReportingStartsWithAddMetrics: a command that queries features early has final values
// when it starts to run. Nothing may run beside it before it has set up its logs, because
// klog.Background fails while klog's logger is replaced. The two components handle signals;
// for others, the agent ends the process with a signal that another test sends.
func TestReportingStartsWithAddMetrics(t *testing.T) {
	for _, component := range []Component{{Name: "kube-scheduler", AsksBeforeFinal: true}, {Name: "kubelet", Node: true}} {
		t.Run(component.Name, func(t *testing.T) {
			p := &process{component: component, gate: gateWith(t, nil), flags: newValueFlags(component),
				arguments: parseArguments([]string{"--kubeconfig=" + kubeconfig(t, "https://server") + ".not"})}
			begun := func() bool {
				p.mu.Lock()
				defer p.mu.Unlock()
				return p.done != nil
			}
			ran := false
			command := &cobra.Command{RunE: func(*cobra.Command, []string) error {
				ran = true
				if resolved := p.agent != nil; resolved != component.AsksBeforeFinal {
					t.Errorf("the command starts to run; that values were taken is %t", resolved)
				}
				if begun() {
					t.Error("it reports before the command has set up its logs")
				}
				p.gate.AddMetrics()
				if !begun() {
					t.Error("the command has called AddMetrics, and nothing is reported")
				}
				return nil
			}}
			command.SetArgs(nil)
			p.attach(t.Context(), command)
			if err := command.ExecuteContext(t.Context()); err != nil || !ran {
				t.Fatalf("the command ran: %t; %v", ran, err)
			}
			if p.agent == nil {
				t.Error("values of features that are set centrally were not taken")
			}
			p.end()
		})
	}
}

// TestBinaryContinuesWithoutReports checks that start returns without any input, and that
// end does not wait.
func TestBinaryContinuesWithoutReports(t *testing.T) {
	server := kubeconfig(t, "https://server")
	for name, tc := range map[string]struct {
		component string
		values    map[string]bool
		args      []string
		// never: it does not even try; tries: it keeps retrying.
		never, tries bool
	}{
		"S6: the gate is off": {component: "kube-scheduler", never: true,
			values: map[string]bool{string(features.FeatureLifecycle): false}, args: []string{"--kubeconfig=" + server}},
		"the kubeconfig is not there":        {component: "kube-scheduler", tries: true, args: []string{"--kubeconfig=" + server + ".not"}},
		"the configuration file is not YAML": {component: "kube-scheduler", tries: true, args: []string{"--config=" + write(t, "config", "{")}},
		"a kubelet runs alone":               {component: "kubelet"},
		"a scheduler outside of a cluster":   {component: "kube-scheduler"},
	} {
		t.Run(name, func(t *testing.T) {
			component := Component{Name: tc.component}
			p := &process{component: component, gate: gateWith(t, tc.values), arguments: parseArguments(tc.args), flags: newValueFlags(component)}
			p.resolve(t.Context())
			p.start(t.Context())
			switch {
			case tc.never:
				if p.done != nil {
					t.Error("it tries to report")
				}
			case !tc.tries:
				<-p.done
			default:
				select {
				case <-p.done:
					t.Error("it gave up")
				default:
				}
			}
			p.end()
			p.end()
		})
	}
}

// TestLateKubeconfigIsUsed covers a bootstrapping kubelet, which has none until its
// certificate is signed.
func TestLateKubeconfigIsUsed(t *testing.T) {
	ready := kubeconfig(t, "https://server")
	content, err := os.ReadFile(ready)
	if err != nil {
		t.Fatal(err)
	}
	late := filepath.Join(t.TempDir(), "kubeconfig")
	synctest.Test(t, func(t *testing.T) {
		p := &process{component: Component{Name: "kubelet", Node: true}, gate: gateWith(t, nil),
			arguments: parseArguments([]string{"--bootstrap-kubeconfig=" + ready, "--kubeconfig=" + late, "--hostname-override=n1"})}
		config, err := p.reporterConfig()
		if err != nil {
			t.Fatal(err)
		}
		ctx, connected := context.WithCancel(t.Context())
		defer connected()
		connect := config.Connect
		config.Connect = func() (agent.Clients, error) {
			clients, err := connect()
			if err == nil {
				// There is no server behind it.
				connected()
			}
			return clients, err
		}
		reporter, err := agent.NewReporter(config)
		if err != nil {
			t.Fatal(err)
		}
		go reporter.Run(ctx)
		<-time.After(time.Hour)
		synctest.Wait()
		if ctx.Err() != nil {
			t.Fatal("it connected without a kubeconfig")
		}
		if err := os.WriteFile(late, content, 0o600); err != nil {
			t.Fatal(err)
		}
		<-time.After(20 * time.Second)
		synctest.Wait()
		if ctx.Err() == nil {
			t.Error("it did not retry")
		}
	})
}

func TestDefaultActionIsNeededByCommandsWithoutHandler(t *testing.T) {
	release := string(cmfeatures.ControllerManagerReleaseLeaderElectionLockOnExit)
	for name, tc := range map[string]struct {
		component string
		args      []string
		values    map[string]bool
		want      bool
	}{
		"the scheduler ends itself":                            {component: "kube-scheduler"},
		"a kubelet ends itself":                                {component: "kubelet"},
		"a hollow node does not":                               {component: "kubemark", args: []string{"--morph=kubelet"}, want: true},
		"kube-proxy does not":                                  {component: "kube-proxy", want: true},
		"the controller manager does if it releases its Lease": {component: "kube-controller-manager", values: map[string]bool{release: true}},
		"and does not otherwise":                               {component: "kube-controller-manager", values: map[string]bool{release: false}, want: true},
	} {
		t.Run(name, func(t *testing.T) {
			p := &process{component: Component{Name: tc.component}, gate: gateWith(t, tc.values), arguments: parseArguments(tc.args)}
			if got := p.needsDefaultAction(); got != tc.want {
				t.Errorf("needs the default action: %t, want %t", got, tc.want)
			}
		})
	}
}

// TestUnknownFlagsHideNone checks that flags that are unknown here are skipped with
// their values.
func TestUnknownFlagsHideNone(t *testing.T) {
	for name, args := range map[string][]string{
		"after a short flag":             {"-v", "2", "--kubeconfig=k"},
		"after a short flag and a value": {"-v=2", "--kubeconfig=k"},
		"after an unknown pair":          {"--bind-address", "127.0.0.1", "--kubeconfig=k"},
		"after an unknown switch":        {"--leader-elect", "--kubeconfig=k"},
		"after a list":                   {"--feature-gates=A=true,B=false", "--kubeconfig", "k"},
		"given twice":                    {"--kubeconfig=other", "--kubeconfig=k"},
		"before an end of flags":         {"--kubeconfig=k", "--", "--kubeconfig=other"},
		"before one without its value":   {"--kubeconfig=k", "--config"},
		"beside a request for help":      {"--help", "--kubeconfig=k"},
		"with underscores":               {"--secure_port=1", "--kubeconfig=k"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := parseArguments(args).kubeconfig; got != "k" {
				t.Errorf("--kubeconfig is %q", got)
			}
		})
	}
}

func TestInstancesAreValidObjectNames(t *testing.T) {
	for _, args := range [][]string{nil, {"--secure-port=0"}, {"--secure-port=10259"}} {
		got, err := parseArguments(args).instance()
		if err != nil || got == "" || got != strings.ToLower(got) || notDNS.MatchString(got) {
			t.Errorf("with %v: %q, %v", args, got, err)
		}
		if port := "-0"; strings.HasSuffix(got, port) {
			t.Errorf("no port is named: %q", got)
		}
	}
	if _, err := parseArguments([]string{"--config=" + os.DevNull}).node("kube-proxy"); err != nil {
		t.Errorf("an empty file: %v", err)
	}
}
