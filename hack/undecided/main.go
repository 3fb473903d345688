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

// Package main lists what a person has to decide after a move to another minor version of
// Kubernetes: gates without verdict, verdicts without gate, fields that no verdict covers,
// priorities that collide, and pages that name the versions before. It runs the tests that
// compare this repository with upstream, and prints what they find as a plain list.
// hack/update-upstream.sh runs it; "go run ./hack/undecided" repeats it at any time.
//
// It exits with 0 when nothing is undecided, with 1 when something is, and with 2 when it
// could not find out.
package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
)

// question is one that tests answer.
type question struct {
	// heading is that of the list.
	heading string
	// pkg is the directory of the tests, below the root of the repository.
	pkg string
	// tests are their names. A name that ends with an asterisk stands for all that
	// begin with it; each has to stand for a test.
	tests []string
}

const catalog = "pkg/featurelifecycle/catalog"

// questions are those of a new minor version. A test that compares with upstream and
// leaves its finding to a person belongs here: a test of this package finds what is missing.
var questions = []question{
	{"Gates without verdict, verdicts without gate", catalog, []string{"TestEveryOpenGateHasAVerdict", "TestDeclarationsAreValidAndSorted"}},
	{"Gates that nodes write, without a trial", catalog, []string{"TestGatesOfNodesHaveTrials"}},
	{"Fields and collections that no verdict covers", catalog, []string{
		"TestDropCodeIsCovered", "TestGatedStorageIsCovered", "TestMarkersAreCovered", "TestMarkedValuesAreCovered", "TestMarkersNameGates", "TestNestedTypes",
		"TestUnfinishedCollectionsHaveAVerdict",
	}},
	{"Verdicts whose fields are gone, or that other gates keep", catalog, []string{"TestPathsExist", "TestFieldsInVersions", "TestRemaindersWithAnotherGate"}},
	{"Verdicts without fixture", catalog, []string{"TestStoredFieldsHaveFixtures"}},
	{"Verdicts between versions", catalog, []string{"TestGateChanges*", "TestVersionBoundariesAreWithinReach"}},
	{"What one of two versions does not read of the other's", "hack/renamed", []string{"TestCatalogKnowsLosses*", "TestStorageVersionsOfBothSides"}},
	{"APIs that gates need, and rules of bootstrap roles", catalog, []string{
		"TestAPIsMatchBinary", "TestAPIVersionsAreThoseOfBinaries", "TestNeededAPIsNotServedByDefault", "TestBootstrapRBAC",
	}},
	{"Gates that examples turn on", "test/utils/examplegates", []string{"TestExamplesAreOffByDefault", "TestEmulatedVersionsKnowTheGates", "TestExamplesDeclareWhatTheyNeed"}},
	{"Older versions that tests run", "hack/undecided", []string{"TestOlderVersionsOfTests", "TestCommitOfThePreviousVersion"}},
	{"Fields of published documents", "cmd/kube-apiserver/controlplane/apidocs", []string{"TestMarkers", "TestValuesOfEnums"}},
	{"Priorities of groups in discovery", "cmd/kube-apiserver/controlplane", []string{"TestPrioritiesMatchUpstream", "TestEveryGroupHasAPriority"}},
	{"Flags of kube-apiserver", "cmd/kube-apiserver/controlplane", []string{"TestAllOfUpstreamsFlagsAreThere", "TestTheCommandTakesUpstreamsFlags"}},
	{"Upstream's files that are read: lists of gates", "hack/ahead", []string{"TestReadOfThisVersion"}},
	{"History of gates: what upstream changed in the past of a gate, how binaries fill their gates", "hack/history", []string{
		"TestDataAgreesWithThisBuild", "TestEmulatedVersions", "TestRegistrationsOfThisVersion",
	}},
	{"Upstream's files that are read: published documents", "hack/apispec", []string{"TestEncodingIsUpstreams"}},
	{"What pages quote of upstream", "docs", []string{"TestFilesOfUpstreamThatChange", "TestKEPNamesMetrics", "TestKEPNamesThings", "TestPagesTurnOnExampleGates"}},
	{"Landing in a fork", "hack/fork", []string{"TestGate", "TestGroupVersions", "TestRules", "TestRestrictions", "TestModules", "TestSums", "TestDirect"}},
}

func main() {
	from := flag.String("from", "", "The version before, for example v1.36.3: files that name its minor version or one of the three below are listed, too.")
	flag.Parse()
	undecided, err := run(context.Background(), ".", *from, flag.Args(), os.Stdout)
	switch {
	case err != nil:
		fmt.Fprintln(os.Stderr, "undecided:", err)
		os.Exit(2)
	case undecided:
		os.Exit(1)
	}
}

// run prints the lists, and returns whether one has an element.
func run(ctx context.Context, root, from string, args []string, out io.Writer) (bool, error) {
	if len(args) > 0 {
		return false, fmt.Errorf("%q is no flag; usage: go run ./hack/undecided [-from v1.36.3], in the root of the repository", args)
	}
	var pages []list
	if from != "" {
		found, err := pagesNaming(ctx, root, from)
		if err != nil {
			return false, err
		}
		pages = append(pages, found)
	}
	read, err := runTests(ctx, root, questions)
	if err != nil {
		return false, err
	}
	lists, err := read.answer(questions)
	if err != nil {
		return false, err
	}
	return printLists(out, append(lists, pages...)), nil
}

// list is a heading with what is to be decided.
type list struct {
	heading  string
	findings []string
}

// printLists writes all lists, also those without findings.
func printLists(out io.Writer, lists []list) (undecided bool) {
	for _, l := range lists {
		if len(l.findings) == 0 {
			fmt.Fprintf(out, "%s: nothing to decide\n", l.heading)
			continue
		}
		undecided = true
		fmt.Fprintf(out, "%s: %d\n", l.heading, len(l.findings))
		for _, finding := range l.findings {
			fmt.Fprintf(out, "  - %s\n", strings.ReplaceAll(finding, "\n", "\n    "))
		}
	}
	return undecided
}

// runTests runs all tests of the questions and reads their events.
func runTests(ctx context.Context, root string, all []question) (outcomes, error) {
	var packages, names []string
	for _, q := range all {
		if pkg := "./" + q.pkg; !slices.Contains(packages, pkg) {
			packages = append(packages, pkg)
		}
		for _, name := range q.tests {
			if prefix, ok := strings.CutSuffix(name, "*"); ok {
				name = prefix + ".*"
			}
			names = append(names, name)
		}
	}
	// A result from the cache would be the same, but for tests that read files which
	// the go command does not see.
	args := append([]string{"test", "-count=1", "-json", "-run", "^(" + strings.Join(names, "|") + ")$"}, packages...)
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = root
	var output, complaints bytes.Buffer
	cmd.Stdout, cmd.Stderr = &output, &complaints
	err := cmd.Run()
	// Tests that fail make it exit with 1; what failed is in the events.
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		return outcomes{}, err
	}
	read, readErr := readEvents(&output)
	if readErr != nil {
		return outcomes{}, readErr
	}
	if len(read.Ended) == 0 {
		if err == nil {
			err = errors.New("no test ran")
		}
		return outcomes{}, fmt.Errorf("go %s: %w: %s", strings.Join(args, " "), err, strings.TrimSpace(complaints.String()))
	}
	return read, nil
}
