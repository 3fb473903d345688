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

package gates

import (
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/feature-lifecycle/lifecycle"
	"k8s.io/kubernetes-features/pkg/featurelifecycle/catalog"
	"k8s.io/kubernetes-features/test/e2e_features/framework"
	"k8s.io/kubernetes-features/test/utils/localcluster"
	"k8s.io/kubernetes-features/test/utils/localcluster/pki"
)

// The stories of KEP-3920. Two of them are told by TestOnUsedOff in
// test/e2e_features/gates/lifecycle: a field that is cleared, and a volume source that holds the
// feature until an administrator has removed the Pods. The objects of both are fixtures
// of TestEveryGate as well.

func entryOf(t *testing.T, name gate) catalog.Entry {
	t.Helper()
	all := catalog.All()
	i := slices.IndexFunc(all, func(e catalog.Entry) bool { return e.Name == name })
	if i < 0 {
		t.Fatalf("the catalog has no verdict on %s", name)
	}
	return all[i]
}

// controlPlane has only what answers requests.
func controlPlane(gates string) localcluster.Config {
	return localcluster.Config{
		FeatureGates: gates,
		Only:         []string{localcluster.Etcd, localcluster.APIServer},
		ExtraArgs:    map[string][]string{localcluster.APIServer: {"--feature-settle-period=2s"}},
	}
}

// TestStatelessFeatureOfOneBinary is story 2: OpenAPIEnums stands for OpenAPIV3,
// whose gate is gone since 1.36. It stores nothing and only kube-apiserver has it;
// turning it off is a restart and no task.
func TestStatelessFeatureOfOneBinary(t *testing.T) {
	t.Parallel()
	const name = "OpenAPIEnums"
	entry := entryOf(t, name)
	if entry.Stateless == "" || len(entry.OnDisable) > 0 {
		t.Errorf("the catalog says that %s stores something: %+v", name, entry)
	}
	c := framework.Start(t, controlPlane(name+"=true"))
	hasEnums := func() bool {
		t.Helper()
		document, err := c.Kube.Discovery().RESTClient().Get().AbsPath("/openapi/v3/api/v1").Do(t.Context()).Raw()
		if err != nil {
			t.Fatal(err)
		}
		return strings.Contains(string(document), `"enum":[`)
	}
	c.WaitForFeature(name, "On", func(f *v1alpha1.Feature) bool { return f.Status.State == v1alpha1.StateOn })
	if !hasEnums() {
		t.Error("the published OpenAPI document has no enumerations while the gate is on")
	}
	off := name + "=false"
	if err := c.Restart(t.Context(), &off); err != nil {
		t.Fatal(err)
	}
	tasks := map[string]bool{}
	last := c.WaitForFeature(name, "Off", func(f *v1alpha1.Feature) bool {
		for _, task := range f.Status.Tasks {
			tasks[task.Name] = true
		}
		return f.Status.State == v1alpha1.StateOff
	})
	if len(tasks) != 1 || !tasks[v1alpha1.TaskWaitForUses] {
		t.Errorf("the transition had tasks %v; it only has to wait for uses", tasks)
	}
	for _, use := range last.Status.Uses {
		if use.Component != localcluster.APIServer {
			t.Errorf("%s is said to use it: %+v", use.Component, use)
		}
	}
	if hasEnums() {
		t.Error("the published OpenAPI document still has enumerations")
	}
}

// TestFeatureWithFlagsOfItsOwn is story 3: what has flags of its own cannot be
// set from elsewhere. The binary refuses the flags while the gate is off, so a
// value that came from the API would keep it from starting. With the gate on it
// does not: then only the etcd is missing that this test does not give it.
func TestFeatureWithFlagsOfItsOwn(t *testing.T) {
	t.Parallel()
	c := framework.Start(t, controlPlane(""))
	const lacks = "--etcd-servers must be specified"
	for name, story := range map[gate]struct{ flag, refusal string }{
		"LoggingAlphaOptions":                 {"--log-text-split-stream", `options.text.splitStream: Forbidden: Feature LoggingAlphaOptions is disabled`},
		"RemoteRequestHeaderUID":              {"--requestheader-uid-headers=X-Remote-Uid", `--requestheader-uid-headers requires the \"RemoteRequestHeaderUID\" feature to be enabled`},
		"UnknownVersionInteroperabilityProxy": {"--peer-ca-file=/dev/null", `--peer-ca-file requires UnknownVersionInteroperabilityProxy feature to be turned on`},
	} {
		t.Run(string(name), func(t *testing.T) {
			entry := entryOf(t, name)
			flag, _, _ := strings.Cut(story.flag, "=")
			if !strings.Contains(entry.Config, flag) {
				t.Errorf("the catalog does not say that it has %s: %q", flag, entry.Config)
			}
			if entry.Control != "" && entry.Control != lifecycle.Local {
				t.Errorf("it is declared %s; it has to be Local", entry.Control)
			}
			with := func(value string) string {
				t.Helper()
				output, err := exec.CommandContext(t.Context(), filepath.Join(framework.BinDir(t), "kube-apiserver"),
					"--feature-gates="+string(name)+"="+value, "--cert-dir="+t.TempDir(), "--bind-address=127.0.0.1", "--advertise-address=192.0.2.1",
					"--service-cluster-ip-range=10.96.0.0/16", "--service-account-issuer=https://x.invalid",
					"--service-account-key-file="+filepath.Join(c.PKI(), pki.ServiceAccounts+".pub"),
					"--service-account-signing-key-file="+pki.KeyFile(c.PKI(), pki.ServiceAccounts), story.flag).CombinedOutput()
				if err == nil {
					t.Fatalf("kube-apiserver ran without etcd: %s", output)
				}
				return string(output)
			}
			if output := with("false"); !strings.Contains(output, story.refusal) {
				t.Errorf("kube-apiserver does not refuse %s while the gate is off; it says:\n%s", story.flag, output)
			}
			if output := with("true"); strings.Contains(output, story.refusal) || !strings.Contains(output, `"`+lacks+`"`) {
				t.Errorf("kube-apiserver with %s and the gate on has to lack its etcd alone; it says:\n%s", story.flag, output)
			}
		})
	}
	// The Feature says so to people.
	f := c.WaitForFeature("LoggingAlphaOptions", "created", func(f *v1alpha1.Feature) bool { return f.Status.State != "" })
	if f.Status.Control != v1alpha1.ControlLocal {
		t.Errorf("status.control is %s, want Local", f.Status.Control)
	}
}
