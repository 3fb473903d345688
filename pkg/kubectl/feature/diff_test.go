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
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/rest"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/feature-lifecycle/client/clientset/versioned"
	"k8s.io/kubernetes-features/pkg/kubectl/observe"
)

const twoContexts = `apiVersion: v1
kind: Config
current-context: left
contexts:
- {name: left, context: {cluster: left}}
- {name: right, context: {cluster: right}}
- {name: empty, context: {cluster: empty}}
clusters:
- {name: left, cluster: {server: "https://left"}}
- {name: right, cluster: {server: "https://right"}}
- {name: empty, cluster: {server: "https://empty"}}
`

// clusters are several, by the host of their server.
type clusters struct {
	t      *testing.T
	byHost map[string]*cluster
	dir    string
	// as has the impersonated user of each request, by the host of the server.
	as map[string]rest.ImpersonationConfig
	// observed is what is observed of those without the API.
	observed map[string]func() *observe.Cluster
}

func newClusters(t *testing.T, dir string) *clusters {
	t.Helper()
	c := &clusters{t: t, dir: dir, as: map[string]rest.ImpersonationConfig{}, byHost: map[string]*cluster{"https://left": newSampleCluster(t), "https://right": newSampleCluster(t), "https://empty": newCluster(t)}}
	right := c.byHost["https://right"]
	other := right.get("GenericWorkload")
	other.Status.State, other.Status.Version, other.Status.Stage, other.Status.LockedToDefault = v1alpha1.StateOff, "1.35", v1alpha1.StageBeta, true
	other.Status.Configured, other.Status.Default, other.Status.Control = nil, nil, v1alpha1.ControlDynamic
	right.store(other)
	if err := right.client.Tracker().Delete(featuresResource, "kube-system", "HPAScaleToZero"); err != nil {
		t.Fatal(err)
	}
	right.add(sample("Newer", v1alpha1.StageAlpha, false, false))
	c.write("two.conf", twoContexts)
	c.write("right.conf", strings.Replace(twoContexts, "current-context: left", "current-context: right", 1))
	return c
}

// write writes a file into the folder that commands run in.
func (c *clusters) write(name, text string) {
	c.t.Helper()
	if err := os.WriteFile(filepath.Join(c.dir, name), []byte(text), 0o600); err != nil {
		c.t.Fatal(err)
	}
}

// read reads one of them.
func (c *clusters) read(name string) string {
	c.t.Helper()
	data, err := os.ReadFile(filepath.Join(c.dir, name))
	if err != nil {
		c.t.Fatal(err)
	}
	return string(data)
}

// run runs a command with an input.
func (c *clusters) run(in string, args ...string) (string, int) {
	var out bytes.Buffer
	b := newBase(genericiooptions.IOStreams{In: strings.NewReader(in), Out: &out, ErrOut: &out})
	b.connect = func(config *rest.Config) (versioned.Interface, error) {
		c.as[config.Host] = config.Impersonate
		if cluster := c.byHost[config.Host]; cluster != nil {
			return cluster.client, nil
		}
		return nil, fmt.Errorf("there is no cluster at %s", config.Host)
	}
	b.observe = func(_ context.Context, config *rest.Config, _ observe.Options) (*observe.Cluster, error) {
		if observed := c.observed[config.Host]; observed != nil {
			return observed(), nil
		}
		return nil, fmt.Errorf("nothing was observed at %s", config.Host)
	}
	code := b.run(c.t.Context(), args)
	return out.String(), code
}

func (c *clusters) session(commands ...string) string {
	var all strings.Builder
	for _, command := range commands {
		out, code := c.run("", strings.Fields(command)...)
		fmt.Fprintf(&all, "$ kubectl feature %s\n%s[exit code %d]\n\n", command, out, code)
	}
	return all.String()
}

func TestDiff(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	t.Setenv("KUBECONFIG", "two.conf")
	synctest.Test(t, func(t *testing.T) {
		c := newClusters(t, dir)
		for _, format := range []string{"json", "yaml"} {
			out, code := c.run("", "list", "-A", "-o", format, "--context=left")
			if code != 0 {
				t.Fatal(out)
			}
			c.write("left."+format, out)
		}
		c.write("pods.yaml", "apiVersion: v1\nkind: List\nitems: [{kind: Pod, apiVersion: v1, metadata: {name: web}}]\n")
		c.write("pod.yaml", "apiVersion: v1\nkind: Pod\n")
		c.write("noise.json", "{")
		gadget := func(name, state string) string {
			return fmt.Sprintf("apiVersion: v1\nkind: List\nitems: [{kind: Feature, apiVersion: %s, metadata: {name: %s, namespace: kube-system}, status: {state: %s}}]\n", v1alpha1.SchemeGroupVersion, name, state)
		}
		c.write("both.yaml", "---\n---\n"+c.read("left.yaml")+"---\n"+gadget("Second", `"On"`))
		c.write("both.json", c.read("left.json")+c.read("left.json"))
		c.write("twice.yaml", gadget("A", `"On"`)+"---\n"+gadget("A", `"Off"`))
		c.write("bare.yaml", gadget("A", "On"))
		c.write("made-up.yaml", gadget("A", "Sideways"))
		golden(t, "diff.txt", c.session(
			"diff --context=left --context=right",
			"diff --kubeconfig=two.conf --kubeconfig=right.conf -o name",
			"diff --context=left --context=right -o yaml",
			"diff left.json",
			"diff left.yaml --context=right -o name",
			"diff left.yaml left.json",
			"diff left.json -n widgets",
			"diff left.json -n nowhere",
			"diff --context=left --context=empty",
			"diff --context=left --context=missing",
			"diff",
			"diff --context=left",
			"diff left.json --context=left --context=right",
			"diff --context=left --context=left",
			"diff --context=left --context=right --server=https://left",
			"diff - -",
			"diff missing.json",
			"diff noise.json",
			"diff pod.yaml",
			"diff pods.yaml",
			"diff left.json -o wide",
			"diff both.yaml left.json",
			"diff both.json left.json",
			"diff twice.yaml left.json",
			"diff bare.yaml left.json",
			"diff made-up.yaml left.json",
			"diff left.yaml left.json --cluster=left",
		))
		out, code := c.run(c.read("left.json"), "diff", "-")
		if want := "No difference between standard input and left: 6 features compared.\n"; out != want || code != ExitSafe {
			t.Errorf("exit code %d: %s", code, out)
		}
	})
}

// TestDiffImpersonatesInBothClusters with the same user.
func TestDiffImpersonatesInBothClusters(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	t.Setenv("KUBECONFIG", "two.conf")
	synctest.Test(t, func(t *testing.T) {
		c := newClusters(t, dir)
		out, code := c.run("", "diff", "--context=left", "--context=right", "--as=alice", "--as-uid=7", "--as-group=ops", "--as-group=dev", "--as-user-extra=scope=all")
		if code != ExitDiffer {
			t.Fatalf("exit code %d: %s", code, out)
		}
		alice := rest.ImpersonationConfig{UserName: "alice", UID: "7", Groups: []string{"ops", "dev"}, Extra: map[string][]string{"scope": {"all"}}}
		if diff := cmp.Diff(map[string]rest.ImpersonationConfig{"https://left": alice, "https://right": alice}, c.as); diff != "" {
			t.Errorf("who is asked for (-want +got):\n%s", diff)
		}
	})
}

// TestDiffIsInterrupted while its input is idle.
func TestDiffIsInterrupted(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		in, writer := io.Pipe()
		defer func() { _ = writer.Close() }()
		var out bytes.Buffer
		b := newCluster(t, sample("A", v1alpha1.StageBeta, true, true)).base(&out)
		b.In = in
		ctx, interrupt := context.WithCancel(t.Context())
		done := make(chan int)
		go func() { done <- b.run(ctx, []string{"diff", "-", "--server=https://localhost"}) }()
		synctest.Wait()
		interrupt()
		if code := <-done; code != ExitFailed || out.String() != "error: standard input: interrupted while reading\n" {
			t.Errorf("exit code %d: %s", code, out.String())
		}
	})
}
