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

package conformance

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"k8s.io/kubernetes-features/test/e2e_kind/kindcluster"
)

// workers is how many nodes take Pods.
const workers = 2

// Variables that change what runs.
const (
	// labelsVariable has ginkgo's filter of labels.
	labelsVariable = "LABELS"
	// focusVariable has an expression that names of specs have to match.
	focusVariable = "FOCUS"
	// processesVariable has the number of specs that run at a time.
	processesVariable = "PROCESSES"
)

// TestConformance runs the same specs on both clusters, one after the other, and writes the
// comparison to _output/kind/conformance. It fails for what passes on upstream's only, for
// what did not run, and for what fails on both and is no known failure.
func TestConformance(t *testing.T) {
	kindcluster.Require(t)
	dir := kindcluster.Out(t, "kind", "conformance")
	run := &run{
		e2e: kindcluster.Out(t, "kind", "programs", "e2e.test"), ginkgo: kindcluster.Out(t, "kind", "programs", "ginkgo"),
		dir: dir, labels: os.Getenv(labelsVariable), focus: os.Getenv(focusVariable), processes: os.Getenv(processesVariable),
	}
	if run.labels == "" {
		t.Fatalf("%s is empty; \"make kind-conformance\" sets it", labelsVariable)
	}
	if run.processes == "" {
		run.processes = strconv.Itoa(2 * runtime.NumCPU())
	}
	selected := run.list(t)
	page := Page{Date: time.Now().UTC().Format(time.DateOnly), Labels: run.labels, Focus: run.focus, Workers: workers, Missing: kindcluster.MissingImages()}
	var planned []string
	ours := run.on(t, "ours", kindcluster.Config{Workers: workers, ControlPlanes: 1}, func(c *kindcluster.Cluster) {
		place := Place{Missing: page.Missing, DummyDevices: hasDummyDevices(t, c)}
		rows := counting(unable, place)
		planned, page.Left = leaveOut(selected, rows)
		for _, r := range rows {
			run.skip = append(run.skip, r.Spec)
		}
		page.Known, page.Ours = counting(knownFailures, place), version(t, c)
	})
	other := run.on(t, "upstream", kindcluster.Config{Workers: workers, ControlPlanes: 1, Image: kindcluster.SameImage(t)}, func(c *kindcluster.Cluster) {
		page.Other = version(t, c)
	})

	page.Comparison = Compare(planned, ours, other)
	var text bytes.Buffer
	if err := page.Markdown(&text); err != nil {
		t.Fatal(err)
	}
	t.Logf("\n%s", text.String())
	if err := os.WriteFile(filepath.Join(dir, "report.md"), text.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, problem := range page.Comparison.Problems(planned, page.Known) {
		t.Error(problem)
	}
}

// version is that of a cluster's server.
func version(t *testing.T, c *kindcluster.Cluster) string {
	t.Helper()
	v, err := c.Kube.Discovery().ServerVersion()
	if err != nil {
		t.Fatalf("asking the server for its version: %v", err)
	}
	return v.GitVersion
}

// hasDummyDevices adds such a device to a node, as a privileged Pod does.
func hasDummyDevices(t *testing.T, c *kindcluster.Cluster) bool {
	t.Helper()
	const script = `ip link add conformance type dummy 2>&1 && ip link delete conformance && echo added`
	out := c.Exec(c.ControlPlanes[0], "sh", "-c", script+" || true")
	added := strings.HasSuffix(out, "added\n")
	if !added {
		t.Logf("the node has no dummy network devices: %s", out)
	}
	return added
}

// run is what both runs have in common.
type run struct {
	// e2e has the specs, and ginkgo runs them.
	e2e, ginkgo string
	// dir is where reports are written.
	dir string
	// labels and focus, if any, select specs; processes run at a time.
	labels, focus, processes string
	// skip are expressions of specs that are left out.
	skip []string
}

// list returns the specs that are selected, without running any. No expression of a table
// may match none of all specs.
func (r *run) list(t *testing.T) []string {
	t.Helper()
	dir := t.TempDir()
	args := append(r.selection("--ginkgo."), "--ginkgo.dry-run", "--report-dir="+dir, "--provider=skeleton", "--kubeconfig=none")
	if out, err := exec.CommandContext(t.Context(), r.e2e, args...).CombinedOutput(); err != nil {
		t.Fatalf("listing upstream's specs: %v\n%s", err, out)
	}
	report := readReport(t, dir)
	selected := slices.Sorted(maps.Keys(report.Specs))
	for _, expression := range outdated(slices.Concat(unable, knownFailures), slices.Concat(selected, report.PassedOver)) {
		t.Errorf("upstream has no spec that matches %q: remove the row from its table", expression)
	}
	return selected
}

// selection are the flags that say which specs run.
func (r *run) selection(prefix string) []string {
	args := []string{prefix + "label-filter=" + r.labels}
	if r.focus != "" {
		args = append(args, prefix+"focus="+r.focus)
	}
	for _, expression := range r.skip {
		args = append(args, prefix+"skip="+expression)
	}
	return args
}

// on runs the specs on a new cluster, after ready was called with it.
func (r *run) on(t *testing.T, name string, config kindcluster.Config, ready func(*kindcluster.Cluster)) (specs Specs) {
	t.Helper()
	t.Run(name, func(t *testing.T) {
		c := kindcluster.Create(t, config)
		c.LoadTestImages()
		c.ServeTestImages()
		ready(c)
		dir := filepath.Join(r.dir, name)
		if err := os.RemoveAll(dir); err != nil {
			t.Fatal(err)
		}
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		log, err := os.Create(filepath.Join(dir, "output.txt"))
		if err != nil {
			t.Fatal(err)
		}
		defer log.Close()
		// The report with attempts has all output of all specs, too.
		attempts := t.TempDir()
		args := append(r.selection("--"), "--procs="+r.processes, "--timeout=3h", "--flake-attempts=2", "--no-color", "--silence-skips",
			"--output-dir="+attempts, "--json-report="+attemptsFile, r.e2e, "--",
			"--provider=local", "--kubeconfig="+kindcluster.Kubeconfig(t), "--kubectl-path="+r.kubectl(t, c), "--report-dir="+dir,
			"--num-nodes="+strconv.Itoa(workers), "--dump-logs-on-failure=false", "--prepull-images=false")
		cmd := exec.CommandContext(t.Context(), r.ginkgo, args...)
		cmd.Stdout, cmd.Stderr = log, log
		t.Logf("running upstream's specs, %s at a time; see %s", r.processes, log.Name())
		err = cmd.Run()
		var exit *exec.ExitError
		if err != nil && !errors.As(err, &exit) {
			t.Fatalf("running upstream's specs: %v", err)
		}
		specs = readReport(t, dir).Specs
		f, err := os.Open(filepath.Join(attempts, attemptsFile))
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		if err := ReadAttempts(f, specs); err != nil {
			t.Fatal(err)
		}
	})
	if specs == nil {
		t.FailNow()
	}
	return specs
}

// attemptsFile is the name of ginkgo's own report.
const attemptsFile = "attempts.json"

// kubectl is that of the cluster's nodes.
func (r *run) kubectl(t *testing.T, c *kindcluster.Cluster) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "kubectl")
	c.CopyFrom(c.ControlPlanes[0], "/usr/bin/kubectl", file)
	return file
}

// readReport reads the one report in a folder.
func readReport(t *testing.T, dir string) Report {
	t.Helper()
	var found Report
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !strings.HasPrefix(d.Name(), "junit") || filepath.Ext(path) != ".xml" {
			return err
		}
		if found.Specs != nil {
			return fmt.Errorf("there is more than one report in %s", dir)
		}
		f, err := os.Open(path)
		if err != nil {
			return err
		}
		defer f.Close()
		found, err = ReadJUnit(f)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if found.Specs == nil {
		t.Fatalf("upstream's tests wrote no report to %s", dir)
	}
	return found
}
