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
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"k8s.io/apimachinery/pkg/runtime/schema"
	utilversion "k8s.io/apimachinery/pkg/util/version"
	"k8s.io/component-base/featuregate"
	"k8s.io/feature-lifecycle/lifecycle/task"
	"k8s.io/feature-lifecycle/lifecycle/versionskew"
	"k8s.io/kubernetes-features/pkg/featurelifecycle/catalog"
)

// neverStored are kinds of the API types that no server stores.
var neverStored = []string{"core/v1 PodStatusResult"}

// lostInPeace are fields that the version before loses on the way down, and why that does
// no harm.
var lostInPeace = map[featuregate.Feature]string{
	"CSIVolumeHealth":        "kubelet publishes the health of volumes in status; nothing of 1.36 reads it, and 1.37 publishes it again",
	"KubeletInUserNamespace": "kubelet publishes it in the status of its Node; nothing of 1.36 reads it, and 1.37 publishes it again",
}

// releases returns the versions of k8s.io/api before this one's minor version and of it,
// and the minor versions.
func releases(t *testing.T) (older, newer, below, minor string) {
	t.Helper()
	of := func(file string) string {
		data, err := os.ReadFile(filepath.Join("..", "..", file))
		if err != nil {
			t.Fatal(err)
		}
		found := regexp.MustCompile(`k8s\.io/kubernetes v1(\.\d+\.\d+)`).FindSubmatch(data)
		if found == nil {
			t.Fatalf("%s requires no release of k8s.io/kubernetes", file)
		}
		return string(found[1])
	}
	minorOf := func(release string) string { return "1" + release[:strings.LastIndex(release, ".")] }
	older, newer = of("hack/previous/go.mod"), of("go.mod")
	below, minor = minorOf(older), minorOf(newer)
	if utilversion.MustParse(below).AddMinor(1).String() != minor {
		t.Fatalf("hack/previous is at %s and the root at %s; move hack/previous to the minor version below first", below, minor)
	}
	return "v0" + older, "v0" + newer, below, minor
}

func loaded(t *testing.T, version string) api {
	t.Helper()
	types, err := load(version)
	if err != nil {
		t.Fatal(err)
	}
	return types
}

// TestCatalogKnowsLosses holds the catalog against upstream's types: a server of this
// version says of everything that it does not read of the version before.
func TestCatalogKnowsLosses(t *testing.T) {
	older, newer, _, minor := releases(t)
	before, after := loaded(t, older), loaded(t, newer)
	declared := removedAt(minor)
	found := map[string]bool{}
	for _, c := range compare(before, after) {
		if slices.Contains(neverStored, c.version+" "+c.kind) {
			continue
		}
		resource := resourceOf(c.version, c.kind)
		if c.path == "" {
			if !clearsUnreadable(minor, resource.GroupResource()) {
				t.Errorf("%s: declare ClearUnreadable for %s at the boundary %s of the feature that stores it", c, resource.GroupResource(), minor)
			}
			continue
		}
		i := slices.IndexFunc(declared, func(f declaredField) bool {
			// One version of a kind is stored; others have the field, too.
			return f.Resource.GroupResource() == resource.GroupResource() && last(f.Path) == last(c.path)
		})
		switch {
		case i < 0:
			t.Errorf("%s: declare it in pkg/featurelifecycle/catalog/removed.go, and clear it when its feature is turned off", c)
		case declared[i].Resource == resource:
			found[declared[i].Name()] = true
			if declared[i].Path != c.path || declared[i].Number != c.number {
				t.Errorf("%s: the catalog has %s with number %d", c, declared[i].Path, declared[i].Number)
			}
		}
	}
	for _, f := range declared {
		if !found[f.Name()] {
			t.Errorf("%s: %s still reads it; take it out of the catalog", f.Name(), minor)
		}
	}
}

// TestCatalogKnowsLossesOnDowngrade: what a gate stores that the version before has, too,
// and that version does not read, is cleared by tasks of the boundary.
func TestCatalogKnowsLossesOnDowngrade(t *testing.T) {
	older, _, below, minor := releases(t)
	before := loaded(t, older)
	gates, err := catalog.Gates()
	if err != nil {
		t.Fatal(err)
	}
	specs := gates.GetAllVersioned()
	asked, spared := 0, map[featuregate.Feature]bool{}
	collections := slices.DeleteFunc(clearedBelow(minor, catalog.All()...), func(f task.Field) bool { return f.Path != "" })
	for _, e := range catalog.All() {
		if !versionskew.SpecAt(specs[e.Name], utilversion.MustParse(below)).Known {
			continue
		}
		cleared := append(clearedBelow(minor, e), collections...)
		for _, d := range e.OnDisable {
			for _, f := range d.Fields {
				asked++
				if f.Path == "" || before.has(f.Resource, f.Path) {
					continue
				}
				if !slices.ContainsFunc(cleared, func(c task.Field) bool {
					return c.Resource == f.Resource && (c.Path == "" || f.Path == c.Path || strings.HasPrefix(f.Path, c.Path+".") || strings.HasPrefix(f.Path, c.Path+"["))
				}) {
					if lostInPeace[e.Name] != "" {
						spared[e.Name] = true
						continue
					}
					t.Errorf("%s: %s has the gate and not %s of %s, and loses it without an error; clear it, or wait, in OnDowngrade at the boundary %s", e.Name, below, f.Path, f.Resource, minor)
				}
			}
		}
	}
	for name := range lostInPeace {
		if !spared[name] {
			t.Errorf("%s loses nothing; take it out of the table", name)
		}
	}
	if asked < 100 {
		t.Errorf("%d fields were looked up", asked)
	}
}

// clearedBelow returns the fields and collections that the tasks of some entries handle on
// the way down over a boundary.
func clearedBelow(minor string, entries ...catalog.Entry) []task.Field {
	var cleared []task.Field
	for _, e := range entries {
		for _, v := range e.Versions {
			for _, d := range v.OnDowngrade {
				if v.At == minor {
					cleared = append(cleared, d.Fields...)
				}
			}
		}
	}
	return cleared
}

// removedAt returns the fields that entries clear because a minor version lost them.
func removedAt(minor string) []declaredField {
	var fields []declaredField
	for _, e := range catalog.All() {
		for _, d := range e.OnDisable {
			if d.Removed != nil && d.Removed.At == minor {
				fields = append(fields, declaredField{*d.Removed})
			}
		}
	}
	return fields
}

// clearsUnreadable returns true if an entry removes, at the boundary, objects of a resource
// that do not decode.
func clearsUnreadable(minor string, resource schema.GroupResource) bool {
	for _, e := range catalog.All() {
		for _, v := range e.Versions {
			for _, d := range v.OnUpgrade {
				if v.At == minor && d.BlocksStartup && slices.ContainsFunc(d.Fields, func(f task.Field) bool { return f.Resource == resource }) {
					return true
				}
			}
		}
	}
	return false
}

func last(path string) string { return path[strings.LastIndex(path, ".")+1:] }

// sources are two versions of an API with each kind of change.
func sources(t *testing.T, older, newer string) []string {
	t.Helper()
	var texts []string
	var versions []api
	for _, source := range []string{older, newer} {
		types := api{}
		for pkg, text := range map[string]string{"k8s.io/api/lamps/v1": source, "k8s.io/apimachinery/pkg/apis/meta/v1": metaTypes} {
			if err := types.parse(pkg, "types.go", []byte("package v1\n"+text)); err != nil {
				t.Fatal(err)
			}
		}
		versions = append(versions, types)
	}
	for _, c := range compare(versions[0], versions[1]) {
		texts = append(texts, c.String())
	}
	return texts
}

const metaTypes = "type TypeMeta struct {}\ntype ObjectMeta struct { Name string `json:\"name\" protobuf:\"bytes,1,opt,name=name\"` }\n"

// TestCompareFindsLosses: what a server of the newer version decodes differs, or is lost.
func TestCompareFindsLosses(t *testing.T) {
	kind := func(fields, more string) string {
		return "import metav1 \"k8s.io/apimachinery/pkg/apis/meta/v1\"\ntype Lamp struct {\n metav1.TypeMeta `json:\",inline\"`\n metav1.ObjectMeta `json:\"metadata\" protobuf:\"bytes,1,opt,name=metadata\"`\n" +
			" Spec LampSpec `json:\"spec\" protobuf:\"bytes,2,opt,name=spec\"`\n}\ntype LampSpec struct {\n" + fields + "\n}\n" + more
	}
	const bulb = "type Bulb struct { Watts int32 `json:\"watts\" protobuf:\"varint,1,opt,name=watts\"`\n Inner *Bulb `json:\"inner\" protobuf:\"bytes,2,opt,name=inner\"` }\n"
	old := kind("Bulbs []Bulb `json:\"bulbs\" protobuf:\"bytes,3,rep,name=bulbs\"`\n Color *string `json:\"color\" protobuf:\"bytes,4,opt,name=color\"`", bulb)
	for name, tc := range map[string]struct {
		newer string
		want  []string
	}{
		"nothing changes": {old, nil},
		"a field is added": {kind("Bulbs []Bulb `json:\"bulbs\" protobuf:\"bytes,3,rep,name=bulbs\"`\n Color *string `json:\"color\" protobuf:\"bytes,4,opt,name=color\"`\n"+
			"Shade string `json:\"shade\" protobuf:\"bytes,5,opt,name=shade\"`", bulb), nil},
		"a Go type is renamed": {strings.ReplaceAll(old, "Bulb ", "Globe "), nil},
		"a field is gone":      {kind("Bulbs []Bulb `json:\"bulbs\" protobuf:\"bytes,3,rep,name=bulbs\"`", bulb), []string{"lamps/v1 Lamp spec.color (4): gone"}},
		"a field is gone in a list": {strings.Replace(old, "Watts int32 `json:\"watts\" protobuf:\"varint,1,opt,name=watts\"`", "", 1),
			[]string{"lamps/v1 Lamp spec.bulbs[*].watts (1): gone"}},
		"a field has another key": {strings.Replace(old, `json:"color"`, `json:"hue"`, 1),
			[]string{"lamps/v1 Lamp spec.color (4): gone, and its number is that of hue"}},
		"a field has another number": {strings.Replace(old, "bytes,4,opt", "bytes,6,opt", 1), []string{"lamps/v1 Lamp spec.color (4): has number 6"}},
		"a field has another type":   {strings.Replace(old, "varint,1,opt", "bytes,1,opt", 1), []string{"lamps/v1 Lamp spec.bulbs[*].watts (1): has another type"}},
		"a list is a single value":   {strings.Replace(old, "[]Bulb", "*Bulb", 1), []string{"lamps/v1 Lamp spec.bulbs (3): has another type"}},
		"a kind is gone":             {"type Other struct {}", []string{"lamps/v1 Lamp: gone, in all versions"}},
	} {
		if diff := cmp.Diff(tc.want, sources(t, old, tc.newer)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// TestArguments: two versions that exist.
func TestArguments(t *testing.T) {
	for _, args := range [][]string{nil, {"v0.36.3"}, {"v0.36.3", "v0.37.2", "v0.38.0"}} {
		if err := run(args); err == nil || !strings.Contains(err.Error(), "usage: renamed") {
			t.Errorf("%v: %v", args, err)
		}
	}
}

// declaredField is a field of the catalog.
type declaredField struct{ task.RemovedField }

// Name identifies the field in messages.
func (f declaredField) Name() string { return fmt.Sprintf("%s %s", f.Resource, f.Path) }
