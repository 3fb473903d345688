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

package task

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"testing/synctest"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// define lets a server have a definition of widgets with a schema of spec.
func define(t *testing.T, s *server, spec string) {
	t.Helper()
	definition := &unstructured.Unstructured{}
	text := `{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"widgets.example.com"},
		"spec":{"group":"example.com","versions":[{"name":"v0"},{"name":"v1","schema":{"openAPIV3Schema":{"type":"object","properties":{"spec":` + spec + `}}}}]}}`
	if err := definition.UnmarshalJSON([]byte(text)); err != nil {
		t.Fatal(err)
	}
	if err := s.Tracker().Create(crds, definition, ""); err != nil {
		t.Fatal(err)
	}
}

// TestDefinitionPreventsClearing is found before anything is written.
func TestDefinitionPreventsClearing(t *testing.T) {
	const gone, back = "has no spec.", "the default"
	for schema, fields := range map[string]map[string]string{
		`{"type":"object","properties":{"field":{"type":"string"},"other":{"type":"string","default":"red"}}}`: {
			"spec.field": "", "spec.other": back, "spec.third": gone, "spec.third.x": gone, "metadata.labels{x}": "",
		},
		`{"type":"object","x-kubernetes-preserve-unknown-fields":true,"properties":{"other":{"type":"string","default":"red"}}}`: {
			"spec.field": "", "spec.other": back, "spec.third.x": "", "spec.third[*].x": "",
		},
		`{"type":"object","properties":{"list":{"type":"array","default":[{"a":"x"}],"items":{"type":"object","properties":{"a":{"type":"string"},"b":{"type":"integer","default":0}}}}}}`: {
			"spec.list": back, "spec.list[*].a": "", "spec.list[*].b": back, "spec.list[a=x].b": back, "spec.list[a=x]": "", "spec.list[*].c": gone,
		},
		`{"type":"object","properties":{"map":{"type":"object","additionalProperties":{"type":"object","properties":{"a":{"type":"boolean","default":false}}}}}}`: {
			"spec.map{*}.a": back, "spec.map{x}.a": back, "spec.map{x}": "", "spec.map{*}.b": gone,
		},
		`{"type":"object","properties":{"map":{"type":"object","properties":{"x":{"type":"object","default":{},"properties":{"a":{"type":"string"}}}}}}}`: {
			"spec.map{x}": back, "spec.map{*}.a": "", "spec.map{*}.b": gone, "spec.map{y}": gone, "spec[map=x].map": "",
		},
	} {
		for field, want := range fields {
			for _, of := range []Task{ClearField(widgets, field), WaitForNone(widgets, "it", field)} {
				s := serve(widget("a", "x"))
				define(t, s, schema)
				_, findErr := of.Find(t.Context(), s.clients())
				runErr := of.Run(t.Context(), s.clients(), ignored)
				for _, err := range []error{findErr, runErr} {
					var blocked *BlockedError
					switch {
					case want == "" && err != nil && !strings.HasPrefix(err.Error(), "waiting for"):
						t.Errorf("%s with %s: %v", of.Name, schema, err)
					case want != "" && (!errors.As(err, &blocked) || !strings.Contains(blocked.Message, want)):
						t.Errorf("%s with %s: got %v, want it blocked because it %q", of.Name, schema, err, want)
					}
				}
				if want != "" && len(s.patched()) > 0 {
					t.Errorf("%s with %s: %v were written", of.Name, schema, s.patched())
				}
			}
		}
	}
}

// TestDefaultOfAnotherValueDoesNotBlock: what is put in does not match.
func TestDefaultOfAnotherValueDoesNotBlock(t *testing.T) {
	s := serve(widget("a", ""))
	define(t, s, `{"type":"object","properties":{"field":{"type":"string","default":"red"}}}`)
	if err := WaitForNone(widgets, "blue", "spec.field=blue").Run(t.Context(), s.clients(), ignored); err != nil {
		t.Error(err)
	}
	if err := WaitForNone(widgets, "red", "spec.field=red").Run(t.Context(), s.clients(), ignored); err == nil {
		t.Error("nothing would ever be without it")
	}
}

// TestCorrectedDefinitionNoticed: the task waits for that.
func TestCorrectedDefinitionNoticed(t *testing.T) {
	synctest.Test(t, mendedDefinition)
}

func mendedDefinition(t *testing.T) {
	s := serve(widget("a", "x"))
	define(t, s, `{"type":"object","properties":{"field":{"type":"string","default":"red"}}}`)
	of := ClearField(widgets, "spec.field")
	blocked := blockedBy(t, of, s.clients(), ignored)
	mended, err := s.Tracker().Get(crds, "", "widgets.example.com")
	if err != nil {
		t.Fatal(err)
	}
	data, err := json.Marshal(mended)
	if err != nil {
		t.Fatal(err)
	}
	definition := &unstructured.Unstructured{}
	if err := definition.UnmarshalJSON([]byte(strings.Replace(string(data), `"default":"red",`, "", 1))); err != nil {
		t.Fatal(err)
	}
	if err := s.Tracker().Update(crds, definition, ""); err != nil {
		t.Fatal(err)
	}
	if err := blocked.Until(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := of.Run(t.Context(), s.clients(), ignored); err != nil {
		t.Error(err)
	}
}
