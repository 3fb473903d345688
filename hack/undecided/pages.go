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
	"context"
	"errors"
	"fmt"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
)

var (
	patchRelease = regexp.MustCompile(`^v1\.([0-9]+)\.[0-9]+$`)
	// matches is a line of "git grep -c".
	matches = regexp.MustCompile(`^(.+):(\d+)$`)
)

// reach is how many minor versions below the one before are named in pages and tests: servers
// emulate these, and kubelets may be of them.
const reach = 3

// named are what people read or see, tools, and tests whose clusters move between versions.
// Other tests take versions as examples, and benchmarks were measured on theirs.
var named = []string{
	"*.md", "Makefile", "*.go", "*.sh", "test/e2e_features", ":!docs/benchmarks", ":!findings", ":(exclude,glob)**/zz_generated*", ":(exclude,glob)build/**/*_test.go",
	":(exclude,glob)cmd/**/*_test.go", ":(exclude,glob)hack/**/*_test.go", ":(exclude,glob)pkg/**/*_test.go", ":(exclude,glob)staging/**/*_test.go", ":(exclude,glob)test/benchmark/**/*_test.go",
	":(exclude,glob)test/external/**/*_test.go", ":(exclude,glob)test/utils/**/*_test.go",
}

// pagesNaming lists the files that name the minor version before or those below it within
// reach. Whether a sentence is about the version that shipped, or stays true, is for people to
// decide.
func pagesNaming(ctx context.Context, root, from string) (list, error) {
	match := patchRelease.FindStringSubmatch(from)
	if match == nil {
		return list{}, fmt.Errorf("-from is %q, not a patch release such as v1.36.3", from)
	}
	minor, err := strconv.Atoi(match[1])
	if err != nil {
		return list{}, err
	}
	var minors []string
	for below := range reach + 1 {
		minors = append(minors, strconv.Itoa(minor-below))
	}
	l := list{heading: fmt.Sprintf("Lines that name 1.%d to 1.%d, by file", minor-reach, minor)}
	args := append([]string{"grep", "-cwE", `v?1\.(` + strings.Join(minors, "|") + `)(\.[0-9]+)?`, "--"}, named...)
	cmd := exec.CommandContext(ctx, "git", args...)
	cmd.Dir = root
	output, err := cmd.Output()
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.ExitCode() == 1 {
		return l, nil
	}
	if errors.As(err, &exit) {
		return l, fmt.Errorf("git grep: %w: %s", err, strings.TrimSpace(string(exit.Stderr)))
	}
	if err != nil {
		return l, err
	}
	for line := range strings.Lines(string(output)) {
		match := matches.FindStringSubmatch(strings.TrimSpace(line))
		if match == nil {
			return l, fmt.Errorf("git grep -c printed %q", line)
		}
		l.findings = append(l.findings, match[1]+": "+match[2])
	}
	return l, nil
}
