//go:build linux

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

package clients

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/kubernetes-features/test/utils/examplegates"
)

// The gates of this test, by what becomes of their fields.
const (
	// surge adds a number, which is cleared while the server runs.
	surge = "MaxUnavailableStatefulSet"
	// signals adds a value to pod templates, which users have to remove.
	signals = examplegates.Dynamic
	// rules adds a list to pod templates, which users have to remove. It is turned off by
	// a restart.
	rules = "ContainerRestartRules"
	// taints adds a list, which is cleared after a restart.
	taints = "DRADeviceTaints"
)

// The kinds of objects that each client manages.
var (
	statefulSets = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "statefulsets"}
	deployments  = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}
	deviceSlices = schema.GroupVersionResource{Group: "resource.k8s.io", Version: "v1", Resource: "resourceslices"}
)

// The fields of the gates.
const (
	surgeField, signalField, ruleField, taintField = "maxUnavailable", "stopSignal", "restartPolicyRules", "taints"
)

// edition is one of the manifests that a client has, one after another.
type edition string

const (
	with    edition = "with the fields"
	without edition = "without the fields"
	// edited has other restart rules than with.
	edited edition = "with another list"
)

// rule is the exit code in the restart rules of an edition.
var rule = map[edition]int64{with: 42, edited: 43}

// managed returns the objects that a client manages in its namespace, with the fields of all
// gates or without. Nothing starts a Pod. The time of the taint is set, since the server
// would set another one at each write.
func managed(namespace string, e edition) []*unstructured.Unstructured {
	labels := map[string]any{"app": "web"}
	metadata := func() map[string]any { return map[string]any{"name": "web", "namespace": namespace, "labels": labels} }
	container := func() map[string]any { return map[string]any{"name": "c", "image": "example.invalid/c"} }
	template := func(c map[string]any) map[string]any {
		return map[string]any{"metadata": map[string]any{"labels": labels}, "spec": map[string]any{"os": map[string]any{"name": "linux"}, "containers": []any{c}}}
	}
	rolling := map[string]any{"partition": int64(1)}
	gated := container()
	device := map[string]any{"name": "a"}
	if e != without {
		rolling[surgeField] = int64(2)
		gated["lifecycle"] = map[string]any{signalField: "SIGUSR1"}
		gated["restartPolicy"] = "OnFailure"
		gated[ruleField] = []any{map[string]any{"action": "Restart", "exitCodes": map[string]any{"operator": "In", "values": []any{rule[e]}}}}
		device[taintField] = []any{map[string]any{"key": "example.com/broken", "value": "yes", "effect": "NoSchedule", "timeAdded": "2026-01-01T00:00:00Z"}}
	}
	selector := map[string]any{"matchLabels": labels}
	return []*unstructured.Unstructured{
		{Object: map[string]any{"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": metadata(), "spec": map[string]any{
			"replicas": int64(0), "serviceName": "web", "selector": selector, "template": template(container()),
			"updateStrategy": map[string]any{"type": "RollingUpdate", "rollingUpdate": rolling},
		}}},
		{Object: map[string]any{"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata(), "spec": map[string]any{
			"replicas": int64(0), "selector": selector, "template": template(gated),
		}}},
		{Object: map[string]any{"apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlice", "metadata": map[string]any{"name": namespace, "labels": labels}, "spec": map[string]any{
			"driver": "example.com", "allNodes": true, "devices": []any{device},
			"pool": map[string]any{"name": namespace, "generation": int64(1), "resourceSliceCount": int64(1)},
		}}},
	}
}

// manifest is what a client is given of objects: JSON, which is YAML, too.
func manifest(t *testing.T, objects []*unstructured.Unstructured) []byte {
	t.Helper()
	var documents []string
	for _, object := range objects {
		data, err := json.Marshal(object.Object)
		if err != nil {
			t.Fatal(err)
		}
		documents = append(documents, string(data))
	}
	return []byte(strings.Join(documents, "\n---\n") + "\n")
}

// exitCode is that of an object's first restart rule, or 0.
func exitCode(object *unstructured.Unstructured) int64 {
	containers, _, _ := unstructured.NestedSlice(object.Object, "spec", "template", "spec", "containers")
	for _, c := range containers {
		rules, _, _ := unstructured.NestedSlice(c.(map[string]any), ruleField)
		for _, r := range rules {
			values, _, _ := unstructured.NestedSlice(r.(map[string]any), "exitCodes", "values")
			for _, value := range values {
				return value.(int64)
			}
		}
	}
	return 0
}

// gated shows the fields of the gates that an object has, in the order of the constants.
func gated(object *unstructured.Unstructured) string {
	var all []string
	add := func(content map[string]any, field string) {
		if value, ok := content[field]; ok {
			all = append(all, fmt.Sprintf("%s=%v", field, value))
		}
	}
	rolling, _, _ := unstructured.NestedMap(object.Object, "spec", "updateStrategy", "rollingUpdate")
	add(rolling, surgeField)
	containers, _, _ := unstructured.NestedSlice(object.Object, "spec", "template", "spec", "containers")
	for _, c := range containers {
		lifecycle, _, _ := unstructured.NestedMap(c.(map[string]any), "lifecycle")
		add(lifecycle, signalField)
		if _, ok := c.(map[string]any)[ruleField]; ok {
			all = append(all, ruleField)
		}
	}
	devices, _, _ := unstructured.NestedSlice(object.Object, "spec", "devices")
	for _, d := range devices {
		if _, ok := d.(map[string]any)[taintField]; ok {
			all = append(all, taintField)
		}
	}
	return strings.Join(all, " ")
}
