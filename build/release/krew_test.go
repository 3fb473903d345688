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

package main

import (
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"k8s.io/kubernetes-features/build/release/archive"
	"k8s.io/kubernetes-features/build/release/krew"
	"k8s.io/kubernetes-features/build/release/leftout"
	"k8s.io/kubernetes-features/build/release/targets"
)

// host is the platform of this machine.
var host = targets.Platform{OS: runtime.GOOS, Arch: runtime.GOARCH}

// krewTools is a PATH with krew as "kubectl krew", and nothing of kubectl but that it
// runs plugins. The second result is the folder of the tools.
func krewTools(t *testing.T) (path, tools string) {
	t.Helper()
	tools = os.Getenv("KREW_TOOLS")
	if tools == "" {
		leftout.Skip(t, "KREW_TOOLS names no folder with krew; \"make test-release\" builds and sets it")
	}
	bin := t.TempDir()
	script := "#!/bin/sh\nplugin=$1\nshift\nexec \"kubectl-$plugin\" \"$@\"\n"
	if err := os.WriteFile(filepath.Join(bin, "kubectl"), []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join(tools, "krew"), filepath.Join(bin, "kubectl-krew")); err != nil {
		t.Fatal(err)
	}
	return bin + ":" + os.Getenv("PATH"), tools
}

// served writes the manifest of a release so that its archives are at the address of a
// server on this machine, whatever the release says about that, and returns its file.
func served(t *testing.T, tars string, change func(*krew.Manifest)) string {
	t.Helper()
	server := httptest.NewServer(http.FileServer(http.Dir(tars)))
	t.Cleanup(server.Close)
	m, err := krew.Read(filepath.Join(tars, manifestFile))
	if err != nil {
		t.Fatal(err)
	}
	for i := range m.Spec.Platforms {
		uri := &m.Spec.Platforms[i].URI
		*uri = address(server.URL, (*uri)[strings.LastIndexByte(*uri, '/')+1:])
	}
	change(&m)
	data, err := m.YAML()
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), manifestFile)
	if err := archive.WriteData(file, data); err != nil {
		t.Fatal(err)
	}
	return file
}

// validateManifest lets the program judge a manifest by which krew's index accepts
// plugins: it installs the plugin for each platform.
func validateManifest(t *testing.T, manifest string) (string, error) {
	t.Helper()
	path, tools := krewTools(t)
	cmd := exec.CommandContext(t.Context(), filepath.Join(tools, "validate-krew-manifest"), "-manifest", manifest)
	// The program hands its krew no TMPDIR, and has to be in the same file system: as if on
	// Windows, krew does not find out that it has to copy.
	cmd.Env = []string{"PATH=" + path}
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// installed is the plugin as krew installed it.
type installed struct {
	// root is krew's folder.
	root string
	env  []string
}

// install lets krew install the plugin for this machine from files of a release.
func install(t *testing.T, tars string) installed {
	t.Helper()
	path, _ := krewTools(t)
	root := t.TempDir()
	in := installed{root: root, env: []string{"KREW_ROOT=" + root, "HOME=" + root, "PATH=" + filepath.Join(root, "bin") + ":" + path}}
	out, err := in.run(t, "kubectl", "krew", "install", "--manifest="+filepath.Join(tars, manifestFile),
		"--archive="+filepath.Join(tars, archiveName(targets.Plugin, host)))
	if err != nil {
		t.Fatalf("krew does not install the plugin: %v: %s", err, out)
	}
	t.Logf("krew: %s", out)
	return in
}

// run runs a command in a shell that has krew's folder of programs in the PATH.
func (in installed) run(t *testing.T, args ...string) (string, error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "/bin/sh", append([]string{"-c", `exec "$@"`, "sh"}, args...)...)
	cmd.Env = in.env
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// checkKrew lets krew validate and install the plugin of a release, and runs it.
func checkKrew(t *testing.T, tars string) {
	t.Helper()
	m, err := krew.Read(filepath.Join(tars, manifestFile))
	if err != nil {
		t.Fatal(err)
	}
	said, err := validateManifest(t, served(t, tars, func(*krew.Manifest) {}))
	if err != nil {
		t.Fatalf("krew refuses the manifest: %v: %s", err, said)
	}
	t.Logf("validate-krew-manifest: %s", said)
	if !exists(filepath.Join(tars, archiveName(targets.Plugin, host))) {
		leftout.Note(t, "the release has no plugin for "+host.String()+", which this machine runs")
		return
	}
	in := install(t, tars)
	said, err = in.run(t, "kubectl", "feature", "gates", "SidecarContainers")
	if err != nil || !gatesOfSidecars(said) {
		t.Errorf("kubectl feature gates SidecarContainers: %v:\n%s", err, said)
	}
	// What the plugin advises after the installation is done as it is written.
	_, advice, _ := strings.Cut(m.Spec.Caveats, "\n  ")
	if said, err := in.run(t, "/bin/sh", "-ec", advice); err != nil {
		t.Fatalf("%s: %v: %s", advice, err, said)
	}
	if said, err := in.run(t, completion, "gate"); err != nil || !strings.Contains(said, "gates\t") {
		t.Errorf("the completion of \"kubectl feature gate\" is %q: %v", said, err)
	}
	if got, err := filepath.Glob(filepath.Join(in.root, "bin", "*")); err != nil || len(got) != 2 {
		t.Errorf("krew's folder of programs has %v: %v; want the plugin and its completion", got, err)
	}
}

// gatesOfSidecars reports whether an output has the gate SidecarContainers with a change
// that no later version of Kubernetes takes back.
func gatesOfSidecars(output string) bool {
	return slices.ContainsFunc(strings.Split(output, "\n"), func(line string) bool {
		return slices.Equal(strings.Fields(line), []string{"SidecarContainers", "1.33", "GA", "On,", "locked", "cluster"})
	})
}

// withPlugin makes the archives of the plugin for all its platforms, of which the one for
// this machine has the plugin of RELEASE_TOOLS. That one is linked as "make all" does, and
// is packed when all else of the release is done.
func withPlugin(t *testing.T) *release {
	t.Helper()
	real, err := os.ReadFile(filepath.Join(os.Getenv("RELEASE_TOOLS"), pluginName))
	if err != nil {
		leftout.Skip(t, "RELEASE_TOOLS has no "+pluginName+"; \"make test-release\" builds it")
	}
	r := inTheMaking(t, checkout(t))
	r.plugin, r.download = true, ""
	if err := r.make(t.Context(), targets.PluginPlatforms()); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(r.bin(host), pluginName), real, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := r.pack(t.Context(), targets.Plugin, host); err != nil {
		t.Fatal(err)
	}
	if err := r.writeManifest(targets.PluginPlatforms()); err != nil {
		t.Fatal(err)
	}
	return r
}

func TestKrewTakesAStandIn(t *testing.T) {
	krewTools(t)
	r := withPlugin(t)
	checkKrew(t, r.tars())
	said, err := validateManifest(t, served(t, r.tars(), func(m *krew.Manifest) { m.Spec.Platforms[0].SHA256 = strings.Repeat("0", 64) }))
	if err == nil || !strings.Contains(said, "checksum does not match") {
		t.Errorf("a manifest with another hash than the archive's is judged: %v: %s", err, said)
	}
}

func TestKrewTakesTheRelease(t *testing.T) {
	leftout.Long(t)
	tars := os.Getenv("RELEASE_TARS")
	if !exists(filepath.Join(tars, manifestFile)) {
		leftout.Skip(t, "the release is for platforms that the plugin is not released for")
	}
	checkKrew(t, tars)
}
