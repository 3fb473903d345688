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

package kindcluster

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"k8s.io/kubernetes-features/test/e2e_features/framework"
	"k8s.io/kubernetes-features/test/e2e_kind/nodeconfig"
)

// pageOfUpgrade is the part of docs/kind.md with the commands of an upgrade.
func pageOfUpgrade(t *testing.T) string {
	t.Helper()
	_, text, ok := strings.Cut(read(t, "docs", "kind.md"), "\n## Upgrade with kubeadm\n")
	text, _, end := strings.Cut(text, "\n## ")
	if !ok || !end {
		t.Fatal("docs/kind.md has no part about upgrades with kubeadm, or nothing after it")
	}
	return text
}

// TestPageHasCommandOfUpgrade compares the page with the commands that tests run, in their
// order. kubeadm's ignores one check.
func TestPageHasCommandOfUpgrade(t *testing.T) {
	minor := framework.Minor(framework.PreviousVersion)
	inNode := func(command []string) string { return "docker exec $NODE " + strings.Join(command, " ") }
	steps := []string{
		inNode(foldersCommand()),
		inNode(keepCommand()),
		"docker cp /tmp/" + releasePrograms + " $NODE:" + releaseDir,
		"for image in " + strings.Join(images(), " ") + "; do",
		inNode(importCommand("$image")),
		inNode(tagCommand("$image", "$ARCH", "$TAG")),
		"kubectl edit configmap -n kube-system " + kubeadmConfig,
		inNode(installCommand(releaseDir, "kubeadm")),
		inNode(upgradeCommand("$VERSION")),
		"systemctl stop kubelet",
		inNode(installCommand(releaseDir, "kubelet", "kubectl")),
		"systemctl start kubelet",
		"kubectl edit configmap -n kube-system " + kubeadmConfig,
		"edit_manifests '/ --" + emulatedVersion + "=/d'",
		"kubectl set image -n kube-system daemonset/kube-proxy kube-proxy=registry.k8s.io/kube-proxy:$PREVIOUS",
		"systemctl stop kubelet",
		inNode(installCommand(originalDir, "kubelet", "kubectl")),
		"systemctl start kubelet",
		"kubectl edit configmap -n kube-system " + kubeadmConfig,
		"--" + emulatedVersion + "=" + minor + "/'",
		"kubectl " + strings.Join(UpgradeCheck(minor), " ") + "; echo exit code",
		"kubectl edit configmap -n kube-system " + kubeadmConfig,
		inNode(installCommand(originalDir, "kubeadm")),
		inNode(upgradeCommand("$PREVIOUS")),
	}
	rest, after := strings.ReplaceAll(pageOfUpgrade(t), `"`, ""), "the heading"
	for _, step := range steps {
		_, next, ok := strings.Cut(rest, step)
		if !ok {
			t.Fatalf("docs/kind.md does not have this after %s:\n%s", after, step)
		}
		rest, after = next, step
	}
	if command := strings.Join(upgradeCommand("v"), " "); strings.Contains(command, "=all") || strings.Contains(command, ",") {
		t.Errorf("the command %q ignores more than one check", command)
	}
}

// TestPageHasFlagsOfUpgrade compares what the page adds to kubeadm's configuration with what
// tests add.
func TestPageHasFlagsOfUpgrade(t *testing.T) {
	_, block, _ := strings.Cut(pageOfUpgrade(t), "\n```yaml\n")
	block, _, ok := strings.Cut(block, "\n```\n")
	if !ok {
		t.Fatal("docs/kind.md does not show what is added to kubeadm-config")
	}
	var got map[string]any
	if err := yaml.UnmarshalStrict([]byte(block), &got); err != nil {
		t.Fatal(err)
	}
	wanted := []byte("{}")
	for _, flag := range Emulated(framework.Minor(framework.PreviousVersion), Grace) {
		var err error
		if wanted, err = nodeconfig.SetExtraArg(wanted, section(flag.Component), flag.Name, flag.Value); err != nil {
			t.Fatal(err)
		}
	}
	var want map[string]any
	if err := yaml.Unmarshal(wanted, &want); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("docs/kind.md adds other flags (-want +got)\n%s", diff)
	}
}

// TestPageEditsManifests runs the page's edits of manifests on files as kubeadm writes them,
// and compares them with those of tests.
func TestPageEditsManifests(t *testing.T) {
	page := pageOfUpgrade(t)
	function := regexp.MustCompile(`(?ms)^edit_manifests\(\) \{\n.*?^\}\n`).FindString(page)
	calls := regexp.MustCompile(`(?m)^edit_manifests '.*'$`).FindAllString(page, -1)
	if function == "" || len(calls) != 2 {
		t.Fatalf("docs/kind.md has the function %q and the calls %q, want one that takes a flag away and one that adds it", function, calls)
	}
	dir, bin := t.TempDir(), t.TempDir()
	// A node's shell whose manifests are in dir.
	const docker = `#!/bin/sh
[ "$1 $2 $3 $4" = "exec node sh -ec" ] || { echo "unknown: $*" >&2; exit 9; }
script=$(printf %s "$5" | sed "s#/etc/kubernetes/manifests#$MANIFESTS#")
shift 5
exec sh -ec "$script" "$@"
`
	if err := os.WriteFile(filepath.Join(bin, "docker"), []byte(docker), 0o755); err != nil {
		t.Fatal(err)
	}
	minor := framework.Minor(framework.PreviousVersion)
	without := func(manifest []byte) string {
		content, err := nodeconfig.SetFlag(manifest, emulatedVersion, "")
		if err != nil {
			t.Fatal(err)
		}
		return string(content)
	}
	for _, c := range []struct {
		call, was string
		want      int
	}{{calls[0], minor, 0}, {calls[0], "", 0}, {calls[1], "", 1}, {calls[1], minor, 1}} {
		manifests := map[string][]byte{}
		for _, component := range StaticPods() {
			content, err := nodeconfig.SetFlag([]byte("spec:\n  containers:\n  - command:\n    - "+component+"\n    - --leader-elect=true\n    image: registry.k8s.io/"+component+":v1\n"), emulatedVersion, c.was)
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(dir, component+".yaml"), content, 0o600); err != nil {
				t.Fatal(err)
			}
			manifests[component] = content
		}
		cmd := exec.CommandContext(t.Context(), "bash", "-euc", function+c.call)
		cmd.Env = append(os.Environ(), "NODE=node", "MANIFESTS="+dir, "PATH="+bin+":"+os.Getenv("PATH"))
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%s: %v: %s", c.call, err, out)
		}
		for component, was := range manifests {
			got, err := os.ReadFile(filepath.Join(dir, component+".yaml"))
			if err != nil {
				t.Fatal(err)
			}
			if set := bytes.Count(got, []byte("\n    - --"+emulatedVersion+"="+minor+"\n")); set != c.want || bytes.Count(got, []byte(emulatedVersion)) != c.want {
				t.Errorf("%s with %q: the flag of %s is there %d times, want %d:\n%s", c.call, c.was, component, set, c.want, got)
			}
			if diff := cmp.Diff(without(was), without(got)); diff != "" {
				t.Errorf("%s with %q: more has changed of %s (-was +is)\n%s", c.call, c.was, component, diff)
			}
		}
		if files, err := os.ReadDir(dir); err != nil || len(files) != len(manifests) {
			t.Errorf("%s: the folder has %v, %v, want the manifests alone", c.call, files, err)
		}
	}
}
