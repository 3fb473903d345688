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

package docs

import (
	"testing"

	commands "k8s.io/kubernetes-features/test/docs"
)

// TestCommandsAreUnderstood reads the blocks of all pages. What test/docs does not
// understand would be found only once it has started a cluster for each page.
func TestCommandsAreUnderstood(t *testing.T) {
	names, err := commands.Pages(root)
	if err != nil {
		t.Fatal(err)
	}
	understood := 0
	for _, name := range names {
		blocks, err := commands.Read(root, name)
		if err != nil {
			t.Error(err)
		}
		understood += len(blocks)
	}
	if understood < 100 {
		t.Errorf("there are %d blocks with commands, which is too few", understood)
	}
}
