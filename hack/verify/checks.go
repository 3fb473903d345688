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
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path"
	"regexp"
	"strings"
)

// maxFunctionLines keeps functions readable; generated code and tests are free. Files have no
// limit: a file has one type, and a table is one variable.
const maxFunctionLines = 80

// boilerplate is the file whose text Go files begin with; generators write it.
const boilerplate = "hack/boilerplate/boilerplate.generatego.txt"

// license finds Go files that do not begin with header, or continue with the next
// line: Go takes the license for the package's documentation. Each letter counts,
// and there is no year, as upstream's hack/boilerplate wants it in new files.
func license(f file, header []byte) []string {
	if !f.isGo() {
		return nil
	}
	_, after, ok := bytes.Cut(f.data[:min(len(f.data), 1500)], bytes.TrimSpace(header))
	switch {
	case !ok:
		return []string{fmt.Sprintf("%s:1: the license's header is missing or differs from %s", f.path, boilerplate)}
	case !bytes.HasPrefix(after, []byte("\n\n")):
		return []string{f.path + ":1: an empty line has to follow the license"}
	}
	return nil
}

// sizes finds functions that have grown too large.
func sizes(f file) []string {
	if !f.isGo() || f.isTest() || f.generated() {
		return nil
	}
	var findings []string
	set := token.NewFileSet()
	parsed, err := parser.ParseFile(set, f.path, f.data, parser.SkipObjectResolution)
	if err != nil {
		return append(findings, fmt.Sprintf("%s:1: %v", f.path, err))
	}
	for _, declaration := range parsed.Decls {
		function, ok := declaration.(*ast.FuncDecl)
		if !ok {
			continue
		}
		begin, end := set.Position(function.Pos()), set.Position(function.End())
		if lines := end.Line - begin.Line + 1; lines > maxFunctionLines {
			findings = append(findings, fmt.Sprintf("%s:%d: %s has %d lines, more than %d; divide it", f.path, begin.Line, function.Name.Name, lines, maxFunctionLines))
		}
	}
	return findings
}

// machinePath matches home directories of people and of the root user.
var machinePath = regexp.MustCompile(`(^|[\s"'=(:])/(root|work|home/[a-z]+)/`)

// machinePaths finds paths that only exist on a developer's machine.
func machinePaths(f file) []string {
	var findings []string
	for i, line := range bytes.Split(f.data, []byte("\n")) {
		if machinePath.Match(line) {
			findings = append(findings, fmt.Sprintf("%s:%d: names a directory of a developer's machine", f.path, i+1))
		}
	}
	return findings
}

// binary finds files that are no text, such as a program that was built without
// -o. No file here is built from others, and git does not show changes in them.
func binary(f file) []string {
	if bytes.IndexByte(f.data, 0) < 0 {
		return nil
	}
	return []string{fmt.Sprintf("%s:1: has %d bytes that are no text; if it was built by mistake remove it, and build with -o", f.path, len(f.data))}
}

var link = regexp.MustCompile(`\]\(([^)#\s]+)(#[^)]*)?\)`)

// links finds relative links in documents that lead nowhere.
func links(files []file) []string {
	known := map[string]bool{}
	for _, f := range files {
		for p := f.path; p != "." && p != "/"; p = path.Dir(p) {
			known[p] = true
		}
	}
	var findings []string
	for _, f := range files {
		if !strings.HasSuffix(f.path, ".md") {
			continue
		}
		for i, line := range strings.Split(string(f.data), "\n") {
			for _, match := range link.FindAllStringSubmatch(line, -1) {
				if target := match[1]; !strings.Contains(target, "://") && !known[path.Join(path.Dir(f.path), target)] {
					findings = append(findings, fmt.Sprintf("%s:%d: the link to %s leads nowhere", f.path, i+1, target))
				}
			}
		}
	}
	return findings
}

var (
	makeCommand = regexp.MustCompile(`(?:^|\s)make ([a-z][a-z-]*)`)
	makeInline  = regexp.MustCompile("`make ([a-z][a-z-]*)")
	makeTarget  = regexp.MustCompile(`(?m)^([a-z][a-z-]*):`)
)

// targets finds make targets in documents that the Makefile does not have.
func targets(files []file) []string {
	known := map[string]bool{}
	for _, f := range files {
		if f.path == "Makefile" {
			for _, match := range makeTarget.FindAllStringSubmatch(string(f.data), -1) {
				known[match[1]] = true
			}
		}
	}
	var findings []string
	for _, f := range files {
		if !strings.HasSuffix(f.path, ".md") {
			continue
		}
		code := false
		for i, line := range strings.Split(string(f.data), "\n") {
			if strings.HasPrefix(line, "```") {
				code = !code
			}
			pattern := makeInline
			if code {
				pattern = makeCommand
			}
			for _, match := range pattern.FindAllStringSubmatch(line, -1) {
				if !known[match[1]] {
					findings = append(findings, fmt.Sprintf("%s:%d: the Makefile has no target %s", f.path, i+1, match[1]))
				}
			}
		}
	}
	return findings
}

// kep is the document whose sections comments cite.
const kep = "docs/keps/3920-finish-feature-flags/README.md"

var (
	continued = regexp.MustCompile(`\n[ \t]*//[ \t]*`)
	cited     = regexp.MustCompile(`KEP-3920, "([^"]+)"`)
	heading   = regexp.MustCompile(`(?m)^#+ (.+)$`)
)

// sections finds citations of sections that the KEP does not have.
func sections(files []file) []string {
	known := map[string]bool{}
	for _, f := range files {
		if f.path == kep {
			for _, match := range heading.FindAllStringSubmatch(string(f.data), -1) {
				known[match[1]] = true
			}
		}
	}
	var findings []string
	for _, f := range files {
		if !f.isGo() || path.Dir(f.path) == "hack/verify" {
			continue
		}
		for _, match := range cited.FindAllSubmatch(continued.ReplaceAll(f.data, []byte(" ")), -1) {
			if !known[string(match[1])] {
				findings = append(findings, fmt.Sprintf("%s: cites KEP-3920, %q, which is no section of %s", f.path, match[1], kep))
			}
		}
	}
	return findings
}
