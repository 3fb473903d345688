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

package feature

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/feature-lifecycle/client/clientset/versioned"
)

// withFiles runs upgrade-check in the directory of the test's files. A request to a cluster fails the test.
func withFiles(t *testing.T, in string, args ...string) (string, int) {
	t.Helper()
	t.Chdir(filepath.Join(testdata, "files"))
	t.Setenv("KUBECONFIG", "/nowhere")
	var out bytes.Buffer
	b := newBase(genericiooptions.IOStreams{In: strings.NewReader(in), Out: &out, ErrOut: &out})
	b.connect = func(*rest.Config) (versioned.Interface, error) {
		t.Error("a cluster is asked")
		return nil, errors.New("no cluster")
	}
	b.connectCore = func(*rest.Config) (kubernetes.Interface, error) {
		t.Error("a cluster is asked")
		return nil, errors.New("no cluster")
	}
	code := b.run(t.Context(), append([]string{"upgrade-check"}, args...))
	return out.String(), code
}

// TestUpgradeCheckOfFiles compares what is printed, and exit codes.
func TestUpgradeCheckOfFiles(t *testing.T) {
	const broken = "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\nfeatureGates:\n  NodeSwap: perhaps\n---\n{{ .Values }}: {\n"
	var all strings.Builder
	for _, command := range []string{
		"--to 1.37 -f kubeadm.yaml",
		"--to 1.37 -f kubeadm.yaml -o name",
		"--to 1.37 -f safe.yaml -o wide",
		"--to 1.37 -f .",
		"--to 1.37 -f values.yaml --path kubelet.featureGates",
		"--to 1.38 -f safe.yaml",
		"--to 1.36 --from 1.37 -f safe.yaml",
		"--to 1.37 -f -",
		"--to 1.37 -f absent.yaml",
		"--to 1.99 -f safe.yaml",
		"--to 1.37 --from 1.2.3 -f safe.yaml",
		"--to 1.37 -f safe.yaml --allow-missing --context=a",
		"--to 1.37 -f safe.yaml --path labels",
		"--to 1.37 -f safe.yaml -o xml",
		"--to 1.37 --path kubelet.featureGates",
		"--to 1.37 --from 1.36",
	} {
		out, code := withFiles(t, broken, strings.Fields(command)...)
		fmt.Fprintf(&all, "$ kubectl feature upgrade-check %s\n%s[exit code %d]\n\n", command, out, code)
	}
	golden(t, "filecheck.txt", all.String())
}

func TestUpgradeCheckOfFilesAsJSON(t *testing.T) {
	out, code := withFiles(t, "", "--to=1.37", "-f=kubeadm.yaml", "-f=values.yaml", "-o=json")
	golden(t, "filecheck.json", out)
	if code != ExitNotSafe {
		t.Errorf("exit code %d", code)
	}
	if out, code := withFiles(t, "", "--to=1.37", "-f=safe.yaml", "-o=yaml"); code != ExitSafe || !strings.Contains(out, "kind: FileUpgradeCheck\n") {
		t.Errorf("exit code %d: %s", code, out)
	}
}

// TestUpgradeCheckOfFilesAsSARIF: the properties that SARIF 2.1.0 requires are there, and refer to each other.
func TestUpgradeCheckOfFilesAsSARIF(t *testing.T) {
	out, code := withFiles(t, "a: [", "--to=1.37", "-f=kubeadm.yaml", "-f=values.yaml", "-f=-", "-o=sarif")
	out, _, _ = strings.Cut(out, "error:")
	var log sarifLog
	decoder := json.NewDecoder(strings.NewReader(out))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&log); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if code != ExitFailed || log.Version != "2.1.0" || log.Schema == "" || len(log.Runs) != 1 {
		t.Fatalf("exit code %d: %s", code, out)
	}
	run := log.Runs[0]
	if run.Tool.Driver.Name == "" || len(run.Tool.Driver.Rules) == 0 || len(run.Results) == 0 || len(run.Invocations) != 1 || run.Invocations[0].ExecutionSuccessful {
		t.Errorf("%+v", run)
	}
	for _, rule := range run.Tool.Driver.Rules {
		if rule.ID == "" || rule.ShortDescription.Text == "" {
			t.Errorf("rule %+v", rule)
		}
	}
	for _, r := range run.Results {
		if r.RuleIndex < 0 || run.Tool.Driver.Rules[r.RuleIndex].ID != r.RuleID || r.Message.Text == "" || r.Level == "" || len(r.Locations) != 1 {
			t.Errorf("result %+v", r)
			continue
		}
		p := r.Locations[0].Physical
		if p.Artifact.URI != "kubeadm.yaml" || p.Region == nil || p.Region.StartLine < 1 || p.Region.StartColumn < 1 {
			t.Errorf("result %s at %+v", r.RuleID, p)
		}
	}
	if len(run.Invocations[0].Notifications) != 2 {
		t.Errorf("notifications %+v", run.Invocations[0].Notifications)
	}
	// The version is that of the build.
	golden(t, "filecheck.sarif", strings.Replace(out, `"version": "`+run.Tool.Driver.Version+`"`, `"version": "VERSION"`, 1))
}
