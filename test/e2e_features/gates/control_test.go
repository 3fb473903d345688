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

package gates

import (
	"os"
	"testing"

	"k8s.io/feature-lifecycle/lifecycletest"
)

// controlCase are objects of the kinds in which features store something, that
// use none of them.
func controlCase(t *testing.T) *lifecycletest.Case {
	t.Helper()
	const file = "testdata/control.yaml"
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	objects, err := lifecycletest.Parse(data)
	if err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	return &lifecycletest.Case{Fixture: file, Objects: objects}
}
