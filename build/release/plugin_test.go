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
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"k8s.io/kubernetes-features/build/release/krew"
	"k8s.io/kubernetes-features/build/release/targets"
)

// TestPluginAlone looks at what is made of the plugin where nothing else is.
func TestPluginAlone(t *testing.T) {
	r := inTheMaking(t, checkout(t))
	r.plugin, r.download = true, "https://example.com/downloads/v1%2Bfeature.1/"
	if err := r.make(t.Context(), []targets.Platform{amd64, windows}); err != nil {
		t.Fatal(err)
	}
	files, err := os.ReadDir(r.tars())
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, f := range files {
		names = append(names, f.Name())
	}
	if diff := gocmp.Diff([]string{
		"SHA256SUMS", "SHA512SUMS", "feature.yaml", "kubectl-feature-linux-amd64.tar.gz", "kubectl-feature-windows-amd64.tar.gz", "kubernetes.spdx.json",
	}, names); diff != "" {
		t.Errorf("release-tars (-want +got):\n%s", diff)
	}
	checkSums(t, r.tars())
	bill := readBill(t, r.tars())
	bill.hashes(t, manifestFile, filepath.Join(r.tars(), manifestFile))
	if exists(filepath.Join(r.out, imagesFolder)) {
		t.Error("there are images")
	}
	m, err := krew.Read(filepath.Join(r.tars(), manifestFile))
	if err != nil {
		t.Fatal(err)
	}
	if m.Metadata.Name != "feature" || m.Spec.Version != string(r.version) || m.Spec.Homepage != "https://example.com/fork" {
		t.Errorf("the manifest is of %s %s, %s", m.Metadata.Name, m.Spec.Version, m.Spec.Homepage)
	}
	for i, want := range []krew.Platform{
		{
			Selector: krew.Selector{MatchLabels: map[string]string{"os": "linux", "arch": "amd64"}}, Bin: "kubectl-feature",
			URI:   "https://example.com/downloads/v1%2Bfeature.1/kubectl-feature-linux-amd64.tar.gz",
			Files: []krew.File{{From: "kubectl-feature", To: "."}, {From: "LICENSE", To: "."}, {From: "LICENSES", To: "."}, {From: "kubectl_complete-feature", To: "."}},
		},
		{
			Selector: krew.Selector{MatchLabels: map[string]string{"os": "windows", "arch": "amd64"}}, Bin: "kubectl-feature.exe",
			URI:   "https://example.com/downloads/v1%2Bfeature.1/kubectl-feature-windows-amd64.tar.gz",
			Files: []krew.File{{From: "kubectl-feature.exe", To: "."}, {From: "LICENSE", To: "."}, {From: "LICENSES", To: "."}},
		},
	} {
		file := filepath.Base(want.URI)
		want.SHA256 = bill.files[file].PackageChecksums[0].Value
		bill.hashes(t, file, filepath.Join(r.tars(), file))
		if diff := gocmp.Diff(want, m.Spec.Platforms[i]); diff != "" {
			t.Errorf("platform %d of the manifest (-want +got):\n%s", i, diff)
		}
	}
	if source, download, err := addresses(filepath.Join(r.tars(), manifestFile)); err != nil || source != r.flags.source || download+"/" != r.download {
		t.Errorf("the manifest is read to be of %q, archives in %q: %v; want %q and %q", source, download, err, r.flags.source, r.download)
	}
}

func TestPluginSize(t *testing.T) {
	file := filepath.Join(t.TempDir(), "kubectl-feature.exe")
	if err := checkPluginSize(file, windows); err == nil {
		t.Error("a plugin that is missing is small enough")
	}
	for size, want := range map[int64]string{
		0: "", 41943039: "",
		41943040: "kubectl-feature.exe for windows/amd64 has 41943040 bytes, and has to be below 41943040 (40 MiB): ",
		62000000: "kubectl-feature.exe for windows/amd64 has 62000000 bytes, ",
	} {
		// The files are sparse and take no space.
		if err := os.WriteFile(file, nil, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Truncate(file, size); err != nil {
			t.Fatal(err)
		}
		err := checkPluginSize(file, windows)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("a plugin of %d bytes: %v, want %q", size, err, want)
		}
	}
}

// TestLargePluginRefused makes releases whose plugin has grown on one platform. Where it
// has no archive of its own its size does not matter.
func TestLargePluginRefused(t *testing.T) {
	grown := func(p targets.Platform) error {
		r := inTheMaking(t, checkout(t))
		compile := r.compile
		r.compile = func(ctx context.Context, p targets.Platform) error {
			if err := compile(ctx, p); err != nil {
				return err
			}
			return os.Truncate(filepath.Join(r.bin(p), p.Executable(pluginName)), maxPluginSize)
		}
		return r.make(t.Context(), []targets.Platform{p})
	}
	if err := grown(windows); err == nil || !strings.Contains(err.Error(), "kubectl-feature.exe for windows/amd64 has ") {
		t.Errorf("a release with a large plugin for windows/amd64: %v", err)
	}
	if err := grown(targets.Platform{OS: "linux", Arch: "arm"}); err != nil {
		t.Errorf("a release with a large plugin for linux/arm, among the clients only: %v", err)
	}
}

// TestPluginRefused has command lines that krew or its users could do nothing with.
func TestPluginRefused(t *testing.T) {
	for want, args := range map[string][]string{
		"kubectl-feature is not released for linux/386; use some of darwin/amd64, ": {"plugin", "-platforms", "linux/amd64 linux/386"},
		`DOWNLOAD_URL is "file:///tmp"`:                                             {"plugin", "-download", "file:///tmp"},
		`DOWNLOAD_URL is "example.com"`:                                             {"-download", "example.com"},
		"DOWNLOAD_URL is no address":                                                {"plugin", "-download", "https://%"},
		"there are lock, plugin and":                                                {"plugins"},
	} {
		if err := run(t.Context(), append(args, "-version", "v1.36.3")); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v, want %q", args, err, want)
		}
	}
}

// TestDownloadURL: the default is where GitHub has the files of a release.
func TestDownloadURL(t *testing.T) {
	for _, c := range []struct {
		env  []string
		want string
	}{
		{nil, ""},
		{[]string{"SOURCE_URL=https://example.com/o/r", "VERSION=v1.36.3+feature.1"}, "https://example.com/o/r/releases/download/v1.36.3%2Bfeature.1"},
		{[]string{"SOURCE_URL=https://example.com/o/r", "DOWNLOAD_URL=https://example.com/files"}, "https://example.com/files"},
	} {
		if got := ask(t, "DOWNLOAD_URL", c.env...); got != c.want {
			t.Errorf("with %v DOWNLOAD_URL is %q, want %q", c.env, got, c.want)
		}
	}
}
