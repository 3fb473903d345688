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

package catalog

import (
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	utilversion "k8s.io/apimachinery/pkg/util/version"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/component-base/featuregate"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/feature-lifecycle/lifecycle/versionskew"
	aggregatorscheme "k8s.io/kube-aggregator/pkg/apiserver/scheme"
	"k8s.io/kubernetes/pkg/apis/scheduling"
	controlplaneapiserver "k8s.io/kubernetes/pkg/controlplane/apiserver"
)

// The tests read upstream's gates, the resources that it serves with their Go
// types, and its source. Everything is read where the build reads it, in the
// module cache.

func knownGates(t *testing.T) featuregate.MutableVersionedFeatureGate {
	t.Helper()
	gates, err := Gates()
	if err != nil {
		t.Fatal(err)
	}
	return gates
}

// emulatedVersions returns the versions that a binary of this build can be, the newest
// first.
func emulatedVersions(t *testing.T) []*utilversion.Version {
	t.Helper()
	versions, err := EmulatedVersions()
	if err != nil {
		t.Fatal(err)
	}
	return versions
}

// gateSpecs are specs of gates.
type gateSpecs map[featuregate.Feature]versionskew.Spec

// openGates returns the gates that can be turned on and off, with the newest spec that
// permits it: alpha or beta, and not locked, at one of the versions that a binary of this
// build can be. A gate that is GA in the newest is turned off by --emulated-version.
func openGates(t *testing.T) gateSpecs {
	t.Helper()
	open := gateSpecs{}
	for name, specs := range knownGates(t).GetAllVersioned() {
		if name == "AllAlpha" || name == "AllBeta" {
			continue
		}
		for _, v := range emulatedVersions(t) {
			if spec := versionskew.SpecAt(specs, v); Open(spec) {
				open[name] = spec
				break
			}
		}
	}
	return open
}

// verdicts returns the entries by gate.
func verdicts() map[featuregate.Feature]Entry {
	entries := map[featuregate.Feature]Entry{}
	for _, e := range All() {
		entries[e.Name] = e
	}
	return entries
}

const (
	kubernetes    = "k8s.io/kubernetes"
	api           = "k8s.io/api"
	apiextensions = "k8s.io/apiextensions-apiserver"
	apiserver     = "k8s.io/apiserver"
	componentBase = "k8s.io/component-base"
	// componentHelpers has the features that nodes declare.
	componentHelpers = "k8s.io/component-helpers"
)

// moduleDirs has the folders of upstream's modules in the module cache.
var moduleDirs = sync.OnceValues(func() (map[string]string, error) {
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Path}} {{.Dir}}", kubernetes, api, apiextensions, apiserver, componentBase, componentHelpers).Output()
	if err != nil {
		return nil, fmt.Errorf("finding upstream's source with go list: %w", err)
	}
	dirs := map[string]string{}
	for line := range strings.Lines(string(out)) {
		module, dir, _ := strings.Cut(strings.TrimSpace(line), " ")
		dirs[module] = dir
	}
	return dirs, nil
})

func moduleDir(t *testing.T, module string) string {
	t.Helper()
	dirs, err := moduleDirs()
	if err != nil || dirs[module] == "" {
		t.Fatalf("the source of %s is not in the module cache: %v", module, err)
	}
	return dirs[module]
}

// sourceFile is a parsed file of upstream.
type sourceFile struct {
	*ast.File
	// name is the file's path, beginning with that of its module.
	name  string
	files *token.FileSet
}

func (f sourceFile) at(node ast.Node) string {
	return fmt.Sprintf("%s:%d", f.name, f.files.Position(node.Pos()).Line)
}

// importPath returns that of the file's package.
func (f sourceFile) importPath() string { return path.Dir(f.name) }

// parse reads the files below a folder of a module that are chosen by name.
func parse(t *testing.T, module, folder string, choose func(name string) bool) []sourceFile {
	t.Helper()
	var found []sourceFile
	files := token.NewFileSet()
	root := moduleDir(t, module)
	err := filepath.WalkDir(filepath.Join(root, folder), func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !choose(entry.Name()) {
			return err
		}
		file, err := parser.ParseFile(files, name, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		relative, err := filepath.Rel(root, name)
		found = append(found, sourceFile{file, path.Join(module, filepath.ToSlash(relative)), files})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(found) == 0 {
		t.Fatalf("no files were found in %s of %s", folder, module)
	}
	return found
}

// sourceText is a file of upstream as it is written.
type sourceText struct{ name, text string }

// sourceTexts returns the files of Go below a folder of a module, without tests and what
// is generated.
func sourceTexts(t *testing.T, module, folder string) []sourceText {
	t.Helper()
	var found []sourceText
	root := moduleDir(t, module)
	err := filepath.WalkDir(filepath.Join(root, folder), func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") || strings.HasPrefix(entry.Name(), "zz_generated") {
			return err
		}
		text, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		relative, err := filepath.Rel(root, name)
		found = append(found, sourceText{path.Join(module, filepath.ToSlash(relative)), string(text)})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// filesNamed chooses files with one of the names.
func filesNamed(names ...string) func(string) bool {
	return func(name string) bool { return slices.Contains(names, name) }
}

// gateConstants returns the gates by the name of upstream's constant, as far
// as files of the folder declare it.
func gateConstants(t *testing.T, module, folder string) map[string]featuregate.Feature {
	t.Helper()
	constants := map[string]featuregate.Feature{}
	for _, file := range parse(t, module, folder, filesNamed("kube_features.go")) {
		maps.Copy(constants, constantsOf(file.File))
	}
	return constants
}

// constantsOf returns the gates that a file declares, by the name of the
// constant.
func constantsOf(file *ast.File) map[string]featuregate.Feature {
	constants := map[string]featuregate.Feature{}
	ast.Inspect(file, func(node ast.Node) bool {
		if value, ok := node.(*ast.ValueSpec); ok && len(value.Values) == 1 {
			if text, ok := value.Values[0].(*ast.BasicLit); ok && text.Kind == token.STRING {
				name, _ := strconv.Unquote(text.Value)
				constants[value.Names[0].Name] = featuregate.Feature(name)
			}
		}
		return true
	})
	return constants
}

// resource is one that upstream stores.
type resource struct {
	schema.GroupResource
	// version is the preferred one of those that have the resource.
	version string
	// finished is true if a version of it is neither alpha nor beta.
	finished bool
	kind     reflect.Type
}

// storedResources returns those that can be listed and deleted, with every
// gate on and every version served, as upstream publishes them in
// api/discovery.
func storedResources(t *testing.T) map[schema.GroupResource]resource {
	t.Helper()
	types := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, apiextensionsv1.AddToScheme} {
		if err := add(types); err != nil {
			t.Fatal(err)
		}
	}
	found := map[schema.GroupResource]resource{}
	// Upstream's documents do not have this fork's additions.
	for name, object := range map[string]any{"features": v1alpha1.Feature{}, "featurereports": v1alpha1.FeatureReport{}, "featurevalues": v1alpha1.FeatureValue{}} {
		key := v1alpha1.Resource(name)
		found[key] = resource{GroupResource: key, version: v1alpha1.SchemeGroupVersion.Version, kind: reflect.TypeOf(object)}
	}
	add := func(gvk schema.GroupVersionKind, name string, verbs []string) {
		if strings.Contains(name, "/") || !sets.New(verbs...).HasAll("list", "delete") {
			return
		}
		scheme := types
		if aggregatorscheme.Scheme.Recognizes(gvk) {
			scheme = aggregatorscheme.Scheme
		}
		object, err := scheme.New(gvk)
		if err != nil {
			t.Fatal(err)
		}
		key := schema.GroupResource{Group: gvk.Group, Resource: name}
		r, seen := found[key]
		if !seen {
			r = resource{GroupResource: key, version: gvk.Version, kind: reflect.TypeOf(object).Elem()}
		}
		r.finished = r.finished || !strings.Contains(gvk.Version, "alpha") && !strings.Contains(gvk.Version, "beta")
		found[key] = r
	}
	var core metav1.APIResourceList
	readPublished(t, "api__v1.json", &core)
	for _, r := range core.APIResources {
		add(schema.GroupVersionKind{Version: "v1", Kind: r.Kind}, r.Name, r.Verbs)
	}
	var groups apidiscoveryv2.APIGroupDiscoveryList
	readPublished(t, "aggregated_v2.json", &groups)
	for _, g := range groups.Items {
		for _, v := range g.Versions { // the preferred one comes first
			for _, r := range v.Resources {
				if r.ResponseKind != nil {
					add(schema.GroupVersionKind{Group: g.Name, Version: v.Version, Kind: r.ResponseKind.Kind}, r.Resource, r.Verbs)
				}
			}
		}
	}
	return found
}

// publishedResources returns the resources of API groups that upstream can serve, in every
// version.
func publishedResources(t *testing.T) map[schema.GroupVersionResource]bool {
	t.Helper()
	var groups apidiscoveryv2.APIGroupDiscoveryList
	readPublished(t, "aggregated_v2.json", &groups)
	found := map[schema.GroupVersionResource]bool{}
	for _, g := range groups.Items {
		for _, v := range g.Versions {
			for _, r := range v.Resources {
				found[schema.GroupVersionResource{Group: g.Name, Version: v.Version, Resource: r.Resource}] = true
			}
		}
	}
	return found
}

func readPublished(t *testing.T, name string, into any) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(moduleDir(t, kubernetes), "api", "discovery", name))
	if err == nil {
		err = json.Unmarshal(data, into)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// TestConstantsOfUpstream compares what the catalog states itself, so that kubectl feature
// does not link servers and whole APIs for it.
func TestConstantsOfUpstream(t *testing.T) {
	for got, want := range map[string]string{
		identityLeaseLabel:  controlplaneapiserver.IdentityLeaseComponentLabelKey,
		identityLeaseServer: controlplaneapiserver.KubeAPIServer,
		podGroupFinalizer:   scheduling.PodGroupProtectionFinalizer,
		storageMigrating:    string(apiextensionsv1.StorageMigrating),
		crds.String():       apiextensionsv1.SchemeGroupVersion.WithResource("customresourcedefinitions").String(),
	} {
		if got != want {
			t.Errorf("%q is %q in upstream's code", got, want)
		}
	}
}
