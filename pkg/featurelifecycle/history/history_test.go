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

package history

import (
	"encoding/json"
	"go/build"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/kube-openapi/pkg/validation/spec"
	"k8s.io/kube-openapi/pkg/validation/strfmt"
	"k8s.io/kube-openapi/pkg/validation/validate"
	"k8s.io/kubernetes-features/pkg/featurelifecycle/catalog"
	"k8s.io/kubernetes-features/pkg/features"
)

// TestData: what Load does not validate is valid, and written as Marshal writes it.
func TestData(t *testing.T) {
	h, err := Parse(data)
	if err != nil {
		t.Fatal(err)
	}
	written, err := h.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(data), string(written)); diff != "" {
		t.Errorf("gates.json was edited by hand (-file +written):\n%s", diff)
	}
	if diff := cmp.Diff(h.Versions(), Load().Versions()); diff != "" {
		t.Errorf("-parsed +loaded:\n%s", diff)
	}
	versions := h.Versions()
	for i, v := range versions {
		if minor(v) != minor(versions[0])+i {
			t.Errorf("versions are %v, with a gap before %s", versions, v)
		}
	}
	if !slices.Contains(versions, "1.31") || h.Source("1.31") == "" || h.Source("1.0") != "" {
		t.Errorf("versions are %v; 1.31 has to be among them", versions)
	}
	if diff := cmp.Diff(components, h.Components()); diff != "" {
		t.Errorf("components without gates (-want +got):\n%s", diff)
	}
}

// TestSchema validates the data with the published schema.
func TestSchema(t *testing.T) {
	text, err := os.ReadFile(schema)
	if err != nil {
		t.Fatal(err)
	}
	var s spec.Schema
	if err := json.Unmarshal(text, &s); err != nil {
		t.Fatal(err)
	}
	valid := func(text string) error {
		var object any
		if err := json.Unmarshal([]byte(text), &object); err != nil {
			t.Fatal(err)
		}
		return validate.AgainstSchema(&s, object, strfmt.Default)
	}
	if err := valid(string(data)); err != nil {
		t.Fatal(err)
	}
	const good = `{"$schema":"gates.schema.json","source":{"1.37":"v1.37.2"},"gates":[{"name":"A","tracks":[{"components":["kubelet"],"changes":[{"version":"1.37","stage":"GA","default":true,"locked":true}]}]}]}`
	if err := valid(good); err != nil {
		t.Fatal(err)
	}
	for what, change := range map[string][2]string{
		"no stage":             {`"stage":"GA",`, ``},
		"unknown stage":        {`"GA"`, `"ga"`},
		"locked, written out":  {`"locked":true`, `"locked":false`},
		"removed with a stage": {`"stage"`, `"removed":true,"stage"`},
		"unknown component":    {`"kubelet"`, `"kubelets"`},
		"no component":         {`["kubelet"]`, `[]`},
		"unknown field":        {`"name"`, `"owner":"me","name"`},
		"patch version":        {`"version":"1.37"`, `"version":"1.37.2"`},
		"minor release":        {`"v1.37.2"`, `"1.37"`},
		"source of a patch":    {`"1.37":"v`, `"1.37.2":"v`},
		"no gates":             {`"gates":[`, `"gate":[`},
	} {
		text := strings.Replace(good, change[0], change[1], 1)
		if text == good {
			t.Fatalf("%s: nothing changes", what)
		}
		if valid(text) == nil {
			t.Errorf("%s is valid: %s", what, text)
		}
	}
}

// TestSchemaNamesComponentsAndStages: the schema's lists are those of the package.
func TestSchemaNamesComponentsAndStages(t *testing.T) {
	text, err := os.ReadFile(schema)
	if err != nil {
		t.Fatal(err)
	}
	for what, list := range map[string][]string{"components": components, "stages": stages} {
		if want := `"enum": ["` + strings.Join(list, `", "`) + `"]`; !strings.Contains(string(text), want) {
			t.Errorf("the schema lacks the %s: %s", what, want)
		}
	}
}

// TestGatesThatCameBack: a gate that is removed stays so, but for those listed here.
func TestGatesThatCameBack(t *testing.T) {
	back := sets.New[string]()
	for _, g := range Load().Gates() {
		for _, track := range g.Tracks {
			for _, c := range track.Changes[:len(track.Changes)-1] {
				if c.Removed {
					back.Insert(g.Name)
				}
			}
		}
	}
	if diff := cmp.Diff(returned, back); diff != "" {
		t.Errorf("(-listed +data):\n%s", diff)
	}
}

// TestStagesThatWentBack: gates go from alpha to beta to GA, and from any of these to deprecated, but for those
// listed here.
func TestStagesThatWentBack(t *testing.T) {
	back := map[string]string{}
	for _, g := range Load().Gates() {
		for _, track := range g.Tracks {
			var last *Spec
			for _, c := range track.Changes {
				if last != nil && c.Spec != nil && slices.Index(stages, c.Stage) < slices.Index(stages, last.Stage) {
					back[g.Name] = c.Version + " " + c.Stage
				}
				last = c.Spec
			}
		}
	}
	if diff := cmp.Diff(demoted, back); diff != "" {
		t.Errorf("(-listed +data):\n%s", diff)
	}
}

// TestCatalogGatesAreRecorded: this build's version knows each gate of the catalog.
func TestCatalogGatesAreRecorded(t *testing.T) {
	versions, err := catalog.EmulatedVersions()
	if err != nil {
		t.Fatal(err)
	}
	gates, err := catalog.Gates()
	if err != nil {
		t.Fatal(err)
	}
	known := gates.GetAll()
	for _, e := range catalog.All() {
		if e.Name == features.FeatureLifecycle {
			// Upstream does not have it.
			continue
		}
		if _, ok := known[e.Name]; !ok {
			t.Errorf("no binary of this build knows %s", e.Name)
			continue
		}
		g, ok := Load().Gate(string(e.Name))
		if !ok {
			t.Errorf("%s has no history", e.Name)
			continue
		}
		if _, ok := g.At(KubeAPIServer, versions[0].String()); !ok {
			t.Errorf("kube-apiserver %s does not know %s", versions[0], e.Name)
		}
	}
}

// TestParseRefusesWhatNoVersionHas changes a history that is valid.
func TestParseRefusesWhatNoVersionHas(t *testing.T) {
	const good = `{"$schema":"gates.schema.json","source":{"1.36":"v1.36.3","1.37":"v1.37.2"},"gates":[
{"name":"A","tracks":[{"components":["kube-proxy","kubelet"],"changes":[{"version":"1.36","stage":"Alpha","default":false},{"version":"1.37","removed":true}]}]},
{"name":"B","tracks":[{"components":["kubelet"],"changes":[{"version":"1.36","stage":"Beta","default":true,"dependsOn":["A"]},{"version":"1.37","stage":"GA","default":true}]}]}]}`
	if _, err := Parse([]byte(good)); err != nil {
		t.Fatal(err)
	}
	for says, change := range map[string][2]string{
		"unknown field":                     {`"name":"A"`, `"owner":"A"`},
		`source of version "1.37" is "v1.3`: {`"v1.37.2"`, `"v1.36.2"`},
		`source of version "2.37"`:          {`"1.37":"v1`, `"2.37":"v2`},
		"gate B comes after C":              {`"name":"A"`, `"name":"C"`},
		"gate A: no component has it":       {`[{"components":["kube-proxy","kubelet"],"changes":[{"version":"1.36","stage":"Alpha","default":false},{"version":"1.37","removed":true}]}]`, `[]`},
		"are none, or not sorted":           {`["kube-proxy","kubelet"]`, `["kubelet","kube-proxy"]`},
		`component "kube"`:                  {`["kube-proxy","kubelet"]`, `["kube","kubelet"]`},
		"a component is in two tracks":      {`["kube-proxy","kubelet"]`, `["kubelet","kubelet"]`},
		"removed before it is there":        {`{"version":"1.36","stage":"Alpha","default":false},`, ``},
		"no source has this version":        {`"version":"1.37","removed"`, `"version":"1.38","removed"`},
		"either removed, or has a stage":    {`"removed":true`, `"removed":true,"stage":"GA"`},
		`stage "ALPHA"`:                     {`"Alpha"`, `"ALPHA"`},
		"it comes after 1.36":               {`"version":"1.37","removed"`, `"version":"1.36","removed"`},
		"nothing changes":                   {`"removed":true`, `"stage":"Alpha","default":false`},
		"does not know C, on which":         {`["A"]`, `["C"]`},
		"are not sorted":                    {`["A"]`, `["B","A"]`},
		"0 versions and 0 gates":            {good, `{}`},
	} {
		text := strings.Replace(good, change[0], change[1], 1)
		if text == good {
			t.Fatalf("%s: nothing changes", says)
		}
		if _, err := Parse([]byte(text)); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%v does not say %q", err, says)
		}
	}
}

// BenchmarkLoad parses the data, as a command does that needs it.
func BenchmarkLoad(b *testing.B) {
	for b.Loop() {
		if _, err := read(data); err != nil {
			b.Fatal(err)
		}
	}
}

// TestImportsNothingOfKubernetes: the plugin stays small, and others can import the package.
func TestImportsNothingOfKubernetes(t *testing.T) {
	p, err := build.ImportDir(".", 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range p.Imports {
		if strings.Contains(path, ".") {
			t.Errorf("it imports %s", path)
		}
	}
}
