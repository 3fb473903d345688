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
	"fmt"
	"os"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
)

// operate starts an operator that has objects of its own, and insists on the fields of all
// gates in its StatefulSet and its Deployment.
func (w *world) operate(t *testing.T) {
	t.Helper()
	w.operatedFile = w.scripts[0].dir + "/operated.json"
	objects := managed(operated, with)
	if err := os.WriteFile(w.operatedFile, manifest(t, objects), 0o600); err != nil {
		t.Fatal(err)
	}
	for i, object := range objects {
		_ = w.objects.Create(t, resources[i], object)
	}
	w.operator = follow(t, "the operator", driverOf(t, "controller-runtime"), "-kubeconfig="+w.Kubeconfig("admin"), "-namespace="+operated, "-f="+w.operatedFile, "operate")
	for _, kind := range []string{"StatefulSet", "Deployment"} {
		w.operator.until(t, "its "+kind, func(lines []line) bool { return reconciled(lines, kind+"/web", "unchanged") > 0 })
	}
}

// reconciled counts reconciliations of an object with a result.
func reconciled(lines []line, object, result string) int {
	n := 0
	for _, l := range lines {
		if l.Object == object && l.Result == result {
			n++
		}
	}
	return n
}

// insists sees that an operator that never gives a field up does no harm: it writes what
// the server drops, and stops writing when nothing comes of it. Its Deployment, which holds
// two features, is deleted; the operator creates it again, without the fields.
func (w *world) insists(t *testing.T) {
	t.Helper()
	if got := gated(w.objects.Read(t, statefulSets, operated, "web")); got != "" {
		t.Errorf("the operator brought %s back", got)
	}
	if err := w.objects.Resource(deployments).Namespace(operated).Delete(t.Context(), "web", metav1.DeleteOptions{}); err != nil {
		t.Fatalf("deleting the operator's Deployment: %v", err)
	}
	w.operator.until(t, "its Deployment deleted, and to create it again", func(lines []line) bool { return reconciled(lines, "Deployment/web", "created") > 0 })
	for i, kind := range []string{"StatefulSet", "Deployment"} {
		w.calm(t, i, kind)
	}
	lines, _, _ := w.operator.lines()
	if n := reconciled(lines, "StatefulSet/web", "error") + reconciled(lines, "Deployment/web", "error"); n > 0 {
		t.Logf("the operator failed %d times:\n%s", n, tail(lines))
	}
}

// calm changes another object of a kind that the operator watches until it has reconciled
// its own often enough to write it again and again, if each write made it write once more.
func (w *world) calm(t *testing.T, i int, kind string) {
	t.Helper()
	const bystander, rounds, settled = "bystander", 10, 3
	object := managed(operated, without)[i]
	object.SetName(bystander)
	_ = w.objects.Create(t, resources[i], object)
	version := ""
	for round := range rounds {
		lines, _, _ := w.operator.lines()
		before := reconciled(lines, kind+"/"+bystander, "not managed")
		patch := fmt.Appendf(nil, `{"metadata":{"annotations":{"round":"%d"}}}`, round)
		if _, err := w.objects.Resource(resources[i]).Namespace(operated).Patch(t.Context(), bystander, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
			t.Fatalf("changing %s %s: %v", kind, bystander, err)
		}
		w.operator.until(t, fmt.Sprintf("round %d of %s %s", round, kind, bystander), func(lines []line) bool {
			return reconciled(lines, kind+"/"+bystander, "not managed") > before
		})
		if round == settled {
			version = w.operated(t, i).GetResourceVersion()
		}
	}
	is := w.operated(t, i)
	if is.GetResourceVersion() != version {
		t.Errorf("the operator writes its %s again and again: resourceVersion %s, then %s; managed fields %v", kind, version, is.GetResourceVersion(), is.GetManagedFields())
	}
	if got := gated(is); got != "" {
		t.Errorf("the operator brought %s back", got)
	}
}

// operated is an object of the operator.
func (w *world) operated(t *testing.T, i int) *unstructured.Unstructured {
	t.Helper()
	return w.objects.Read(t, resources[i], operated, "web")
}
