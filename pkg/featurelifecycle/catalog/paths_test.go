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
	"reflect"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/feature-lifecycle/lifecycle/task"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	"k8s.io/kubernetes/pkg/apis/scheduling"
	schedulingvalidation "k8s.io/kubernetes/pkg/apis/scheduling/validation"
)

// TestPathsExist finds each field that an entry stores in its resource's Go type.
func TestPathsExist(t *testing.T) {
	resources := storedResources(t)
	for _, e := range All() {
		for _, field := range e.Stores() {
			r, ok := resources[field.Resource]
			switch {
			case !ok:
				t.Errorf("%s: Kubernetes stores no resource %s; write the plural and the group, as in statefulsets.apps", e.Name, field.Resource)
			case field.Path == "": // the whole of it
			case !hasPath(r.kind, parsePath(field.Path)):
				t.Errorf("%s: %s of version %s have no field %s; write the keys of the JSON form, [*] behind a list, {*} behind a map", e.Name, field.Resource, r.version, field.Path)
			}
		}
	}
}

func TestHasPath(t *testing.T) {
	for path, want := range map[string]bool{
		"spec.volumes[*].projected.sources[*].clusterTrustBundle": true,
		"spec.volumes[*].projected.sources[*].nonsense":           false,
		"spec.volumes.projected":                                  false, // a list without [*] finds nothing
		"spec.volumes{*}.projected":                               false,
		"spec[*].volumes":                                         false,
		"spec.containers[*].resources.limits{cpu}":                true,
		"spec.containers[*].resources.limits[*]":                  false,
		"spec.containers[*].securityContext.privileged":           true,
		"spec.ephemeralContainers[*].restartPolicyRules":          true, // inline
		"status.conditions[type=PodReadyToStartContainers]":       true,
		"status.conditions[kind=PodReadyToStartContainers]":       false,
		"spec[hostNetwork=true].hostUsers":                        true,
		"spec[hostNet=true].hostUsers":                            false,
		"metadata.labels{topology.kubernetes.io/zone}":            true,
		"metadata.labels.zone":                                    false,
		"labels{topology.kubernetes.io/zone}":                     false,
	} {
		if got := hasPath(reflect.TypeFor[corev1.Pod](), parsePath(path)); got != want {
			t.Errorf("Pod has %s: got %v, want %v", path, got, want)
		}
	}
}

// TestCovers checks when a stored path includes the field of a marker.
func TestCovers(t *testing.T) {
	pods := schema.GroupResource{Resource: "pods"}
	for stored, want := range map[string]bool{
		"":                             true, // the whole collection
		"metadata.name":                true,
		"spec.containers":              true, // all that is in it
		"spec.containers[*]":           true, // all that it has
		"spec.containers[*].lifecycle": true,
		"spec.containers[*].lifecycle.stopSignal":      true,
		"spec.containers[*].lifecycle.stopSignal.x":    false, // less than the field
		"spec.containers[name=c].lifecycle.stopSignal": false, // some elements only
		"spec.initContainers[*].lifecycle.stopSignal":  false,
		"spec.containers[*].life":                      false,
	} {
		if got := covers(task.Field{Resource: pods, Path: stored}, pods, "spec.containers[*].lifecycle.stopSignal"); got != want {
			t.Errorf("%q covers the field: got %v, want %v", stored, got, want)
		}
	}
	if covers(task.Field{Resource: schema.GroupResource{Resource: "nodes"}}, pods, "spec") {
		t.Error("a field of one resource covers that of another")
	}
	const signal = "spec.containers[*].lifecycle.stopSignal"
	for _, some := range []task.Field{{Resource: pods, Path: signal, Value: "SIGUSR1"}, {Resource: pods, Path: signal, Chosen: true}} {
		if covers(some, pods, signal) {
			t.Errorf("%+v covers the field, of which other values stay", some)
		}
	}
}

// isCollection returns true for all objects of a resource: without a path, or,
// for WaitForNone, with a field that every object has.
func isCollection(stored task.Field) bool {
	return stored.Path == "" || stored.Path == "metadata.name"
}

// isValue returns true for one value of a field, or some: others stay.
func isValue(stored task.Field) bool { return stored.Value != "" || stored.Chosen }

// covers returns true if a stored field of an entry includes a field, whose
// path has no other selectors than [*] and {*}.
func covers(stored task.Field, resource schema.GroupResource, path string) bool {
	if stored.Resource != resource || isValue(stored) {
		return false
	}
	if isCollection(stored) {
		return true
	}
	outer, inner := parsePath(stored.Path), parsePath(path)
	if len(outer) > len(inner) {
		return false
	}
	for i, s := range outer {
		// All elements of a list are the list.
		whole := i == len(outer)-1 && (s.selector == "" || s.selector == "[*]" && inner[i].selector == "")
		if s.key != inner[i].key || s.selector != inner[i].selector && !whole {
			return false
		}
	}
	return true
}

// eachField calls visit for every field below a Go type, with the struct that
// declares it and its path. A type within itself is entered as often as nested permits.
func eachField(kind reflect.Type, visit func(owner reflect.Type, field reflect.StructField, path string)) {
	eachFieldBelow(kind, "", nil, visit)
}

// nested has the types that contain themselves, with the levels of them that validation
// permits. A level is not entered where the type is nested without a limit: there no gate
// guards a field.
var nested = map[reflect.Type]int{
	reflect.TypeFor[schedulingv1beta1.CompositePodGroupTemplate](): compositeLevels,
	reflect.TypeFor[apiextensionsv1.JSONSchemaProps]():             1,
}

// TestNestedTypes checks that no other stored type contains itself, and that each of these
// does.
func TestNestedTypes(t *testing.T) {
	found := map[reflect.Type]bool{}
	var enter func(kind reflect.Type, within []reflect.Type)
	enter = func(kind reflect.Type, within []reflect.Type) {
		for kind.Kind() == reflect.Pointer || kind.Kind() == reflect.Slice || kind.Kind() == reflect.Map {
			kind = kind.Elem()
		}
		if kind.Kind() != reflect.Struct {
			return
		}
		if slices.Contains(within, kind) {
			found[kind] = true
			return
		}
		for i := range kind.NumField() {
			enter(kind.Field(i).Type, append(slices.Clone(within), kind))
		}
	}
	for _, r := range storedResources(t) {
		enter(r.kind, nil)
	}
	for kind := range found {
		if nested[kind] == 0 {
			t.Errorf("%s contains itself; add it to nested in paths_test.go with the levels that validation permits, and spell them in paths", kind)
		}
	}
	for kind := range nested {
		if !found[kind] {
			t.Errorf("no stored resource has %s within itself; remove it from nested in paths_test.go", kind)
		}
	}
}

// TestCompositeLevelsAreThoseOfValidation: upstream accepts as many levels of composite
// templates as paths spell, and not one more.
func TestCompositeLevelsAreThoseOfValidation(t *testing.T) {
	tooDeep := func(levels int) bool {
		var templates []scheduling.CompositePodGroupTemplate
		for level := range levels {
			templates = []scheduling.CompositePodGroupTemplate{{Name: fmt.Sprint("level-", level), CompositePodGroupTemplates: templates}}
		}
		problems := schedulingvalidation.ValidateWorkloadSpec(&scheduling.WorkloadSpec{CompositePodGroupTemplates: templates}, field.NewPath("spec"))
		return slices.ContainsFunc(problems, func(err *field.Error) bool { return strings.Contains(err.Detail, "depth") })
	}
	if tooDeep(compositeLevels) {
		t.Errorf("validation refuses %d levels of composite templates; lower compositeLevels in workloads.go", compositeLevels)
	}
	if !tooDeep(compositeLevels + 1) {
		t.Errorf("validation accepts more than %d levels of composite templates; raise compositeLevels in workloads.go", compositeLevels)
	}
}

func eachFieldBelow(kind reflect.Type, prefix string, within []reflect.Type, visit func(reflect.Type, reflect.StructField, string)) {
	selector := ""
	for ; kind.Kind() != reflect.Struct; kind = kind.Elem() {
		switch kind.Kind() {
		case reflect.Pointer:
		case reflect.Slice:
			selector += "[*]"
		case reflect.Map:
			selector += "{*}"
		default:
			return
		}
	}
	depth := 0
	for _, outer := range within {
		if outer == kind {
			depth++
		}
	}
	if depth >= max(1, nested[kind]) {
		return
	}
	within = append(slices.Clone(within), kind)
	for i := range kind.NumField() {
		field := kind.Field(i)
		switch key := jsonKey(field); {
		case key != "":
			path := key
			if prefix != "" {
				path = prefix + selector + "." + key
			}
			visit(kind, field, path)
			eachFieldBelow(field.Type, path, within, visit)
		case field.Anonymous:
			eachFieldBelow(field.Type, prefix+selector, within, visit)
		}
	}
}

// TestFieldsInVersions checks that tasks find fields in each served version.
func TestFieldsInVersions(t *testing.T) {
	resource := func(group, version, name string) schema.GroupVersionResource {
		return schema.GroupVersionResource{Group: group, Version: version, Resource: name}
	}
	for _, tc := range []struct {
		resource schema.GroupVersionResource
		path     string
		want     bool
	}{
		{resource("resource.k8s.io", "v1alpha3", "devicetaintrules"), "metadata.name", true},
		{resource("resource.k8s.io", "v1beta2", "resourceslices"), "spec.devices[*].taints", true},
		// Devices of v1beta1 have their fields in basic.
		{resource("resource.k8s.io", "v1beta1", "resourceslices"), "spec.devices[*].taints", false},
		{resource("autoscaling", "v1", "horizontalpodautoscalers"), "spec.behavior.scaleUp.tolerance", false},
		{resource("autoscaling", "v2", "horizontalpodautoscalers"), "spec.behavior.scaleUp.tolerance", true},
		{resource("autoscaling", "v3", "horizontalpodautoscalers"), "metadata.name", false},
	} {
		if got := HasField(legacyscheme.Scheme, tc.resource, tc.path); got != tc.want {
			t.Errorf("%s has %s: got %t, want %t", tc.resource, tc.path, got, tc.want)
		}
	}
}
