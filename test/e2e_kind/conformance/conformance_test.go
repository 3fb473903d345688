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
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"k8s.io/kubernetes-features/test/e2e_kind/kindcluster"
)

// labels select what is compared: what every cluster has to do, in the groups whose
// components this repository changes or which run on nodes.
const labels = "(Conformance || NodeConformance && !Slow) && !Disruptive && (sig-apps || sig-auth || sig-network || sig-node || sig-storage)"

// workers is how many nodes take Pods.
const workers = 2

// Variables that change what runs.
const (
	// focusVariable has an expression that names of specs have to match.
	focusVariable = "FOCUS"
	// processesVariable has the number of specs that run at a time.
	processesVariable = "PROCESSES"
)

// TestConformance runs the same specs on both clusters, one after the other. It fails
// for what fails on ours only, and writes the comparison to _output/kind/conformance.
func TestConformance(t *testing.T) {
	kindcluster.Require(t)
	dir := kindcluster.Out(t, "kind", "conformance")
	run := &run{
		e2e: kindcluster.Out(t, "kind", "programs", "e2e.test"), ginkgo: kindcluster.Out(t, "kind", "programs", "ginkgo"),
		dir: dir, focus: os.Getenv(focusVariable), processes: os.Getenv(processesVariable),
	}
	if run.processes == "" {
		run.processes = strconv.Itoa(2 * runtime.NumCPU())
	}
	left := run.leaveOut(t)
	ours := run.on(t, "ours", kindcluster.Config{Workers: workers, ControlPlanes: 1})
	other := run.on(t, "upstream", kindcluster.Config{Workers: workers, ControlPlanes: 1, Image: kindcluster.SameImage(t)})

	compared := Compare(ours, other)
	var text bytes.Buffer
	if err := compared.Markdown(&text, left); err != nil {
		t.Fatal(err)
	}
	t.Logf("\n%s", text.String())
	if err := os.WriteFile(filepath.Join(dir, "report.md"), text.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, d := range compared.OnlyOurs {
		t.Errorf("passes on upstream's binaries and not on ours: %s: %s", d.Name, d.Ours.Message)
	}
	for _, d := range compared.Different {
		t.Errorf("ends as %q on ours and as %q on upstream's: %s", d.Ours.Status, d.Other.Status, d.Name)
	}
}

// run is what both runs have in common.
type run struct {
	// e2e has the specs, and ginkgo runs them.
	e2e, ginkgo string
	// dir is where reports are written.
	dir string
	// focus, if any, and processes are as given.
	focus, processes string
	// skip are expressions of specs that are left out.
	skip []string
}

// leaveOut lists the specs without running any, and finds those that cannot run here.
// An expression that matches none of all specs is out of date.
func (r *run) leaveOut(t *testing.T) []LeftOut {
	t.Helper()
	specs := r.list(t)
	var left []LeftOut
	for _, e := range unable(kindcluster.MissingImages()) {
		l := LeftOut{Why: e.why}
		matches := regexp.MustCompile(e.spec)
		for name := range specs {
			if matches.MatchString(name) {
				l.Specs = append(l.Specs, name)
			}
		}
		if len(l.Specs) == 0 && r.focus == "" {
			t.Errorf("no spec matches %q: remove it from the list of those that are left out", e.spec)
		}
		if len(l.Specs) > 0 {
			left = append(left, l)
			r.skip = append(r.skip, e.spec)
		}
	}
	return left
}

// list returns the specs that the labels select.
func (r *run) list(t *testing.T) Specs {
	t.Helper()
	dir := t.TempDir()
	args := append(r.selection("--ginkgo."), "--ginkgo.dry-run", "--report-dir="+dir, "--provider=skeleton", "--kubeconfig=none")
	if out, err := exec.CommandContext(t.Context(), r.e2e, args...).CombinedOutput(); err != nil {
		t.Fatalf("listing upstream's specs: %v\n%s", err, out)
	}
	return readReport(t, dir)
}

// selection are the flags that say which specs run.
func (r *run) selection(prefix string) []string {
	args := []string{prefix + "label-filter=" + labels}
	if r.focus != "" {
		args = append(args, prefix+"focus="+r.focus)
	}
	for _, expression := range r.skip {
		args = append(args, prefix+"skip="+expression)
	}
	return args
}

// on runs the specs on a new cluster.
func (r *run) on(t *testing.T, name string, config kindcluster.Config) (specs Specs) {
	t.Helper()
	t.Run(name, func(t *testing.T) {
		c := kindcluster.Create(t, config)
		c.LoadTestImages()
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
		args := append(r.selection("--"), "--procs="+r.processes, "--timeout=3h", "--flake-attempts=2", "--no-color", "--silence-skips", r.e2e, "--",
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
		specs = readReport(t, dir)
	})
	if specs == nil {
		t.FailNow()
	}
	return specs
}

// kubectl is that of the cluster's nodes.
func (r *run) kubectl(t *testing.T, c *kindcluster.Cluster) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "kubectl")
	c.CopyFrom(c.ControlPlanes[0], "/usr/bin/kubectl", file)
	return file
}

// readReport reads the one report in a folder.
func readReport(t *testing.T, dir string) Specs {
	t.Helper()
	var found Specs
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !strings.HasPrefix(d.Name(), "junit") || filepath.Ext(path) != ".xml" {
			return err
		}
		if found != nil {
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
	if found == nil {
		t.Fatalf("upstream's tests wrote no report to %s", dir)
	}
	return found
}
