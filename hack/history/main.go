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

// Package main writes the data of pkg/featurelifecycle/history: the gates of each component and minor version
// of Kubernetes (hack/update-history.sh). It finds in upstream's modules how each binary fills its feature
// gate, compiles programs that fill one in the same way, and asks them.
//
// It reads the releases that the data names, this build's and the one that pkg/featurelifecycle/ahead has; without -all only
// those that the data does not have yet.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"k8s.io/kubernetes-features/pkg/featurelifecycle/ahead"
	"k8s.io/kubernetes-features/pkg/featurelifecycle/history"
)

// dataFile is the file that is read and written.
const dataFile = "pkg/featurelifecycle/history/gates.json"

func main() {
	all := flag.Bool("all", false, "Read all versions again.")
	releases := flag.String("releases", "", "Releases to read beside those of the data, separated by commas, for example v1.30.14. Each replaces the one of its minor version.")
	replace := flag.String("replace", "", "Other modules to build with instead of those that a release requires and that cannot be had, separated by commas, as <path>=<path>@<version>. No gate depends on them.")
	verify := flag.Bool("verify", false, "Compare the data with the gates of this build instead. It needs no network.")
	flag.Parse()
	var err error
	if *verify {
		err = verifyFile(dataFile)
	} else {
		err = update(context.Background(), os.Stdout, dataFile, options{releases: list(*releases), replace: list(*replace), all: *all})
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "Error:", err)
		os.Exit(1)
	}
}

// options are what update reads, and how.
type options struct {
	releases, replace []string
	all               bool
}

// list returns the items of a flag.
func list(text string) []string {
	return strings.FieldsFunc(text, func(r rune) bool { return r == ',' })
}

// update writes the data with the gates of all releases to read.
func update(ctx context.Context, out io.Writer, file string, o options) error {
	before, err := os.ReadFile(file)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	source, known := map[string]string{}, map[string]facts{}
	if err == nil {
		old, err := history.Parse(before)
		if err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		for _, version := range old.Versions() {
			source[version] = old.Source(version)
		}
		known = factsOf(old)
	}
	followed, err := followed(ctx)
	if err != nil {
		return err
	}
	wanted := map[string]string{}
	for _, r := range append(followed, o.releases...) {
		minor, err := minorOf(r)
		if err != nil {
			return err
		}
		wanted[minor] = r
	}
	for minor, r := range source {
		if wanted[minor] == "" {
			wanted[minor] = r
		}
	}
	for _, minor := range slices.Sorted(maps.Keys(wanted)) {
		r := wanted[minor]
		if source[minor] == r && !o.all {
			continue
		}
		fmt.Fprintf(os.Stderr, "Reading the gates of %s\n", r)
		if known[minor], err = read(ctx, r, o.replace); err != nil {
			return fmt.Errorf("%s: %w", r, err)
		}
	}
	h, err := join(wanted, known)
	if err != nil {
		return err
	}
	data, err := h.Marshal()
	if err != nil {
		return err
	}
	_, err = out.Write(data)
	return err
}

// followed returns the releases that the data has to have: this build's, and the one that is read ahead.
func followed(ctx context.Context) ([]string, error) {
	output, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Version}}", kubernetesModule).Output()
	if err != nil {
		return nil, fmt.Errorf("version of %s in go.mod: %w", kubernetesModule, err)
	}
	next, err := ahead.Next()
	if err != nil {
		return nil, err
	}
	return []string{strings.TrimSpace(string(output)), next.Version()}, nil
}

// minorOf returns 1.37 of v1.37.2.
func minorOf(release string) (string, error) {
	text, ok := strings.CutPrefix(release, "v1.")
	minor, _, found := strings.Cut(text, ".")
	if !ok || !found {
		return "", fmt.Errorf("%q is no release of Kubernetes; write it like v1.37.2", release)
	}
	return "1." + minor, nil
}

// verifyFile compares a file with this build.
func verifyFile(file string) error {
	data, err := os.ReadFile(filepath.Clean(file))
	if err != nil {
		return err
	}
	h, err := history.Parse(data)
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	written, err := h.Marshal()
	if err != nil {
		return err
	}
	if string(written) != string(data) {
		return fmt.Errorf("%s was edited by hand; write it by hack/update-history.sh", file)
	}
	return verify(context.Background(), h)
}
