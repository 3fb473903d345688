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

package lifecycle

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/component-base/featuregate"
	"k8s.io/feature-lifecycle/lifecycletest"
	"k8s.io/kubernetes-features/pkg/catalog"
)

type gate = featuregate.Feature

// copies counts stored objects in which a feature's fields live on where the
// API takes them for text.
type copies struct {
	// revisions are ControllerRevisions, applied annotations of kubectl apply,
	// managed entries of managed fields.
	revisions, applied, managed int
}

func (c copies) String() string {
	var parts []string
	for _, part := range []struct {
		count int
		what  string
	}{{c.revisions, "revisions"}, {c.applied, "last-applied"}, {c.managed, "managed fields"}} {
		if part.count > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", part.count, part.what))
		}
	}
	return strings.Join(parts, ", ")
}

// copiesOf counts the copies of a feature's fields. Templates of ReplicaSets are
// not among them: tasks look after those.
func copiesOf(entry catalog.Entry, view *lifecycletest.View) copies {
	var found copies
	keys := map[schema.GroupResource][]string{}
	for _, field := range entry.Stores() {
		if key := lastKey(field.Path); key != "" {
			keys[field.Resource] = append(keys[field.Resource], key)
		}
	}
	all := map[string]bool{}
	for _, of := range keys {
		for _, key := range of {
			all[key] = true
		}
	}
	for _, object := range view.Objects {
		if object.Resource.Resource == "controllerrevisions" && mentions(object.Object["data"], all, `"%s":`) {
			found.revisions++
		}
		of := map[string]bool{}
		for _, key := range keys[object.Resource] {
			of[key] = true
		}
		if mentions(object.GetAnnotations()["kubectl.kubernetes.io/last-applied-configuration"], of, `"%s":`) {
			found.applied++
		}
		managed, _, _ := unstructured.NestedFieldNoCopy(object.Object, "metadata", "managedFields")
		if mentions(managed, of, `"f:%s":`) {
			found.managed++
		}
	}
	return found
}

// lastKey is the key of a path by which a text can be recognized that has it.
func lastKey(path string) string {
	key := path[strings.LastIndexByte(strings.SplitN(path, "{", 2)[0], '.')+1:]
	return strings.SplitN(strings.SplitN(key, "[", 2)[0], "{", 2)[0]
}

// mentions is true for a text, or something whose JSON, has one of the keys.
func mentions(value any, keys map[string]bool, format string) bool {
	if value == nil || len(keys) == 0 {
		return false
	}
	text, ok := value.(string)
	if !ok {
		data, err := json.Marshal(value)
		if err != nil {
			return false
		}
		text = string(data)
	}
	for key := range keys {
		if strings.Contains(text, fmt.Sprintf(format, key)) {
			return true
		}
	}
	return false
}

func TestLastKey(t *testing.T) {
	for path, want := range map[string]string{
		"spec.updateStrategy.rollingUpdate.maxUnavailable": "maxUnavailable",
		"status.conditions[type=Unused]":                   "conditions",
		"metadata.labels{topology.kubernetes.io/zone}":     "labels",
		"spec.containers[*].restartPolicyRules":            "restartPolicyRules",
		"":                                                 "",
	} {
		if got := lastKey(path); got != want {
			t.Errorf("%q: %q, want %q", path, got, want)
		}
	}
}
