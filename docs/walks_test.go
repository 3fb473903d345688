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
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	walkStep     = regexp.MustCompile(`^\| \d+ \| \[[^]]+\]\(([^)]+)\) \| (.*?) \|`)
	walkFunction = regexp.MustCompile("`(\\w+)`")
)

// TestWalks: each step names functions of its file, and no walk enters a file more than
// twice.
func TestWalks(t *testing.T) {
	const pageName = "contributors/walks.md"
	walks := strings.Split(page(t, pageName), "\n## ")[1:]
	if len(walks) != 3 {
		t.Errorf("%s has %d walks, want 3", pageName, len(walks))
	}
	for _, walk := range walks {
		name, rows, _ := strings.Cut(walk, "\n")
		entered := map[string]int{}
		for row := range strings.Lines(rows) {
			step := walkStep.FindStringSubmatch(row)
			if step == nil {
				continue
			}
			file := step[1]
			if entered[file]++; entered[file] == 3 {
				t.Errorf("%s: the walk %q enters %s a third time", pageName, name, file)
			}
			code, err := os.ReadFile(filepath.Join(filepath.Dir(pageName), file))
			if err != nil {
				t.Errorf("%s: %v", pageName, err)
				continue
			}
			for _, function := range walkFunction.FindAllStringSubmatch(step[2], -1) {
				if !regexp.MustCompile(`(?m)^func (\([^)]*\) )?` + function[1] + `[(\[]`).Match(code) {
					t.Errorf("%s: %s has no function %s", pageName, file, function[1])
				}
			}
		}
		if len(entered) < 10 {
			t.Errorf("%s: the walk %q has steps in %d files", pageName, name, len(entered))
		}
	}
}
