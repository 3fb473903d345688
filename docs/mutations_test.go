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
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	mutationTest = regexp.MustCompile("(?m)^\\| `[\\w-]+` \\| \\w+ \\| `(Test\\w+)")
	declaredTest = regexp.MustCompile(`(?m)^func (Test\w+)\(`)
)

// TestMutationTableNamesTests: the table of mutations names tests that exist, and not what
// they were called before.
func TestMutationTableNamesTests(t *testing.T) {
	page, err := os.ReadFile("contributors/tests.md")
	if err != nil {
		t.Fatal(err)
	}
	declared := map[string]bool{}
	for _, root := range []string{"../pkg", "../staging", "../cmd"} {
		err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() || !strings.HasSuffix(path, "_test.go") {
				return err
			}
			code, err := os.ReadFile(path)
			for _, match := range declaredTest.FindAllSubmatch(code, -1) {
				declared[string(match[1])] = true
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	named := mutationTest.FindAllSubmatch(page, -1)
	if len(named) != 20 {
		t.Errorf("the table has %d mutations, want 20", len(named))
	}
	for _, match := range named {
		if name := string(match[1]); !declared[name] {
			t.Errorf("contributors/tests.md: there is no %s; write its present name", name)
		}
	}
}
