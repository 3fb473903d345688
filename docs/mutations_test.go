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
	"maps"
	"regexp"
	"slices"
	"testing"
)

var mutationTest = regexp.MustCompile("(?m)^\\| `[\\w-]+` \\| \\w+ \\| `(Test\\w+)")

// TestMutationTableNamesTests: the table of mutations names tests that exist, and not what
// they were called before.
func TestMutationTableNamesTests(t *testing.T) {
	const name = "contributors/tests.md"
	declared := slices.Concat(slices.Collect(maps.Values(testsBelow(t, "cmd", "pkg", "staging")))...)
	named := mutationTest.FindAllStringSubmatch(section(t, page(t, name), "Mutations"), -1)
	if len(named) != 20 {
		t.Errorf("the table has %d mutations, want 20", len(named))
	}
	for _, match := range named {
		if !slices.Contains(declared, match[1]) {
			t.Errorf("%s: there is no %s; write its present name", name, match[1])
		}
	}
}
