/*
Copyright 2026 The Kubernetes Authors.

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
	"reflect"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/component-base/featuregate"
	"k8s.io/feature-lifecycle/lifecycle"
	_ "k8s.io/kubernetes/pkg/features" // the gates
)

func TestDeclarationsAreValidAndSorted(t *testing.T) {
	features := Features()
	if err := lifecycle.Validate(features); err != nil {
		t.Error(err)
	}
	known := utilfeature.DefaultMutableFeatureGate.GetAll()
	var names []string
	for _, f := range features {
		names = append(names, string(f.Name))
		spec, ok := known[f.Name]
		if !ok {
			t.Errorf("%s is declared and no gate has that name", f.Name)
		}
		if spec.LockToDefault {
			t.Errorf("%s is declared and the gate is locked: it cannot be turned off", f.Name)
		}
	}
	if !slices.IsSorted(names) {
		t.Errorf("declarations are not sorted: %v", names)
	}
}

// TestEveryOpenGateHasAVerdict: alpha or beta, and not locked.
func TestEveryOpenGateHasAVerdict(t *testing.T) {
	entries := map[featuregate.Feature]bool{}
	for _, e := range All() {
		if entries[e.Name] {
			t.Errorf("%s has two verdicts; merge them", e.Name)
		}
		entries[e.Name] = true
		if err := e.validate(); err != nil {
			t.Error(err)
		}
	}
	known := utilfeature.DefaultMutableFeatureGate.GetAll()
	for name, spec := range known {
		open := !spec.LockToDefault && (spec.PreRelease == featuregate.Alpha || spec.PreRelease == featuregate.Beta)
		switch {
		case name == "AllAlpha" || name == "AllBeta":
		case open && !entries[name]:
			t.Errorf("gate %s is %s and open and has no verdict; add an Entry to the file of its SIG in pkg/catalog, and a fixture testdata/%s.yaml if it stores something", name, spec.PreRelease, name)
		}
	}
	for name := range entries {
		if _, ok := known[name]; !ok {
			t.Errorf("the verdict on %s names no gate of this version; remove it", name)
		}
	}
}

// types are the Go types of the resources that tasks name.
var types = map[string]reflect.Type{
	"pods":                   reflect.TypeFor[corev1.Pod](),
	"podtemplates":           reflect.TypeFor[corev1.PodTemplate](),
	"replicationcontrollers": reflect.TypeFor[corev1.ReplicationController](),
	"daemonsets.apps":        reflect.TypeFor[appsv1.DaemonSet](),
	"deployments.apps":       reflect.TypeFor[appsv1.Deployment](),
	"replicasets.apps":       reflect.TypeFor[appsv1.ReplicaSet](),
	"statefulsets.apps":      reflect.TypeFor[appsv1.StatefulSet](),
	"cronjobs.batch":         reflect.TypeFor[batchv1.CronJob](),
	"jobs.batch":             reflect.TypeFor[batchv1.Job](),
}

// TestPathsExist finds each field that tasks look at in the resource's Go type.
func TestPathsExist(t *testing.T) {
	for _, f := range Features() {
		for _, task := range slices.Concat(f.OnEnable, f.OnDisable) {
			for _, field := range task.Fields {
				kind := types[field.Resource.String()]
				if kind == nil {
					t.Errorf("%s: the test does not know the type of %s", f.Name, field.Resource)
				} else if !hasPath(kind, strings.Split(field.Path, ".")) {
					t.Errorf("%s: %s has no field %s", f.Name, kind, field.Path)
				}
			}
		}
	}
	if hasPath(types["statefulsets.apps"], []string{"spec", "updateStrategy", "nonsense"}) {
		t.Error("a path that does not exist was found")
	}
}

func hasPath(kind reflect.Type, path []string) bool {
	for kind.Kind() == reflect.Pointer || kind.Kind() == reflect.Slice {
		kind = kind.Elem()
	}
	if len(path) == 0 {
		return true
	}
	if kind.Kind() != reflect.Struct {
		return false
	}
	for field := range kind.NumField() {
		name, options, _ := strings.Cut(kind.Field(field).Tag.Get("json"), ",")
		if name == "" && strings.Contains(options, "inline") && hasPath(kind.Field(field).Type, path) {
			return true
		}
		if name == strings.TrimSuffix(path[0], "[*]") {
			return hasPath(kind.Field(field).Type, path[1:])
		}
	}
	return false
}
