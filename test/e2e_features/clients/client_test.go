//go:build linux

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

package clients

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"k8s.io/kubernetes-features/test/e2e_features/framework"
)

// client is one way to manage objects.
type client struct {
	// name is the client's, the namespace of its objects and the name of its transcript.
	name string
	// before are actions that it does before it applies a manifest. The action apply applies
	// it, and revert brings the manifest of the first apply back, if the client keeps that
	// itself.
	before        []string
	apply, revert string
	// compare are ways to compare a manifest with the cluster.
	compare []comparison
	// onlyChanges is set for a client that asks the server first what would change, and
	// applies nothing else.
	onlyChanges bool
	// fallsBack is set if apply is client-side and takes types that are older than restart
	// rules where it finds no others.
	fallsBack bool
	// run does an action, and returns what the client printed.
	run func(t *testing.T, action, file string) []string
}

// comparison is an action that compares a manifest with the cluster. It asks the server what it
// would store, or computes that itself.
type comparison struct {
	action     string
	asksServer bool
	// parses is set if it parses objects by the published documents, older if by types that
	// are older than restart rules.
	parses, older bool
	// seesGenerations is set if another generation is a difference (settles).
	seesGenerations bool
}

// built is a program from a directory of "make client-drivers" or "make upstream-kubectls".
// The test is skipped where it was not built, unless nothing may be left out.
func built(t *testing.T, target string, path ...string) string {
	t.Helper()
	file := filepath.Join(append([]string{filepath.Dir(framework.BinDir(t))}, path...)...)
	if _, err := os.Stat(file); err != nil {
		stop := t.Skipf
		if os.Getenv("KUBE_FEATURES_REQUIRE_ALL") != "" {
			stop = t.Fatalf
		}
		stop("the client is not there: %v; build it with \"make %s\"", err, target)
	}
	return file
}

// older is how many minor versions of kubectl are tried before the server's own.
const older = 3

// kubectl is the program of n minor versions before the server's, and what it is called
// here.
func (w *world) kubectl(t *testing.T, n int) (name, binary string) {
	t.Helper()
	info, err := w.Kube.Discovery().ServerVersion()
	if err != nil {
		t.Fatalf("reading the server's version: %v", err)
	}
	minor, err := strconv.Atoi(info.Minor)
	if err != nil {
		t.Fatalf("the server's minor version is %q: %v", info.Minor, err)
	}
	name = "kubectl-n"
	if n > 0 {
		name = fmt.Sprintf("kubectl-n-%d", n)
	}
	return name, built(t, "upstream-kubectls", "kubectls", fmt.Sprintf("%s.%d", info.Major, minor-n), "kubectl")
}

// clients are those of this test.
func (w *world) clients(t *testing.T) []client {
	t.Helper()
	kubeconfig := w.Kubeconfig("admin")
	var all []client
	for n := range older + 1 {
		name, kubectl := w.kubectl(t, n)
		for _, by := range []struct {
			name  string
			flags []string
		}{{name: name}, {name: name + "-server-side", flags: []string{"--server-side"}}} {
			home := t.TempDir()
			all = append(all, client{name: by.name, compare: []comparison{{action: "diff", asksServer: true}}, apply: "apply", run: func(t *testing.T, action, file string) []string {
				return runKubectl(t, home, kubectl, append([]string{"--kubeconfig=" + kubeconfig, action, "-f", file}, by.flags...)...)
			}})
		}
	}
	structured := comparison{action: "diff-structured", older: true}
	for _, c := range []client{
		{name: "client-go", apply: "apply", before: []string{"get", "extract", "extract-unstructured", "update"}},
		{name: "controller-runtime", apply: "apply", before: []string{"get"}},
		{name: "helm-3", apply: "upgrade", revert: "rollback", before: []string{"dry-run"}},
		{name: "helm-4", apply: "upgrade", revert: "rollback", before: []string{"dry-run"}},
		{name: "flux", apply: "apply", onlyChanges: true, compare: []comparison{{action: "diff", asksServer: true}}},
		{name: "argo-cd", apply: "apply", fallsBack: true, compare: []comparison{{action: "diff"}, structured}},
		{name: "argo-cd-server-side", apply: "apply-server-side", compare: []comparison{
			structured, {action: "diff-server-side", asksServer: true, parses: true}, {action: "diff-include-webhooks", asksServer: true, seesGenerations: true},
		}},
	} {
		binary := driverOf(t, strings.TrimSuffix(c.name, "-server-side"))
		c.run = func(t *testing.T, action, file string) []string {
			return texts(runDriver(t, binary, "-kubeconfig="+kubeconfig, "-namespace="+c.name, "-f="+file, action))
		}
		all = append(all, c)
	}
	return all
}

// driverOf is the program of a client.
func driverOf(t *testing.T, name string) string {
	t.Helper()
	return built(t, "client-drivers", "clients", strings.ReplaceAll(name, "-", ""))
}

// runDriver runs an action of a driver to its end.
func runDriver(t *testing.T, binary string, args ...string) []line {
	t.Helper()
	var complaints bytes.Buffer
	cmd := exec.CommandContext(t.Context(), binary, args...)
	cmd.Stderr = &complaints
	output, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s%s", filepath.Base(binary), args[len(args)-1], err, output, complaints.String())
	}
	var lines []line
	for decoder := json.NewDecoder(bytes.NewReader(output)); ; {
		var l line
		if err := decoder.Decode(&l); errors.Is(err, io.EOF) {
			return lines
		} else if err != nil {
			t.Fatalf("%s %s printed what is no line: %v\n%s", filepath.Base(binary), args[len(args)-1], err, output)
		}
		lines = append(lines, l)
	}
}

// Parts of what clients print that differ from run to run.
var (
	// undeclared are the fields that a parser does not find in its types. It visits the fields
	// of a container in any order. Restart rules, which come last here, end the visit.
	undeclared = regexp.MustCompile(`\s*(?:errors:)?(?:\s*\.\S+: field not declared in schema)*\s*(\.\S+: field not declared in schema)`)
	// patching has objects with times and versions, and the name of a file.
	patching = regexp.MustCompile(`(?s)"/[^"]*": creating patch with:.*\nfor:`)
)

func texts(lines []line) []string {
	var all []string
	for _, l := range lines {
		all = append(all, patching.ReplaceAllString(undeclared.ReplaceAllString(l.String(), " $1"), "FILE: creating a patch"))
	}
	return all
}

// changed are the lines of a diff that one side does not have.
var changed = regexp.MustCompile(`^[-+] `)

// runKubectl runs kubectl, and returns its warnings after what it printed. A diff is cut down
// to the lines that differ.
func runKubectl(t *testing.T, home, binary string, args ...string) []string {
	t.Helper()
	var warnings bytes.Buffer
	cmd := exec.CommandContext(t.Context(), binary, args...)
	cmd.Stderr = &warnings
	// Its cache of discovery lasts, as that of a user. Other clusters may have had this address.
	cmd.Env = append(os.Environ(), "HOME="+home)
	output, err := cmd.Output()
	isDiff := args[1] == "diff"
	var exit *exec.ExitError
	if err != nil && (!isDiff || !errors.As(err, &exit) || exit.ExitCode() != 1) {
		t.Fatalf("kubectl %s: %v\n%s%s", strings.Join(args[1:], " "), err, output, warnings.String())
	}
	var lines []string
	for text := range strings.Lines(string(output)) {
		if !isDiff || changed.MatchString(text) {
			lines = append(lines, strings.TrimSpace(text))
		}
	}
	for text := range strings.Lines(warnings.String()) {
		lines = append(lines, fmt.Sprintf("stderr: %s", strings.TrimSpace(text)))
	}
	return lines
}
