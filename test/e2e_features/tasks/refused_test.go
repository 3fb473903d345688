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

package tasks

import (
	"encoding/json"
	"encoding/pem"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/feature-lifecycle/lifecycle"
	"k8s.io/kubernetes-features/test/e2e_features/framework"
	"k8s.io/utils/ptr"
)

// has reports whether an object has spec.field.
func has(object *unstructured.Unstructured) bool {
	_, found, _ := unstructured.NestedFieldNoCopy(object.Object, "spec", "field")
	return found
}

// tryUpdate changes an object without storing the change.
func (w *world) tryUpdate(t *testing.T, resource schema.GroupVersionResource, name string) error {
	_, err := w.objects.Resource(resource).Namespace(ns).Patch(t.Context(), name, types.MergePatchType,
		[]byte(`{"metadata":{"annotations":{"try":"this"}}}`), metav1.PatchOptions{DryRun: []string{metav1.DryRunAll}})
	return err
}

func (w *world) deniedByPolicy(t *testing.T) {
	configMaps := schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
	for _, name := range []string{"denied", "permitted"} {
		object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}, Data: map[string]string{"old": "x", "other": "stays"}}
		if _, err := w.Kube.CoreV1().ConfigMaps(ns).Create(t.Context(), object, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	policies := w.Kube.AdmissionregistrationV1().ValidatingAdmissionPolicies()
	policy := &admissionregistrationv1.ValidatingAdmissionPolicy{ObjectMeta: metav1.ObjectMeta{Name: "no"}, Spec: admissionregistrationv1.ValidatingAdmissionPolicySpec{
		MatchConstraints: &admissionregistrationv1.MatchResources{ResourceRules: []admissionregistrationv1.NamedRuleWithOperations{{
			RuleWithOperations: admissionregistrationv1.RuleWithOperations{
				Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Update},
				Rule:       admissionregistrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"configmaps"}},
			},
		}}},
		Validations: []admissionregistrationv1.Validation{{Expression: "object.metadata.name != 'denied'", Message: "this one is ours"}},
	}}
	if _, err := policies.Create(t.Context(), policy, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	binding := &admissionregistrationv1.ValidatingAdmissionPolicyBinding{ObjectMeta: metav1.ObjectMeta{Name: "no"}, Spec: admissionregistrationv1.ValidatingAdmissionPolicyBindingSpec{
		PolicyName: "no", ValidationActions: []admissionregistrationv1.ValidationAction{admissionregistrationv1.Deny},
	}}
	if _, err := w.Kube.AdmissionregistrationV1().ValidatingAdmissionPolicyBindings().Create(t.Context(), binding, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	framework.WaitFor(t, "the policy to be in force", func() bool { return w.tryUpdate(t, configMaps, "denied") != nil })

	clearing := lifecycle.ClearField(configMaps, "data.old")
	clients := w.clients(t, declared(t, clearing)...)
	foreseen, err := clearing.Obstacles(t.Context(), clients)
	if err != nil || len(foreseen.Held) != 1 || !strings.Contains(foreseen.Held[0], "1 object of configmaps refuses to have data.old removed, of 2 that were tried: tasks/denied: ") {
		t.Errorf("foreseen is %q, %v", foreseen, err)
	}
	if n := count(t, clients, clearing); n != 2 {
		t.Errorf("after a plan %d objects have the field, want both", n)
	}
	blocked := runBlocked(t, clients, clearing, "1 object of configmaps refuses", "tasks/denied", "this one is ours")
	if strings.Contains(blocked.Message, "permitted") {
		t.Errorf("an object is named that does not refuse: %s", blocked.Message)
	}
	permitted, err := w.Kube.CoreV1().ConfigMaps(ns).Get(t.Context(), "permitted", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if _, found := permitted.Data["old"]; found || permitted.Data["other"] != "stays" {
		t.Errorf("one that refuses kept another from being cleared: %v", permitted.Data)
	}
	until(t, blocked, func() {
		if err := policies.Delete(t.Context(), "no", metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
	})
	run(t, clients, clearing)
	if n := count(t, clients, clearing); n != 0 {
		t.Errorf("%d objects are left", n)
	}
}

// denier is a webhook that denies updates of objects named deny-..., each in
// another way.
type denier struct {
	*httptest.Server
	calls atomic.Int64
}

func (d *denier) ServeHTTP(answer http.ResponseWriter, request *http.Request) {
	d.calls.Add(1)
	var review admissionv1.AdmissionReview
	body, err := io.ReadAll(request.Body)
	if err == nil {
		err = json.Unmarshal(body, &review)
	}
	if err != nil || review.Request == nil {
		http.Error(answer, "not a review", http.StatusBadRequest)
		return
	}
	codes := map[string]int32{"deny-plainly": 0, "deny-403": 403, "deny-409": 409, "deny-422": 422, "deny-500": 500, "deny-503": 503}
	code, denied := codes[review.Request.Name]
	review.Response = &admissionv1.AdmissionResponse{UID: review.Request.UID, Allowed: !denied}
	if denied {
		review.Response.Result = &metav1.Status{Code: code, Message: "the webhook says no"}
	}
	review.Request = nil
	answer.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(answer).Encode(review)
}

// hook sends updates of a kind to a URL.
func (w *world) hook(t *testing.T, k kind, name, url string, ca []byte) {
	t.Helper()
	config := &admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: name}, Webhooks: []admissionregistrationv1.ValidatingWebhook{{
		Name:                    name + ".example.com",
		ClientConfig:            admissionregistrationv1.WebhookClientConfig{URL: &url, CABundle: ca},
		FailurePolicy:           ptr.To(admissionregistrationv1.Fail),
		SideEffects:             ptr.To(admissionregistrationv1.SideEffectClassNone),
		AdmissionReviewVersions: []string{"v1"},
		Rules: []admissionregistrationv1.RuleWithOperations{{
			Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Update},
			Rule:       admissionregistrationv1.Rule{APIGroups: []string{k.Group}, APIVersions: []string{"*"}, Resources: []string{k.resource.Resource}},
		}},
	}}}
	if _, err := w.Kube.AdmissionregistrationV1().ValidatingWebhookConfigurations().Create(t.Context(), config, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

func (w *world) unhook(t *testing.T, name string) func() {
	return func() {
		if err := w.Kube.AdmissionregistrationV1().ValidatingWebhookConfigurations().Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
	}
}

func (w *world) deniedByWebhook(t *testing.T) {
	k := customKind("Hooked")
	w.serve(t, k)
	names := []string{"deny-403", "deny-409", "deny-422", "deny-500", "deny-503", "deny-plainly", "permitted"}
	for _, name := range names {
		w.objects.Create(t, k.resource, k.object(name, map[string]any{"field": "x"}))
	}
	d := &denier{}
	d.Server = httptest.NewTLSServer(d)
	t.Cleanup(d.Close)
	w.hook(t, k, "denier", d.URL, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: d.Certificate().Raw}))
	framework.WaitFor(t, "the webhook to be called", func() bool { return w.tryUpdate(t, k.resource, "deny-plainly") != nil })

	clearing := lifecycle.ClearField(k.resource, "spec.field")
	clients := w.clients(t, declared(t, clearing)...)
	// A message names five; all are counted.
	blocked := runBlocked(t, clients, clearing, "6 objects of hookeds.tasks.example.com refuse", "the webhook says no",
		"tasks/deny-403", "tasks/deny-409", "tasks/deny-422", "tasks/deny-500", "tasks/deny-503")
	if has(w.objects.Read(t, k.resource, ns, "permitted")) {
		t.Error("those that refuse kept another from being cleared")
	}
	begun := d.calls.Load()
	until(t, blocked, w.unhook(t, "denier"))
	// Until tries one object every half a minute.
	if calls := d.calls.Load() - begun; calls > 3 {
		t.Errorf("the webhook was called %d times while the task was blocked", calls)
	}
	run(t, clients, clearing)
	for _, name := range names {
		if has(w.objects.Read(t, k.resource, ns, name)) {
			t.Errorf("%s still has the field", name)
		}
	}
}

func (w *world) unreachableWebhook(t *testing.T) {
	k := customKind("Unreachable")
	w.serve(t, k)
	w.objects.Create(t, k.resource, k.object("a", map[string]any{"field": "x"}))
	// Nothing listens there.
	w.hook(t, k, "unreachable", "https://127.0.0.1:1/", nil)
	framework.WaitFor(t, "the webhook to be called", func() bool { return w.tryUpdate(t, k.resource, "a") != nil })
	clearing := lifecycle.ClearField(k.resource, "spec.field")
	clients := w.clients(t, declared(t, clearing)...)
	blocked := runBlocked(t, clients, clearing, "tasks/a", "unreachable.example.com")
	until(t, blocked, w.unhook(t, "unreachable"))
	run(t, clients, clearing)
	if has(w.objects.Read(t, k.resource, ns, "a")) {
		t.Error("the object still has the field")
	}
}

// stricterSchema: the server would not accept the object as it is, whatever is
// changed in it.
func (w *world) stricterSchema(t *testing.T) {
	k := customKind("Stricter")
	w.serve(t, k)
	w.objects.Create(t, k.resource, k.object("old", map[string]any{"field": "x"}))
	w.objects.Create(t, k.resource, k.object("valid", map[string]any{"field": "x", "must": "be"}))
	w.objects.Define(t, k.definition("v1", "must"))
	drop := []byte(`{"spec":{"field":null}}`)
	framework.WaitFor(t, "the stricter schema to be in force", func() bool {
		_, err := w.objects.Resource(k.resource).Namespace(ns).Patch(t.Context(), "old", types.MergePatchType, drop, metav1.PatchOptions{DryRun: []string{metav1.DryRunAll}})
		return err != nil
	})
	clearing := lifecycle.ClearField(k.resource, "spec.field")
	clients := w.clients(t, declared(t, clearing)...)
	blocked := runBlocked(t, clients, clearing, "1 object of stricters.tasks.example.com refuses", "tasks/old", "spec.must")
	until(t, blocked, func() {
		mend := []byte(`{"spec":{"must":"be"}}`)
		if _, err := w.objects.Resource(k.resource).Namespace(ns).Patch(t.Context(), "old", types.MergePatchType, mend, metav1.PatchOptions{}); err != nil {
			t.Error(err)
		}
	})
	run(t, clients, clearing)
	for _, name := range []string{"old", "valid"} {
		if has(w.objects.Read(t, k.resource, ns, name)) {
			t.Errorf("%s still has the field", name)
		}
	}
}
