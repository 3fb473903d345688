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
	"maps"
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

// unfindable are changes of fields that the bytes of an object do not tell, each with what
// warns users of it before the upgrade.
var unfindable = map[string]string{}

// lostInPeace are fields that the version before loses on the way down, and why that does
// no harm.
var lostInPeace = map[featuregate.Feature]string{
	"CSIVolumeHealth":             "kubelet publishes the health of volumes in status; nothing of 1.36 reads it, and 1.37 publishes it again",
	"DRAPartitionableDevicesType": "an answer about a pool loses a part that nothing of 1.36 reads; a request is answered once and deleted after an hour",
	"H2CContainerProbe":           "Pods lose HTTP1, which is how kubelet of 1.36 probes all of them; HTTP2 is waited for",
	"KubeletInUserNamespace":      "kubelet publishes it in the status of its Node; nothing of 1.36 reads it, and 1.37 publishes it again",
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
	types, err := load(t.Context(), version)
	if err != nil {
		t.Fatal(err)
	}
	return types
}

// TestCatalogKnowsLosses holds the catalog against upstream's types: a server of this
// version names everything that it does not read of the version before.
func TestCatalogKnowsLosses(t *testing.T) {
	older, newer, _, minor := releases(t)
	before, after := loaded(t, older), loaded(t, newer)
	declared := removedAt(minor)
	found, warned := map[string]bool{}, maps.Clone(unfindable)
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
		if name := c.name(); unfindable[name] != "" {
			delete(warned, name)
			continue
		}
		is, problem := declaration(c, declared)
		if problem != "" {
			t.Errorf("%s: %s", c, problem)
		}
		if is != nil {
			found[is.Name()] = true
		}
	}
	for name := range warned {
		t.Errorf("%s: nothing changed; take it out of unfindable", name)
	}
	for _, f := range declared {
		if !found[f.Name()] {
			t.Errorf("%s: %s still reads it; take it out of the catalog", f.Name(), minor)
		}
	}
}

// TestCatalogKnowsLossesOnDowngrade: what a gate stores that the version before has, too,
// and that version does not read, is cleared by tasks of the boundary. What remains of any
// gate, and is lost, does no harm.
func TestCatalogKnowsLossesOnDowngrade(t *testing.T) {
	older, _, below, minor := releases(t)
	before := loaded(t, older)
	gates, err := catalog.Gates()
	if err != nil {
		t.Fatal(err)
	}
	specs := gates.GetAllVersioned()
	compared, spared := 0, map[featuregate.Feature]bool{}
	collections := slices.DeleteFunc(clearedBelow(minor, catalog.All()...), func(f task.Field) bool { return f.Path != "" })
	known := func(e catalog.Entry) bool {
		return versionskew.SpecAt(specs[e.Name], utilversion.MustParse(below)).Known
	}
	for _, e := range catalog.All() {
		// A gate that the version before does not have goes off on the way down.
		if !known(e) {
			collections = append(collections, collectionsOf(e)...)
		}
	}
	for _, e := range catalog.All() {
		cleared := append(clearedBelow(minor, e), collections...)
		for _, f := range storedAtBoundary(e, known(e)) {
			compared++
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
				t.Errorf("%s: %s does not have %s of %s, and loses it without an error; clear it, or wait, in OnDowngrade at the boundary %s, or say in lostInPeace why that does no harm", e.Name, below, f.Path, f.Resource, minor)
			}
		}
	}
	for name := range lostInPeace {
		if !spared[name] {
			t.Errorf("%s loses nothing; take it out of the table", name)
		}
	}
	if compared < 100 {
		t.Errorf("only %d fields were compared", compared)
	}
}

// ownedBy matches the description of a task for objects with an owner, and its fields.
var (
	ownedBy  = regexp.MustCompile(`uses an? (\w+) as (?:its|their) owner$`)
	ownerAPI = regexp.MustCompile(`^metadata\.ownerReferences\[apiVersion=([^]]+)]$`)
)

// TestOwnersThatTheOtherVersionLacks: a garbage collector looks an owner up in the version
// that the reference has, and retries forever where it does not know that. So tasks of the
// boundary wait for objects with such owners.
func TestOwnersThatTheOtherVersionLacks(t *testing.T) {
	older, newer, below, minor := releases(t)
	before, after := loaded(t, older), loaded(t, newer)
	asked := 0
	for _, e := range catalog.All() {
		var above []task.Field
		for _, v := range e.Versions {
			for _, up := range v.OnUpgrade {
				if v.At == minor {
					above = append(above, up.Fields...)
				}
			}
		}
		for _, d := range e.OnDisable {
			kind := ownedBy.FindStringSubmatch(d.Description)
			if kind == nil {
				continue
			}
			for _, f := range d.Fields {
				version := ownerAPI.FindStringSubmatch(f.Path)
				if version == nil {
					t.Errorf("%s: %s of %s names no version of the owner", e.Name, f.Path, f.Resource)
					continue
				}
				asked++
				was, is := before.hasKind(version[1], kind[1]), after.hasKind(version[1], kind[1])
				if is && !was && !slices.Contains(clearedBelow(minor, e), f) {
					t.Errorf("%s: %s does not have %s of %s; wait for %s with such an owner in OnDowngrade at the boundary %s", e.Name, below, kind[1], version[1], f.Resource, minor)
				}
				if was && !is && !slices.Contains(above, f) {
					t.Errorf("%s: %s does not have %s of %s; wait for %s with such an owner in OnUpgrade at the boundary %s", e.Name, minor, kind[1], version[1], f.Resource, minor)
				}
			}
		}
	}
	if asked == 0 {
		t.Error("no task is for objects with an owner; teach this test their words")
	}
}

// storedAtBoundary returns the fields that a gate may have stored when the version before
// starts: those of its tasks while that version has the gate, and those that remain.
func storedAtBoundary(e catalog.Entry, known bool) []task.Field {
	var stored []task.Field
	for _, d := range e.OnDisable {
		if known {
			stored = append(stored, d.Fields...)
		}
	}
	for _, r := range e.Retained {
		if !r.Unstored && r.With == "" {
			stored = append(stored, r.Field)
		}
	}
	return stored
}

// collectionsOf returns the collections that the tasks of an entry delete.
func collectionsOf(e catalog.Entry) []task.Field {
	var collections []task.Field
	for _, d := range e.OnDisable {
		collections = append(collections, slices.DeleteFunc(slices.Clone(d.Fields), func(f task.Field) bool { return f.Path != "" })...)
	}
	return collections
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

// declaration returns the field of the catalog that is about a change of a field, and what is
// wrong: with it, or that there is none. One version of a kind is stored; others have the
// field, too, and no declaration of their own.
func declaration(c change, declared []declaredField) (is *declaredField, problem string) {
	resource := resourceOf(c.version, c.kind)
	i := slices.IndexFunc(declared, func(f declaredField) bool {
		return f.Resource.GroupResource() == resource.GroupResource() && inVersion(f.Path, resource) == c.path
	})
	const instead = "no RemovedField can find it; have kubectl feature upgrade-check ask for the feature to be Off before the upgrade, and add the field to unfindable in main_test.go"
	switch {
	case c.kept:
		return nil, "objects of the newer version have the key, too: " + instead
	case c.taker != "":
		return nil, fmt.Sprintf("objects of the newer version have the number, too, as %s: %s", c.taker, instead)
	case i < 0:
		return nil, "declare it in pkg/featurelifecycle/catalog/removed.go, and clear it when its feature is turned off"
	case declared[i].Resource != resource:
		return nil, ""
	case declared[i].Number != c.number:
		return &declared[i], fmt.Sprintf("the catalog has it with number %d", declared[i].Number)
	}
	return &declared[i], ""
}

// inVersion returns the path in a version of a field that the catalog names by its path in the
// stored version: before v1beta2 a device had its fields in basic.
func inVersion(path string, resource schema.GroupVersionResource) string {
	if resource == (schema.GroupVersionResource{Group: "resource.k8s.io", Version: "v1beta1", Resource: "resourceslices"}) {
		return strings.Replace(path, "spec.devices[*].", "spec.devices[*].basic.", 1)
	}
	return path
}

// TestDeclaration: what can be declared is, with its number, and what cannot be found in
// stored bytes is refused.
func TestDeclaration(t *testing.T) {
	declared := []declaredField{{task.RemovedField{
		Resource: schema.GroupVersionResource{Group: "resource.k8s.io", Version: "v1", Resource: "resourceslices"}, Path: "spec.devices[*].lamp", Number: 13,
	}}}
	for name, test := range map[string]struct {
		change
		found bool
		want  string
	}{
		"declared":                      {change{version: "resource/v1", path: "spec.devices[*].lamp", number: 13}, true, ""},
		"with another number":           {change{version: "resource/v1", path: "spec.devices[*].lamp", number: 14}, true, "with number 13"},
		"in another version":            {change{version: "resource/v1beta1", path: "spec.devices[*].basic.lamp", number: 9}, false, ""},
		"not where the version has it":  {change{version: "resource/v1beta1", path: "spec.devices[*].lamp", number: 9}, false, "declare it"},
		"the same key at another place": {change{version: "resource/v1", path: "spec.pool.lamp", number: 13}, false, "declare it"},
		"another field has its number":  {change{version: "resource/v1", path: "spec.devices[*].lamp", number: 13, taker: "bulb"}, false, "the number, too, as bulb: no RemovedField"},
		"it has another number or type": {change{version: "resource/v1", path: "spec.devices[*].lamp", number: 13, kept: true}, false, "the key, too: no RemovedField"},
	} {
		test.kind = "ResourceSlice"
		is, problem := declaration(test.change, declared)
		if (is != nil) != test.found || (problem == "") != (test.want == "") || !strings.Contains(problem, test.want) {
			t.Errorf("%s: found is %t and the problem is %q, want %t and %q in it", name, is != nil, problem, test.found, test.want)
		}
	}
}

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
		if err := run(t.Context(), args); err == nil || !strings.Contains(err.Error(), "usage: renamed") {
			t.Errorf("%v: %v", args, err)
		}
	}
}

// declaredField is a field of the catalog.
type declaredField struct{ task.RemovedField }

// Name identifies the field in messages.
func (f declaredField) Name() string { return fmt.Sprintf("%s %s", f.Resource, f.Path) }
