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

package rest

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/apis/flowcontrol/bootstrap"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	"k8s.io/kubernetes/pkg/apis/flowcontrol"
	_ "k8s.io/kubernetes/pkg/apis/flowcontrol/install"
	"k8s.io/kubernetes/pkg/apis/flowcontrol/validation"
)

// TestFlowControlIsValid by upstream's own validation, has a place of its own among
// upstream's flow schemas, and is not taken for one of those.
func TestFlowControlIsValid(t *testing.T) {
	level, schema := FlowControl()
	internalLevel, internalSchema := &flowcontrol.PriorityLevelConfiguration{}, &flowcontrol.FlowSchema{}
	for from, to := range map[any]any{level: internalLevel, schema: internalSchema} {
		if err := legacyscheme.Scheme.Convert(from, to, nil); err != nil {
			t.Fatal(err)
		}
	}
	if errs := validation.ValidatePriorityLevelConfiguration(internalLevel, flowcontrolv1.SchemeGroupVersion, validation.PriorityLevelValidationOptions{}); len(errs) > 0 {
		t.Error(errs)
	}
	if errs := validation.ValidateFlowSchema(internalSchema); len(errs) > 0 {
		t.Error(errs)
	}
	for _, other := range append(bootstrap.SuggestedFlowSchemas, bootstrap.MandatoryFlowSchemas...) {
		if other.Name == schema.Name || other.Spec.MatchingPrecedence == schema.Spec.MatchingPrecedence {
			t.Errorf("upstream's flow schema %s has the name or the precedence of ours", other.Name)
		}
		if other.Name == "system-nodes" && other.Spec.MatchingPrecedence <= schema.Spec.MatchingPrecedence {
			t.Error("reports of nodes would not match ours")
		}
	}
	for _, annotations := range []map[string]string{level.Annotations, schema.Annotations} {
		if _, ok := annotations[flowcontrolv1.AutoUpdateAnnotationKey]; ok {
			t.Error("upstream deletes what says that it may be updated and is not its own")
		}
	}
}

// TestFlowControlIsWrittenOnce, and what people made of it stays.
func TestFlowControlIsWrittenOnce(t *testing.T) {
	client := fake.NewClientset()
	writes := func() (verbs []string) {
		for _, action := range client.Actions() {
			if action.GetVerb() != "get" {
				verbs = append(verbs, action.GetVerb()+" "+action.GetResource().Resource)
			}
		}
		return verbs
	}
	if err := ensureFlowControl(t.Context(), client); err != nil {
		t.Fatal(err)
	}
	both := []string{"create prioritylevelconfigurations", "create flowschemas"}
	if diff := cmp.Diff(both, writes()); diff != "" {
		t.Errorf("unexpected writes at the first start (-want +got):\n%s", diff)
	}
	schema, err := client.FlowcontrolV1().FlowSchemas().Get(t.Context(), ReportsLevel, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	schema.Spec.MatchingPrecedence = 9000
	if _, err := client.FlowcontrolV1().FlowSchemas().Update(t.Context(), schema, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	client.ClearActions()
	if err := ensureFlowControl(t.Context(), client); err != nil {
		t.Fatal(err)
	}
	if got := writes(); len(got) > 0 {
		t.Errorf("unexpected writes at the next start: %v", got)
	}
}
