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
	"fmt"
	"path"
	"regexp"
	"strings"
)

var anchor = regexp.MustCompile(`\]\(([^)#\s]*)#([^)\s]+)\)`)

// anchors finds links in documents to headings that are not there, of the same
// page or of another one.
func anchors(files []file) []string {
	known := map[string]map[string]bool{}
	for _, f := range files {
		if !strings.HasSuffix(f.path, ".md") {
			continue
		}
		known[f.path] = map[string]bool{}
		for _, address := range addresses(string(f.data)) {
			known[f.path][address] = true
		}
	}
	var findings []string
	for _, f := range files {
		if known[f.path] == nil {
			continue
		}
		for i, line := range strings.Split(string(f.data), "\n") {
			for _, match := range anchor.FindAllStringSubmatch(line, -1) {
				page := f.path
				if match[1] != "" {
					page = path.Join(path.Dir(f.path), match[1])
				}
				if known[page] != nil && !known[page][match[2]] {
					findings = append(findings, fmt.Sprintf("%s:%d: %s has no heading #%s", f.path, i+1, page, match[2]))
				}
			}
		}
	}
	return findings
}
