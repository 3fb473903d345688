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
	"slices"
	"strings"
	"testing"
)

// forkPage describes what goes where in a fork.
const forkPage = "contributors/fork.md"

// TestFilesOfUpstreamThatChange looks whether the files and names that fork.md says
// a fork changes are there, at the version that this repository is built of.
func TestFilesOfUpstreamThatChange(t *testing.T) {
	upstream := moduleDir(t, "k8s.io/kubernetes")
	row := regexp.MustCompile("(?m)^\\| [^|]+ \\| `([^`|]+\\.go)`(?:, `([^`|]+)`)?[^|]* \\|")
	found := row.FindAllStringSubmatch(section(t, page(t, forkPage), "Files of upstream that change"), -1)
	if len(found) == 0 {
		t.Fatal("no row was found; this test does not understand the page any more")
	}
	for _, match := range found {
		data, err := os.ReadFile(filepath.Join(upstream, filepath.FromSlash(match[1])))
		if err != nil {
			t.Errorf("fork.md names a file that upstream does not have: %v", err)
			continue
		}
		if !strings.Contains(string(data), match[2]) {
			t.Errorf("%s has no %s", match[1], match[2])
		}
	}
}

// place is what the first cell of a row names: a link, or a path in code.
var place = regexp.MustCompile("\\]\\(\\.\\./\\.\\./([^)]+)\\)|`([a-z][^`]*)`")

// TestAllFilesMappedInFork looks for a row of fork.md for each directory that
// could go somewhere of its own. What is below cmd may be upstream's.
func TestAllFilesMappedInFork(t *testing.T) {
	var places []string
	for line := range strings.Lines(section(t, page(t, forkPage), "Where everything goes")) {
		cells := strings.Split(line, "|")
		if len(cells) < 3 {
			continue
		}
		for _, match := range place.FindAllStringSubmatch(cells[1], -1) {
			places = append(places, match[1]+match[2])
		}
	}
	upstream := moduleDir(t, "k8s.io/kubernetes")
	for _, parent := range []string{"pkg", "cmd", "test", "build", "hack", "staging/src/k8s.io"} {
		entries, err := os.ReadDir(filepath.Join(root, parent))
		if err != nil {
			t.Fatal(err)
		}
		for _, entry := range entries {
			directory := parent + "/" + entry.Name()
			if !entry.IsDir() || slices.ContainsFunc(places, func(p string) bool {
				// All of build and of hack goes together.
				return p == directory || strings.HasPrefix(p, directory+"/") || p == parent && (parent == "build" || parent == "hack")
			}) {
				continue
			}
			if _, err := os.Stat(filepath.Join(upstream, filepath.FromSlash(directory))); parent == "cmd" && err == nil {
				continue
			}
			t.Errorf("no row of \"Where everything goes\" in fork.md is about %s; add one", directory)
		}
	}
}

// quote is a block that says which file it is from.
var quote = regexp.MustCompile("(?s)<!-- from: ([^ ]+) -->\n```[a-z]+\n(.*?)```\n")

// TestQuotesAreFromTheirFiles compares blocks with the files that they say they
// are from, which have tests of their own.
func TestQuotesAreFromTheirFiles(t *testing.T) {
	quotes := 0
	for _, name := range pages(t) {
		text := page(t, name)
		found := quote.FindAllStringSubmatch(text, -1)
		if marks := strings.Count(text, "\n<!-- from: "); marks != len(found) {
			t.Errorf("%s: %d of %d marks have no block right below", name, marks-len(found), marks)
		}
		for _, match := range found {
			quotes++
			if !strings.Contains(page(t, filepath.Join(filepath.Dir(name), filepath.FromSlash(match[1]))), match[2]) {
				t.Errorf("%s: this is not in %s:\n%s", name, match[1], match[2])
			}
		}
	}
	if quotes == 0 {
		t.Error("no page quotes a file; this test does not understand the pages any more")
	}
}
