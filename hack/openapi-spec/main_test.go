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

package main

import (
	"os"
	"path/filepath"
	"testing"

	"k8s.io/kubernetes-features/hack/apispec"
)

// TestWrite: the directory has the new files only, and the old ones when a new one
// cannot be written.
func TestWrite(t *testing.T) {
	dir := t.TempDir()
	if err := write(dir, map[string]apispec.Document{"discovery/old.json": {"a": "b"}, "openapi-spec/v3/old.json": {}}); err != nil {
		t.Fatal(err)
	}
	if err := write(dir, map[string]apispec.Document{"discovery/new.json": {"a": make(chan int)}}); err == nil {
		t.Error("a document with a channel: no error")
	}
	old := filepath.Join(dir, "discovery", "old.json")
	if data, err := os.ReadFile(old); err != nil || string(data) != "{\n  \"a\": \"b\"\n}\n" {
		t.Errorf("after the failure the old file is %q, %v", data, err)
	}
	if err := write(dir, map[string]apispec.Document{"discovery/new.json": {}}); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(old); !os.IsNotExist(err) {
		t.Errorf("the old file is still there: %v", err)
	}
	if _, err := os.Stat(filepath.Join(dir, "discovery", "new.json")); err != nil {
		t.Error(err)
	}
}
