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
	"regexp"
	"strings"
)

const (
	rootModule     = "go.mod"
	libraryModule  = "staging/src/k8s.io/feature-lifecycle/go.mod"
	exampleModule  = "staging/src/k8s.io/feature-lifecycle/examples/widget-operator/go.mod"
	previousModule = "hack/previous/go.mod"
	e2eModule      = "hack/e2e/go.mod"
	changelog      = "CHANGELOG.md"
	frameworkFile  = "test/e2e_features/framework/previous.go"
)

var (
	requiresKubernetes = regexp.MustCompile(`(?m)^(?:require)?\s*k8s\.io/kubernetes (v1\.[0-9]+\.[0-9]+)(?: // indirect)?$`)
	requiresStaging    = regexp.MustCompile(`^\s*(k8s\.io/[a-z-]+) (v0\.[0-9]+\.[0-9]+)( // indirect)?$`)
	newestHeading      = regexp.MustCompile(`(?m)^# (\S+)`)
	patchVersion       = regexp.MustCompile(`\bv?(1\.[0-9]+)\.([0-9]+)\b`)
	declaredVersion    = regexp.MustCompile(`const (Upstream|Previous)Version = "(v[0-9.]+)"`)
)

// versions finds files that name another patch release of Kubernetes than go.mod
// does. hack/update-upstream.sh changes all of them: modules, the changelog, the
// Makefile, constants of tests and documents. Versions in other files are
// examples, or that on which a benchmark was measured.
func versions(files []file) []string {
	byPath := map[string]string{}
	for _, f := range files {
		byPath[f.path] = string(f.data)
	}
	match := requiresKubernetes.FindStringSubmatch(byPath[rootModule])
	if match == nil {
		return []string{rootModule + ": requires no version of k8s.io/kubernetes"}
	}
	version := match[1]
	var findings []string
	add := func(f string, line int, format string, args ...any) {
		findings = append(findings, fmt.Sprintf("%s:%d: ", f, line)+fmt.Sprintf(format, args...)+"; use make update-upstream")
	}
	staging := "v0." + strings.TrimPrefix(version, "v1.")
	for _, module := range []string{rootModule, libraryModule, exampleModule, e2eModule} {
		for i, line := range strings.Split(byPath[module], "\n") {
			if m := requiresStaging.FindStringSubmatch(line); m != nil && m[2] != staging && minor(m[2], 0) == minor(staging, 0) {
				add(module, i+1, "requires %s %s, not %s", m[1], m[2], staging)
			}
		}
	}
	if m := requiresKubernetes.FindStringSubmatch(byPath[e2eModule]); m != nil && m[1] != version {
		add(e2eModule, 1, "requires k8s.io/kubernetes %s, not %s", m[1], version)
	}
	if m := newestHeading.FindStringSubmatch(byPath[changelog]); m == nil || !strings.HasPrefix(m[1], version+"+") {
		add(changelog, 1, "the newest heading is not of %s", version)
	}
	previous := requiresKubernetes.FindStringSubmatch(byPath[previousModule])
	for _, m := range declaredVersion.FindAllStringSubmatch(byPath[frameworkFile], -1) {
		want := version
		if m[1] == "Previous" && previous != nil {
			want = previous[1]
		}
		if m[2] != want {
			add(frameworkFile, 1, "%sVersion is %s, not %s", m[1], m[2], want)
		}
	}
	for _, f := range files {
		if f.path != "Makefile" && f.path != "README.md" && (!strings.HasPrefix(f.path, "docs/") || !strings.HasSuffix(f.path, ".md")) || strings.HasPrefix(f.path, "docs/keps/") || strings.HasPrefix(f.path, "docs/benchmarks/") {
			continue
		}
		for i, line := range strings.Split(string(f.data), "\n") {
			for _, m := range patchVersion.FindAllStringSubmatch(line, -1) {
				if "v"+m[1] == minor(version, 1) && "v"+m[1]+"."+m[2] != version {
					add(f.path, i+1, "names %s, not %s", m[0], version)
				}
				if f.path == "Makefile" {
					add(f.path, i+1, "names %s, which go.mod says", m[0])
				}
			}
		}
	}
	return findings
}

// minor is a version without its patch release; staging modules have 0 for 1.
func minor(version string, major int) string {
	return fmt.Sprintf("v%d.%s", major, strings.Split(version, ".")[1])
}
