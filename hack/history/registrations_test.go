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
	"io/fs"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"k8s.io/kubernetes-features/pkg/featurelifecycle/history"
)

// sample is a release with a binary that fills its gate in each known way.
func sample() map[string]string {
	return map[string]string{
		"cmd/lamp/main.go":   "package main\nimport (\n_ \"example.com/other\"\n_ \"fmt\"\n_ \"k8s.io/kubernetes/cmd/lamp/app\"\n)\n",
		"cmd/lamp/app/os.go": "//go:build windows\n\npackage app\nimport _ \"k8s.io/kubernetes/pkg/windows/features\"\n",
		"cmd/lamp/app/app.go": `package app
import (
	"k8s.io/apimachinery/pkg/util/version"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/component-base/featuregate"
	logsapi "k8s.io/component-base/logs/api/v1"
	_ "k8s.io/kubernetes/pkg/register"
	"k8s.io/kubernetes/pkg/features"
)
func init() { must(logsapi.AddFeatureGates(utilfeature.DefaultMutableFeatureGate)) }
func flags() {
	if !utilfeature.DefaultFeatureGate.Enabled(features.Bulb) {
		ver := version.MustParse("1.34")
		must(utilfeature.DefaultMutableFeatureGate.OverrideDefaultAtVersion(featuregate.Feature(features.Bulb), true, ver))
		must(utilfeature.DefaultMutableFeatureGate.OverrideDefault(features.Socket, false))
	}
	utilfeature.DefaultMutableFeatureGate.AddMetrics()
	metricsfeatures.ApplyFeatureGates(utilfeature.DefaultMutableFeatureGate)
}
`,
		"cmd/lamp/app/app_test.go":  "package app\nimport _ \"k8s.io/kubernetes/pkg/test/features\"\n",
		"pkg/features/features.go":  "package features\nfunc init() { must(utilfeature.DefaultMutableFeatureGate.AddVersioned(all)) }\n",
		"pkg/register/register.go":  "package register\nfunc init() { features.Setup(utilfeature.DefaultMutableFeatureGate) }\n",
		"pkg/windows/features/f.go": "package features\nfunc init() { DefaultMutableFeatureGate.Add(all) }\n",
		"pkg/test/features/f.go":    "package features\nfunc init() { DefaultMutableFeatureGate.Add(all) }\n",
	}
}

func release1(files map[string]string) *release {
	kubernetes := fstest.MapFS{}
	for name, text := range files {
		kubernetes[name] = &fstest.MapFile{Data: []byte(text)}
	}
	return &release{kubernetes: tree{FS: kubernetes}, versions: map[string]string{"k8s.io/component-base": "", "k8s.io/apiserver": "", "k8s.io/apimachinery": ""}}
}

func TestRegistrations(t *testing.T) {
	got, err := release1(sample()).registrations(t.Context(), kubernetesModule+"/cmd/lamp")
	if err != nil {
		t.Fatal(err)
	}
	want := registrations{
		packages:  []string{"k8s.io/kubernetes/pkg/features", "k8s.io/kubernetes/pkg/register"},
		adders:    []string{"k8s.io/component-base/logs/api/v1"},
		overrides: []override{{Gate: "Bulb", Value: true, Version: "1.34"}, {Gate: "Socket"}},
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(registrations{})); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	text, err := execute(sharedProgram, map[string]any{"Packages": got.packages, "Adders": got.adders, "Overrides": got.overrides})
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{
		"\t_ \"k8s.io/kubernetes/pkg/features\"\n", "\tadder0 \"k8s.io/component-base/logs/api/v1\"\n", "adder0.AddFeatureGates(gates)",
		`gates.OverrideDefaultAtVersion("Bulb", true, utilversion.MustParse("1.34"))`, `gates.OverrideDefault("Socket", false)`,
	} {
		if !strings.Contains(text, line) {
			t.Errorf("the program lacks %q:\n%s", line, text)
		}
	}
}

// TestRegistrationsRefuseOtherForms: what upstream writes in another way is an error, never a gate that is missing
// or has another default.
func TestRegistrationsRefuseOtherForms(t *testing.T) {
	for want, change := range map[string][3]string{
		"a program can import it for that alone":         {"cmd/lamp/app/app.go", ".AddMetrics()", ".Add(all)"},
		"hands the gate to Fill; teach":                  {"cmd/lamp/app/app.go", "logsapi.AddFeatureGates", "logsapi.Fill"},
		"an AddFeatureGates that is of no package":       {"cmd/lamp/app/app.go", "logsapi.AddFeatureGates", "of(logs).AddFeatureGates"},
		"OverrideAll is not known":                       {"cmd/lamp/app/app.go", "OverrideDefault(", "OverrideAll("},
		"the gate is a *ast.BasicLit":                    {"cmd/lamp/app/app.go", "features.Socket", `"Socket"`},
		`parsing "off": invalid syntax`:                  {"cmd/lamp/app/app.go", ", false)", ", off)"},
		"the value is a *ast.CallExpr":                   {"cmd/lamp/app/app.go", ", false)", ", value())"},
		"the version is a *ast.CallExpr":                 {"cmd/lamp/app/app.go", "true, ver)", "true, own())"},
		"no text is assigned to its version ver":         {"cmd/lamp/app/app.go", `MustParse("1.34")`, "MustParse(own)"},
		"package k8s.io/kubernetes/cmd/lamp/app: cannot": {"cmd/lamp/app/app.go", "", ""},
		"expected": {"pkg/features/features.go", "must(", "must"},
	} {
		t.Run(want, func(t *testing.T) {
			files := sample()
			if change[1] == "" {
				for _, name := range []string{"app.go", "app_test.go", "os.go"} {
					delete(files, "cmd/lamp/app/"+name)
				}
			} else if files[change[0]] = strings.Replace(files[change[0]], change[1], change[2], 1); files[change[0]] == sample()[change[0]] {
				t.Fatalf("%s has no %q", change[0], change[1])
			}
			if _, err := release1(files).registrations(t.Context(), kubernetesModule+"/cmd/lamp"); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("got %v, want an error with %q", err, want)
			}
		})
	}
}

// TestRegistrationsOfThisVersion reads the sources that this build has. Servers fill their gates alike, in the way of
// catalog.Gates, but kube-scheduler does not import the gates of controller managers.
func TestRegistrationsOfThisVersion(t *testing.T) {
	args := []string{"list", "-deps", "-f", "{{with .Module}}{{.Path}} {{.Version}} {{.Dir}}{{end}}"}
	for component, main := range binaries {
		if component != history.CloudControllerManager {
			args = append(args, main)
		}
	}
	output, err := exec.CommandContext(t.Context(), "go", args...).Output()
	if err != nil {
		t.Fatal(err)
	}
	r := &release{versions: map[string]string{}, trees: map[string]tree{}}
	for line := range strings.Lines(string(output)) {
		fields := strings.Fields(line)
		if len(fields) != 3 || !strings.HasPrefix(fields[0], "k8s.io/") {
			continue
		}
		files := tree{FS: os.DirFS(fields[2])}
		if fields[0] == kubernetesModule {
			r.kubernetes = files
		}
		r.versions[fields[0]], r.trees[fields[0]] = fields[1], files
	}
	want := registrations{
		packages: []string{
			"k8s.io/apiextensions-apiserver/pkg/features", "k8s.io/apiserver/pkg/features", "k8s.io/controller-manager/pkg/features/register",
			"k8s.io/kubernetes/pkg/features",
		},
		adders: []string{"k8s.io/component-base/logs/api/v1", "k8s.io/component-base/metrics/features"},
	}
	for component, main := range binaries {
		if component == history.CloudControllerManager {
			continue
		}
		got, err := r.registrations(t.Context(), main)
		if err != nil {
			t.Fatal(err)
		}
		want := want
		if component == history.KubeScheduler {
			want.packages = slices.DeleteFunc(slices.Clone(want.packages), func(path string) bool { return path == "k8s.io/controller-manager/pkg/features/register" })
		}
		if diff := cmp.Diff(want, got, cmp.AllowUnexported(registrations{})); diff != "" {
			t.Errorf("%s (-want +got):\n%s", component, diff)
		}
	}
}

// TestPackagesWithoutFilesAreNotRead: modules that are not published have none.
func TestPackagesWithoutFilesAreNotRead(t *testing.T) {
	r := release1(nil)
	if _, _, ok, err := r.source(t.Context(), "k8s.io/apiserver/pkg/features"); ok || err != nil {
		t.Errorf("%t, %v", ok, err)
	}
	files, dir, ok, err := r.source(t.Context(), kubernetesModule+"/pkg/features")
	if _, statErr := fs.Stat(files, dir); !ok || err != nil || statErr == nil {
		t.Errorf("%s is read: %t, %v", dir, ok, err)
	}
}
