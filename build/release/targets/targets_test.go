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

package targets

import (
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// golangSh returns upstream's hack/lib/golang.sh of the version that the root
// module requires.
func golangSh(t *testing.T) []byte {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", "k8s.io/kubernetes")
	cmd.Dir = filepath.Join("..", "..", "..")
	cmd.Env = append(os.Environ(), "GOWORK=")
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("cannot find upstream's module: %v", err)
	}
	content, err := os.ReadFile(filepath.Join(strings.TrimSpace(string(out)), "hack", "lib", "golang.sh"))
	if err != nil {
		t.Fatal(err)
	}
	return content
}

// upstream returns the words of a list in it.
func upstream(t *testing.T, list string) []string {
	t.Helper()
	content := golangSh(t)
	m := regexp.MustCompile(`(?s)` + list + `[^\n]*\n?[^\n]*\(\n(.*?)\n\s*\)`).FindSubmatch(content)
	if m == nil {
		t.Fatalf("upstream has no list %s any more", list)
	}
	var words []string
	for line := range strings.Lines(string(m[1])) {
		line, _, _ = strings.Cut(line, "#")
		words = append(words, strings.Fields(line)...)
	}
	slices.Sort(words)
	return words
}

func names(list []Binary) []string {
	var names []string
	for _, b := range list {
		if b != feature {
			names = append(names, b.Name)
		}
	}
	slices.Sort(names)
	return names
}

func TestListsAreUpstreams(t *testing.T) {
	for list, ours := range map[string][]Binary{
		`server_targets\(\) \{`:          binaries[Server],
		`node_targets\(\) \{`:            binaries[Node],
		`KUBE_CLIENT_TARGETS=`:           binaries[Client],
		`server_image_targets\(\) \{.*?`: append(Images(), LogRunner),
	} {
		var want []string
		for _, target := range upstream(t, list) {
			want = append(want, path.Base(target))
		}
		slices.Sort(want)
		if diff := cmp.Diff(want, names(ours)); diff != "" {
			t.Errorf("%s: upstream's and ours (-upstream +ours):\n%s", list, diff)
		}
	}
	for list, component := range map[string]Component{
		"KUBE_SUPPORTED_SERVER_PLATFORMS=": Server,
		"KUBE_SUPPORTED_NODE_PLATFORMS=":   Node,
		"KUBE_SUPPORTED_CLIENT_PLATFORMS=": Client,
	} {
		if diff := cmp.Diff(upstream(t, list), slices.Sorted(slices.Values(platforms[component]))); diff != "" {
			t.Errorf("%s: upstream's and ours (-upstream +ours):\n%s", list, diff)
		}
	}
}

// TestTagsAreUpstreams reads the tags of a build that is not for a debugger.
func TestTagsAreUpstreams(t *testing.T) {
	content := golangSh(t)
	tags := regexp.MustCompile(`(?m)^\s*gotags="([a-z,]+)\$\{grpcnotrace\}`).FindSubmatch(content)
	more := regexp.MustCompile(`(?m)^\s*grpcnotrace="(,[a-z]+)"`).FindSubmatch(content)
	if tags == nil || more == nil {
		t.Fatal("upstream has no gotags any more")
	}
	if want := string(tags[1]) + string(more[1]); Tags != want {
		t.Errorf("the tags are %s, upstream's %s", Tags, want)
	}
}

func TestPackagesExist(t *testing.T) {
	args := []string{"list", "-f", "{{.Name}} {{.ImportPath}}"}
	want := map[string]bool{}
	for _, b := range For(Platform{"linux", "amd64"}.Components()) {
		args = append(args, b.Package)
		want["main "+b.Package] = true
		if path.Base(b.Package) != b.Name {
			t.Errorf("the go command calls %s by another name than %s", b.Package, b.Name)
		}
	}
	cmd := exec.CommandContext(t.Context(), "go", args...)
	cmd.Dir = filepath.Join("..", "..", "..")
	cmd.Env = append(os.Environ(), "GOWORK=")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for line := range strings.Lines(string(out)) {
		delete(want, strings.TrimSpace(line))
	}
	if len(want) > 0 {
		t.Errorf("not main packages: %v", want)
	}
}

func TestParsePlatforms(t *testing.T) {
	got, err := ParsePlatforms(" linux/arm64 windows/amd64  linux/amd64 linux/arm64")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]Platform{{"linux", "amd64"}, {"linux", "arm64"}, {"windows", "amd64"}}, got); diff != "" {
		t.Errorf("platforms (-want +got):\n%s", diff)
	}
	if c := got[2].Components(); !slices.Equal(c, []Component{Client, Node, Plugin}) {
		t.Errorf("windows/amd64 is released for %v", c)
	}
	for list, want := range map[string]string{
		"": "names no platform", "linux": "not released", "linux/riscv64": "not released", "linux/amd64 plan9/amd64": "not released",
		"linux/s390x": "no packages of Debian", "linux/ppc64le": "no packages of Debian",
	} {
		got, err := ParsePlatforms(list)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q gives %v: %v; want an error: %s", list, got, err, want)
			continue
		}
		// What it says is to be used can be.
		if _, offer, ok := strings.Cut(err.Error(), "; use some of "); ok {
			if all, err := ParsePlatforms(strings.ReplaceAll(offer, ",", "")); err != nil || len(all) != 9 {
				t.Errorf("%q: what is offered is %v: %v", list, all, err)
			}
		}
	}
}

func TestVersion(t *testing.T) {
	v, err := ParseVersion("v1.36.3+feature.1")
	if err != nil {
		t.Fatal(err)
	}
	if got, want := v.ImageName("kube-proxy", "arm64"), "registry.k8s.io/kube-proxy-arm64:v1.36.3_feature.1"; got != want {
		t.Errorf("the image's name is %s, want %s", got, want)
	}
	for version, want := range map[Version]string{"v1.36.3+feature.1": "1.36", "v1.37.0-alpha.1": "1.37+"} {
		major, minor := version.MajorMinor()
		if got := major + "." + minor; got != want {
			t.Errorf("%s is %s, want %s", version, got, want)
		}
	}
	for _, bad := range []string{"", "1.36.3", "v1.36", "v1.36.3+a b", "v1.36.3_feature.1"} {
		if _, err := ParseVersion(bad); err == nil {
			t.Errorf("%q was accepted", bad)
		}
	}
}

func TestClientsAreEverywhere(t *testing.T) {
	for _, c := range []Component{Client, Node, Server} {
		list := Of(c)
		for _, b := range binaries[Client] {
			if !slices.Contains(list, b) {
				t.Errorf("%s has no %s", c, b.Name)
			}
		}
	}
	if got := (Platform{"windows", "amd64"}).Executable("kubectl"); got != "kubectl.exe" {
		t.Errorf("kubectl on Windows is %s", got)
	}
}
