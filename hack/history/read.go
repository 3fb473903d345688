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
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"text/template"

	"k8s.io/kubernetes-features/pkg/featurelifecycle/history"
)

// facts are the gates of each component of a version, by name.
type facts map[string]map[string]history.Spec

// binaries has the main packages whose gates --feature-gates sets, by component.
var binaries = map[string]string{
	history.KubeAPIServer:         kubernetesModule + "/cmd/kube-apiserver",
	history.KubeControllerManager: kubernetesModule + "/cmd/kube-controller-manager",
	history.KubeScheduler:         kubernetesModule + "/cmd/kube-scheduler",
	history.Kubelet:               kubernetesModule + "/cmd/kubelet",
	history.KubeProxy:             kubernetesModule + "/cmd/kube-proxy",
	// Those of providers import this package; upstream releases none itself.
	history.CloudControllerManager: "k8s.io/cloud-provider/app",
}

// sharedProgram prints the gates of a binary with the same registrations.
var sharedProgram = template.Must(template.New("shared").Parse(head + `
{{- range .Overrides}}{{if .Version}}
	utilversion "k8s.io/apimachinery/pkg/util/version"
{{- break}}{{end}}{{end}}
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/component-base/featuregate"
{{- range .Packages}}
	_ "{{.}}"
{{- end}}
{{- range $i, $path := .Adders}}
	adder{{$i}} "{{$path}}"
{{- end}}
)

func main() {
	gates := utilfeature.DefaultMutableFeatureGate
{{- range $i, $path := .Adders}}
	if err := adder{{$i}}.AddFeatureGates(gates); err != nil {
		panic(err)
	}
{{- end}}
{{- range .Overrides}}
	if err := gates.OverrideDefault{{if .Version}}AtVersion{{end}}("{{.Gate}}", {{.Value}}{{if .Version}}, utilversion.MustParse("{{.Version}}"){{end}}); err != nil {
		panic(err)
	}
{{- end}}
	var needs map[featuregate.Feature][]featuregate.Feature
	if declared, ok := any(gates).(interface {
		Dependencies() map[featuregate.Feature][]featuregate.Feature
	}); ok {
		needs = declared.Dependencies()
	}
	for name, s := range gates.GetAll() {
		var dependsOn []string
		for _, other := range needs[name] {
			dependsOn = append(dependsOn, string(other))
		}
		add(string(name), string(s.PreRelease), s.Default, s.LockToDefault, dependsOn)
	}
	print()
}
` + tail))

// clientProgram prints the gates that client-go has by itself.
var clientProgram = template.Must(template.New("client").Parse(head + `
	"k8s.io/client-go/features"
)

type registry struct{}

func (registry) Add(all map[features.Feature]features.FeatureSpec) error {
	for name, s := range all {
		add(string(name), string(s.PreRelease), s.Default, s.LockToDefault, nil)
	}
	return nil
}

func main() {
	if err := features.AddFeaturesToExistingFeatureGates(registry{}); err != nil {
		panic(err)
	}
	print()
}
` + tail))

// kubeadmProgram prints kubeadm's own gates.
var kubeadmProgram = template.Must(template.New("kubeadm").Parse(head + `
	"k8s.io/kubernetes/cmd/kubeadm/app/features"
)

func main() {
	for name, s := range features.InitFeatureGates {
		add(name, string(s.PreRelease), s.Default, s.LockToDefault, nil)
	}
	print()
}
` + tail))

// head and tail begin and end each program.
const (
	head = `package main

import (
	"encoding/json"
	"os"
`
	tail = `
type spec struct {
	Stage string ` + "`json:\"stage\"`" + `
	Default bool ` + "`json:\"default\"`" + `
	Locked bool ` + "`json:\"locked\"`" + `
	DependsOn []string ` + "`json:\"dependsOn\"`" + `
}

var all = map[string]spec{}

func add(name, stage string, on, locked bool, dependsOn []string) {
	all[name] = spec{stage, on, locked, dependsOn}
}

func print() {
	if err := json.NewEncoder(os.Stdout).Encode(all); err != nil {
		panic(err)
	}
}
`
)

// read returns the gates that the binaries of a version have. It compiles programs with the same
// registrations of gates, and runs them.
func read(ctx context.Context, version string, replace []string) (all facts, err error) {
	r, err := open(ctx, version)
	if err != nil {
		return nil, err
	}
	defer func() {
		if closing := r.close(); err == nil {
			err = closing
		}
	}()
	dir, err := os.MkdirTemp("", "history-")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(dir) }() // Nothing of it is needed.
	if err := r.writeModule(ctx, dir, replace); err != nil {
		return nil, err
	}
	programs, err := r.programs(ctx)
	if err != nil {
		return nil, err
	}
	// Components with the same program share it.
	all, printed := facts{}, map[string]map[string]history.Spec{}
	for component, text := range programs {
		if printed[text] == nil {
			if printed[text], err = run(ctx, dir, fmt.Sprintf("program%d", len(printed)), text); err != nil {
				return nil, fmt.Errorf("gates of %s: %w", component, err)
			}
		}
		all[component] = printed[text]
	}
	return all, nil
}

// programs returns the source of the program that prints the gates of each component.
func (r *release) programs(ctx context.Context) (map[string]string, error) {
	all := map[string]string{}
	for component, main := range binaries {
		found, err := r.registrations(ctx, main)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", component, err)
		}
		if all[component], err = execute(sharedProgram, map[string]any{"Packages": found.packages, "Adders": found.adders, "Overrides": found.overrides}); err != nil {
			return nil, err
		}
	}
	for component, program := range map[string]struct {
		template   *template.Template
		importPath string
	}{
		history.ClientGo: {clientProgram, "k8s.io/client-go/features"},
		history.Kubeadm:  {kubeadmProgram, kubernetesModule + "/cmd/kubeadm/app/features"},
	} {
		files, dir, ok, err := r.source(ctx, program.importPath)
		if err != nil {
			return nil, err
		}
		// 1.29 has no gates of client-go.
		if _, err := fs.Stat(files, dir); !ok || err != nil {
			continue
		}
		if all[component], err = execute(program.template, nil); err != nil {
			return nil, err
		}
	}
	return all, nil
}

func execute(t *template.Template, data any) (string, error) {
	var text strings.Builder
	err := t.Execute(&text, data)
	return text.String(), err
}

// writeModule writes a go.mod with the requirements of the release, whose staging modules are the published
// ones.
func (r *release) writeModule(ctx context.Context, dir string, replace []string) error {
	for _, name := range []string{"go.mod", "go.sum"} {
		text, err := fs.ReadFile(r.kubernetes, name)
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
			return err
		}
	}
	edits := []string{"mod", "edit", "-module=example.com/gates", "-require=" + kubernetesModule + "@" + r.version}
	for _, path := range r.staging {
		with := path + "@" + r.versions[path]
		if r.versions[path] == "" {
			// An empty module stands for it. A program that needs it does not compile.
			with = "./" + filepath.Join("absent", filepath.Base(path))
			if err := os.MkdirAll(filepath.Join(dir, with), 0o700); err != nil {
				return err
			}
			if err := os.WriteFile(filepath.Join(dir, with, "go.mod"), []byte("module "+path+"\n"), 0o600); err != nil {
				return err
			}
		}
		edits = append(edits, "-dropreplace="+path, "-replace="+path+"="+with)
	}
	for _, r := range replace {
		edits = append(edits, "-replace="+r)
	}
	_, err := goCommand(ctx, dir, edits...)
	return err
}

// run compiles a program in a module, and returns the gates that it prints.
func run(ctx context.Context, dir, name, text string) (map[string]history.Spec, error) {
	if err := os.Mkdir(filepath.Join(dir, name), 0o700); err != nil {
		return nil, err
	}
	if err := os.WriteFile(filepath.Join(dir, name, "main.go"), []byte(text), 0o600); err != nil {
		return nil, err
	}
	binary := filepath.Join(dir, name, "program")
	if _, err := goCommand(ctx, dir, "build", "-o", binary, "./"+name); err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, binary)
	cmd.Stderr = os.Stderr
	output, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	var all map[string]history.Spec
	if err := json.Unmarshal(output, &all); err != nil {
		return nil, err
	}
	return normalize(all), nil
}

// normalize leaves out what is no gate of the version, and names stages as the API does.
func normalize(all map[string]history.Spec) map[string]history.Spec {
	known := map[string]history.Spec{}
	for name, s := range all {
		// AllAlpha and AllBeta set all gates of a stage. A gate before its first version is not known.
		if name == "AllAlpha" || name == "AllBeta" || s.Stage == "PRE-ALPHA" {
			continue
		}
		if stage, ok := stageNames[s.Stage]; ok {
			s.Stage = stage
		}
		slices.Sort(s.DependsOn)
		known[name] = s
	}
	return known
}

// stageNames are those of component-base whose names differ.
var stageNames = map[string]string{"": "GA", "ALPHA": "Alpha", "BETA": "Beta", "DEPRECATED": "Deprecated"}
