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

package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/kubernetes-features/test/e2e_features/history"
)

func TestJudge(t *testing.T) {
	file := filepath.Join(t.TempDir(), "history.jsonl")
	for text, ok := range map[string]bool{
		"1 versions of Features with 0 transitions": true,
		"S1: A: state On with tasks":                false,
	} {
		out, err := os.Create(file)
		if err != nil {
			t.Fatal(err)
		}
		object := `{"metadata":{"name":"A"},"status":{"state":"On"}}`
		if !ok {
			object = `{"metadata":{"name":"A"},"status":{"state":"On","tasks":[{"name":"t"}]}}`
		}
		w := history.NewWriter(out)
		w.Add(history.Record{Kind: history.Stored, Key: history.FeaturesKey + "A", Revision: 1, Version: 1, Object: []byte(object)})
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		var printed bytes.Buffer
		if got := judge(&printed, file); got != ok || !strings.Contains(printed.String(), text) {
			t.Errorf("%t, want %t: %s", got, ok, &printed)
		}
	}
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, bytes.Replace(content, []byte("On"), []byte("Off"), 1), 0o600); err != nil {
		t.Fatal(err)
	}
	var printed bytes.Buffer
	if judge(&printed, file) || !strings.Contains(printed.String(), "is not what was recorded") {
		t.Errorf("it judges a history that was changed: %s", &printed)
	}
}
