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
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"k8s.io/kubernetes-features/build/kind/capless/withheld"
)

func TestSpecificationOfInvocation(t *testing.T) {
	for args, want := range map[string]string{
		"--root /r --log /l --log-format json create --bundle /b --pid-file /p id": "/b/config.json",
		"--root=/r --systemd-cgroup create -b /b id":                               "/b/config.json",
		"run --bundle=/b id": "/b/config.json",
		"create id":          "config.json",
		"--log /l exec --process /p.json --detach id": "/p.json",
		"exec -p /p.json id":                          "/p.json",
		"exec -d id create":                           "",
		"exec id -- -p x":                             "",
		"--root create state id":                      "",
		"--debug delete --force id":                   "",
		"--version":                                   "",
		"":                                            "",
		"--rootless true --criu x create --bundle /b/ --b": "/b/config.json",
	} {
		if got := specification(strings.Fields(args)); got != want {
			t.Errorf("%q: %q, not %q", args, got, want)
		}
	}
}

const (
	before = `{"process":{"args":["a<b>&c"],"capabilities":{"ambient":["CAP_SYS_RESOURCE"],"bounding":["CAP_CHOWN","CAP_SYS_RESOURCE"]},"n":12345678901234567890},"x":1.0}`
	after  = `{"process":{"args":["a<b>&c"],"capabilities":{"ambient":[],"bounding":["CAP_CHOWN"]},"n":12345678901234567890},"x":1.0}`
)

func TestWithoutCapabilities(t *testing.T) {
	missing := []string{"CAP_SYS_RESOURCE"}
	for _, c := range []struct{ name, content, want string }{
		{"configuration", before, after},
		{"process", `{"capabilities":{"permitted":["CAP_SYS_RESOURCE","CAP_KILL"]},"cwd":"/"}`, `{"capabilities":{"permitted":["CAP_KILL"]},"cwd":"/"}`},
		{"nothing to take out", `{ "process": {"capabilities": {"bounding": ["CAP_KILL"]}} }`, `{ "process": {"capabilities": {"bounding": ["CAP_KILL"]}} }`},
		{"no capabilities", `{"ociVersion": "1.2"}`, `{"ociVersion": "1.2"}`},
		{"null", `{"process": null, "capabilities": null}`, `{"process": null, "capabilities": null}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := without([]byte(c.content), missing)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(c.want, string(got)); d != "" {
				t.Error(d)
			}
		})
	}
}

func TestWithoutRefusesWhatItCannotRead(t *testing.T) {
	for content, want := range map[string]string{
		`{`:                                 "unexpected end",
		`{"process": 1}`:                    "process",
		`{"capabilities": {"bounding": 1}}`: "capabilities.bounding",
	} {
		if _, err := without([]byte(content), nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v is no error with %q", content, err, want)
		}
	}
}

func TestStripReplacesFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "config.json")
	if err := os.WriteFile(file, []byte(before), 0o640); err != nil {
		t.Fatal(err)
	}
	if err := strip(file, []string{"CAP_SYS_RESOURCE"}); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(after, string(got)); d != "" {
		t.Error(d)
	}
	info, err := os.Stat(file)
	if err != nil {
		t.Fatal(err)
	}
	if mode := info.Mode().Perm(); mode != 0o640 {
		t.Errorf("the mode is %o", mode)
	}
	left, err := os.ReadDir(filepath.Dir(file))
	if err != nil {
		t.Fatal(err)
	}
	if len(left) != 1 {
		t.Errorf("there are %d files beside", len(left)-1)
	}
}

func TestRunNamesRuntimeThatIsNotInstalled(t *testing.T) {
	t.Setenv("CAPLESS_RUNTIME", "no-such-runtime")
	if err := run([]string{"--version"}, io.Discard); err == nil || !strings.Contains(err.Error(), "install runc") {
		t.Errorf("%v has no next step", err)
	}
}

// TestRunPrintsWhatIsWithheld needs no runtime.
func TestRunPrintsWhatIsWithheld(t *testing.T) {
	t.Setenv("CAPLESS_RUNTIME", "no-such-runtime")
	want, err := withheld.Capabilities(os.DirFS("/proc"))
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	if err := run([]string{withheld.Command}, &out); err != nil {
		t.Fatal(err)
	}
	if got := strings.Fields(out.String()); !slices.Equal(got, want) {
		t.Errorf("it prints %q, want %q", got, want)
	}
}
