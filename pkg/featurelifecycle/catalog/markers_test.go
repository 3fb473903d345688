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
	"fmt"
	"go/ast"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/component-base/featuregate"
	"k8s.io/feature-lifecycle/lifecycle/task"
	"k8s.io/kubernetes/pkg/features"
)

// Exceptions, each with the reason why the rule does not hold; a stale one
// fails the test.
var (
	// markerNames are markers that do not spell their gate's name.
	markerNames = map[featuregate.Feature]featuregate.Feature{
		// VolumeProjection.podCertificate: the drop code in pkg/api/pod/util.go
		// queries this gate; no gate has the marker's name.
		"PodCertificateProjection": features.PodCertificateRequest,
	}
	// finishedMarkers name gates that were removed after their feature was GA.
	finishedMarkers = map[featuregate.Feature]string{
		"CSIStorageCapacity": "GA in 1.24",
		"TopologyAwareHints": "GA in 1.33",
	}
	// notStoredMarkers lists fields with markers of open gates that are not in
	// etcd: their types are only parameters of requests.
	notStoredMarkers = map[string]string{
		"k8s.io/api/core/v1.PodLogOptions.Stream": "a parameter of pods/log",
	}
	// valueMarkers are of fields that are older than the gate. The gate permits one value,
	// and a task waits for that value alone.
	valueMarkers = map[string]string{
		"k8s.io/api/autoscaling/v2.HorizontalPodAutoscalerSpec.MinReplicas": "the gate permits 0",
	}
)

// marker matches what upstream writes above a field that a gate guards: the tag
// for readers, and the tags from which declarative validation is generated.
var marker = regexp.MustCompile(`\+featureGate=([\w,]+)|\+k8s:if(?:En|Dis)abled\("?(\w+)"?\)`)

// markedField is a field with a marker.
type markedField struct {
	// name is <import path>.<type>.<field>.
	name, jsonKey, at string
	// gates lists, as the marker spells them, the gates that are all on when
	// the field may be used.
	gates []featuregate.Feature
}

// apiTypes chooses the files that have types, and not what is generated of them.
func apiTypes(name string) bool {
	return strings.HasSuffix(name, ".go") && !strings.HasSuffix(name, "_test.go") && !strings.HasSuffix(name, ".pb.go") && !strings.HasPrefix(name, "zz_generated") && name != "types_swagger_doc_generated.go"
}

// markedFields returns the fields of upstream's API types with a marker, once
// for each distinct marker.
func markedFields(t *testing.T) []markedField {
	t.Helper()
	var found []markedField
	files := append(parse(t, api, ".", apiTypes), parse(t, apiextensions, "pkg/apis/apiextensions/v1", apiTypes)...)
	for _, file := range files {
		above := 0
		eachDeclaredField(file.File, func(kind, field, jsonKey string, node *ast.Field) {
			seen := map[string]bool{}
			for _, match := range marker.FindAllStringSubmatch(commentText(node.Doc)+commentText(node.Comment), -1) {
				above++
				gates := match[1] + match[2]
				if seen[gates] {
					continue
				}
				seen[gates] = true
				m := markedField{name: file.importPath() + "." + kind + "." + field, jsonKey: jsonKey, at: file.at(node)}
				for _, gate := range strings.Split(gates, ",") {
					m.gates = append(m.gates, featuregate.Feature(gate))
				}
				found = append(found, m)
			}
		})
		all := 0
		for _, comment := range file.Comments {
			all += len(marker.FindAllString(commentText(comment), -1))
		}
		if values := len(markedValues(file)); all != above+values {
			t.Errorf("%s has %d markers, and %d of them are above fields and %d above constants; teach this test where the others are", file.name, all, above, values)
		}
	}
	return found
}

// markedValue is a constant with a marker.
type markedValue struct {
	// typ is <import path>.<type>, which fields have that may have the value.
	typ, value, at string
	// gates lists the gates that are all on when a field may have the value.
	gates []featuregate.Feature
}

// markedValues returns the constants of a file of types that have a marker.
func markedValues(file sourceFile) []markedValue {
	var found []markedValue
	ast.Inspect(file.File, func(node ast.Node) bool {
		spec, ok := node.(*ast.ValueSpec)
		if !ok || len(spec.Values) != 1 {
			return true
		}
		text, ok := spec.Values[0].(*ast.BasicLit)
		if !ok {
			return true
		}
		typ := ""
		if named, ok := spec.Type.(*ast.Ident); ok {
			typ = file.importPath() + "." + named.Name
		}
		for _, match := range marker.FindAllStringSubmatch(commentText(spec.Doc)+commentText(spec.Comment), -1) {
			value, _ := strconv.Unquote(text.Value)
			m := markedValue{typ: typ, value: value, at: file.at(spec)}
			for _, gate := range strings.Split(match[1]+match[2], ",") {
				m.gates = append(m.gates, featuregate.Feature(gate))
			}
			found = append(found, m)
		}
		return true
	})
	return found
}

// TestMarkedValuesAreCovered checks that a gate's verdict handles the values that the gate
// guards, in every field of their type. One version of a resource stands for all, since they
// are stored as one.
func TestMarkedValuesAreCovered(t *testing.T) {
	open, entries, known, places := openGates(t), verdicts(), knownGates(t).GetAll(), typedFields(t)
	checked := 0
	for _, file := range parse(t, api, ".", apiTypes) {
		for _, m := range markedValues(file) {
			for _, gate := range m.gates {
				if _, ok := known[gate]; !ok {
					t.Errorf("%s: the marker of the value %s names no gate (%s)", m.at, m.value, gate)
				}
				if _, unfinished := open[gate]; !unfinished {
					continue
				}
				for resource, paths := range places[m.typ] {
					for _, path := range paths {
						checked++
						if !m.coveredBy(entries[gate], resource, path) {
							t.Errorf("%s: gate %s guards the value %s of %s %s, and its Entry in pkg/featurelifecycle/catalog has no %s=%s; add a task for it, and an object with it to testdata/%s.yaml", m.at, gate, m.value, resource, path, path, m.value, gate)
						}
					}
				}
			}
		}
	}
	if checked == 0 {
		t.Error("no stored field has a value with a marker; teach this test how upstream marks them now")
	}
}

// coveredBy returns true if an entry stores the value of a field of a resource, or the whole
// of that.
func (m markedValue) coveredBy(e Entry, resource schema.GroupResource, path string) bool {
	return slices.ContainsFunc(e.Stores(), func(stored task.Field) bool {
		return covers(stored, resource, path) || stored == task.Field{Resource: resource, Path: path, Value: m.value}
	})
}

// TestMarkedValueIsCoveredWhereItIs: the same value of another field does not count.
func TestMarkedValueIsCoveredWhereItIs(t *testing.T) {
	sets, others := schema.GroupResource{Group: "apps", Resource: "statefulsets"}, schema.GroupResource{Group: "apps", Resource: "daemonsets"}
	const path = "spec.updateStrategy.type"
	m := markedValue{value: "Recreate"}
	for name, test := range map[string]struct {
		stored task.Field
		want   bool
	}{
		"the value":        {task.Field{Resource: sets, Path: path, Value: m.value}, true},
		"the whole field":  {task.Field{Resource: sets, Path: path}, true},
		"another value":    {task.Field{Resource: sets, Path: path, Value: "OnDelete"}, false},
		"another field":    {task.Field{Resource: sets, Path: "spec.strategy.type", Value: m.value}, false},
		"another resource": {task.Field{Resource: others, Path: path, Value: m.value}, false},
	} {
		if got := m.coveredBy(Entry{Retained: []Remainder{{Field: test.stored}}}, sets, path); got != test.want {
			t.Errorf("%s: covered is %t, want %t", name, got, test.want)
		}
	}
}

// typedFields returns the places of every field that upstream stores, by <import path>.<type>
// of the field.
func typedFields(t *testing.T) map[string]fieldsOf {
	t.Helper()
	places := map[string]fieldsOf{}
	for _, r := range storedResources(t) {
		eachField(r.kind, func(_ reflect.Type, field reflect.StructField, path string) {
			kind := dereference(field.Type)
			name := kind.PkgPath() + "." + kind.Name()
			if places[name] == nil {
				places[name] = fieldsOf{}
			}
			places[name][r.GroupResource] = append(places[name][r.GroupResource], path)
		})
	}
	return places
}

// commentText is the comment as it is written; CommentGroup.Text leaves out lines
// that look like directives.
func commentText(group *ast.CommentGroup) string {
	var text strings.Builder
	if group != nil {
		for _, line := range group.List {
			text.WriteString(line.Text + "\n")
		}
	}
	return text.String()
}

// eachDeclaredField calls visit for the fields of the structs that a file
// declares. The name of an embedded field is that of its type.
func eachDeclaredField(file *ast.File, visit func(kind, field, jsonKey string, node *ast.Field)) {
	ast.Inspect(file, func(node ast.Node) bool {
		spec, ok := node.(*ast.TypeSpec)
		if !ok {
			return true
		}
		if fields, ok := spec.Type.(*ast.StructType); ok {
			for _, field := range fields.Fields.List {
				key := ""
				if field.Tag != nil {
					key, _, _ = strings.Cut(reflect.StructTag(strings.Trim(field.Tag.Value, "`")).Get("json"), ",")
				}
				for _, name := range field.Names {
					visit(spec.Name.Name, name.Name, key, field)
				}
			}
		}
		return false
	})
}

// fieldsOf has the places of a Go type's fields in a resource.
type fieldsOf map[schema.GroupResource][]string

// storedFields returns the places of every field of the types that upstream
// stores, by the name that markedField has.
func storedFields(t *testing.T) map[string]fieldsOf {
	t.Helper()
	places := map[string]fieldsOf{}
	for _, r := range storedResources(t) {
		eachField(r.kind, func(owner reflect.Type, field reflect.StructField, path string) {
			name := owner.PkgPath() + "." + owner.Name() + "." + field.Name
			if places[name] == nil {
				places[name] = fieldsOf{}
			}
			places[name][r.GroupResource] = append(places[name][r.GroupResource], path)
		})
	}
	return places
}

// TestMarkersNameGates checks that all markers can be parsed.
func TestMarkersNameGates(t *testing.T) {
	known, said := knownGates(t).GetAll(), map[featuregate.Feature]bool{}
	for _, m := range markedFields(t) {
		for _, gate := range m.gates {
			said[gate] = true
			_, ok := known[gate]
			if !ok && markerNames[gate] == "" && finishedMarkers[gate] == "" {
				t.Errorf("%s: the marker of %s names no gate (%s); if the gate has another name, add it to markerNames in markers_test.go, if it is gone, to finishedMarkers", m.at, m.name, gate)
			}
		}
	}
	for _, gate := range slices.Concat(slices.Collect(maps.Keys(markerNames)), slices.Collect(maps.Keys(finishedMarkers))) {
		if _, ok := known[gate]; ok || !said[gate] {
			t.Errorf("no marker needs the exception %s any more; remove it from markers_test.go", gate)
		}
	}
}

// TestMarkersAreCovered checks that a gate's verdict handles the fields that
// the gate guards, in every resource that has them. One version of a resource
// stands for all, since they are stored as one.
func TestMarkersAreCovered(t *testing.T) {
	open, dependencies, entries := openGates(t), knownGates(t).Dependencies(), verdicts()
	places, fields := storedFields(t), markedFields(t)
	stored := map[string]bool{}
	for _, m := range fields {
		stored[m.inAnyVersion()] = stored[m.inAnyVersion()] || places[m.name] != nil
	}
	missing, where := map[featuregate.Feature]fieldsOf{}, map[featuregate.Feature][]string{}
	parameters, older := maps.Clone(notStoredMarkers), maps.Clone(valueMarkers)
	for _, m := range fields {
		guards := m.openGates(open)
		if len(guards) == 0 {
			continue
		}
		if !stored[m.inAnyVersion()] {
			if notStoredMarkers[m.name] == "" {
				t.Errorf("%s: %s is guarded by %v and in no stored resource; if it is only a parameter of requests, add it to notStoredMarkers in markers_test.go", m.at, m.name, guards)
			}
			delete(parameters, m.name)
		}
		for _, gate := range deciding(guards, dependencies) {
			left := uncovered(entries[gate], places[m.name], covers)
			if valueMarkers[m.name] != "" && len(left) > 0 {
				delete(older, m.name)
				left = uncovered(entries[gate], places[m.name], coversValue)
			}
			for resource, paths := range left {
				if missing[gate] == nil {
					missing[gate] = fieldsOf{}
				}
				missing[gate][resource] = append(missing[gate][resource], paths...)
				where[gate] = append(where[gate], m.at)
			}
		}
	}
	for _, gate := range slices.Sorted(maps.Keys(missing)) {
		slices.Sort(where[gate])
		t.Errorf("the verdict on gate %s does not cover what markers say it guards (%s).\n%s", gate, strings.Join(slices.Compact(where[gate]), ", "), advice(gate, missing[gate]))
	}
	for name := range parameters {
		t.Errorf("%s needs no exception any more; remove it from notStoredMarkers in markers_test.go", name)
	}
	for name := range older {
		t.Errorf("%s needs no exception any more; remove it from valueMarkers in markers_test.go", name)
	}
}

// openGates returns the marker's gates that can be turned off.
func (m markedField) openGates(open gateSpecs) []featuregate.Feature {
	var gates []featuregate.Feature
	for _, gate := range m.gates {
		if other, ok := markerNames[gate]; ok {
			gate = other
		}
		if _, ok := open[gate]; ok {
			gates = append(gates, gate)
		}
	}
	return gates
}

// inAnyVersion returns the same for a field in all versions of a group.
func (m markedField) inAnyVersion() string {
	group := strings.Split(strings.TrimPrefix(m.name, api+"/"), "/")[0]
	return fmt.Sprint(m.gates, group, m.jsonKey)
}

// deciding returns the gates whose verdicts have to cover a field that needs all
// of them. That is the gate that depends on the others, since it is off when one
// of them is, or else each.
func deciding(gates []featuregate.Feature, dependencies map[featuregate.Feature][]featuregate.Feature) []featuregate.Feature {
	for _, gate := range gates {
		others := 0
		for _, other := range gates {
			if other == gate || slices.Contains(dependencies[gate], other) {
				others++
			}
		}
		if others == len(gates) {
			return []featuregate.Feature{gate}
		}
	}
	return gates
}

// uncovered returns the places that no stored field of the entry includes, as includes
// decides.
func uncovered(e Entry, places fieldsOf, includes func(task.Field, schema.GroupResource, string) bool) fieldsOf {
	missing := fieldsOf{}
	for resource, paths := range places {
		for _, path := range paths {
			if !slices.ContainsFunc(e.Stores(), func(stored task.Field) bool { return includes(stored, resource, path) }) {
				missing[resource] = append(missing[resource], path)
			}
		}
	}
	return missing
}

// coversValue returns true if a stored field of an entry is a value of a field.
func coversValue(stored task.Field, resource schema.GroupResource, path string) bool {
	return isValue(stored) && stored.Resource == resource && stored.Path == path
}

// advice returns the lines that a feature's author has to write for the
// places.
func advice(gate featuregate.Feature, missing fieldsOf) string {
	pods := schema.GroupResource{Resource: "pods"}
	var text strings.Builder
	fmt.Fprintf(&text, "\tAdd to the OnDisable of its Entry in pkg/featurelifecycle/catalog, and to the fixture testdata/%s.yaml:\n", gate)
	var inTemplates []string
	for _, path := range missing[pods] {
		if slices.Contains(missing[schema.GroupResource{Group: "apps", Resource: "deployments"}], "spec.template."+path) {
			inTemplates = append(inTemplates, path)
		}
	}
	if len(inTemplates) > 0 {
		fmt.Fprintf(&text, "\t  lifecycle.WaitForNoneInPods(\"<what is used>\", %s)...\n", quoted(inTemplates))
	}
	for _, resource := range slices.SortedFunc(maps.Keys(missing), func(a, b schema.GroupResource) int { return strings.Compare(a.String(), b.String()) }) {
		var others []string
		for _, path := range missing[resource] {
			if !slices.ContainsFunc(inTemplates, func(in string) bool { return path == in || strings.HasSuffix(path, "template."+in) }) {
				others = append(others, path)
			}
		}
		if len(others) > 0 {
			fmt.Fprintf(&text, "\t  lifecycle.ClearField(<%s>, …), or lifecycle.WaitForNone(<%s>, \"<what is used>\", …) if live objects may not lose it: %s\n", resource, resource, quoted(others))
		}
	}
	return text.String()
}

func quoted(paths []string) string {
	return `"` + strings.Join(paths, `", "`) + `"`
}
