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
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// build has the inputs of a target of the Makefile that shards need, so that a
// shard runs when they have changed.
type build struct {
	// Packages are patterns below the root, whose dependencies count.
	Packages []string
	// Inputs are files and directories.
	Inputs []string
}

const lintScript = "hack/verify-golangci-lint.sh"

var builds = map[string]build{
	"all":                {Packages: []string{"./cmd/...", "./test/utils/localcluster/kubemark"}, Inputs: []string{"cmd"}},
	"tools":              {Inputs: []string{"hack/tools"}},
	"upstream":           {Inputs: []string{"go.mod", "go.sum", "go.work", "go.work.sum"}},
	"upstream-previous":  {Inputs: []string{"hack/previous"}},
	"upstream-kubelets":  {Inputs: []string{"hack/previous", "hack/kubelets"}},
	"upstream-servers":   {Inputs: []string{"hack/previous", "hack/kubelets"}},
	"upstream-kubectls":  {Inputs: []string{"go.mod", "go.sum", "hack/previous", "hack/kubelets"}},
	"client-drivers":     {Inputs: []string{"test/external/clients"}},
	"features-previous":  {Inputs: []string{"hack/previous", "hack/build-previous.sh"}},
	"_output/tools/kind": {Inputs: []string{"hack/tools"}},
	"krew-tools":         {Inputs: []string{"hack/tools"}},
	"_output/debian":     {},
	"lint-external":      {Inputs: []string{".golangci.yml", "hack/tools", lintScript, "test/external"}},
	"lint-clients":       {Inputs: []string{".golangci.yml", "hack/tools", lintScript, "test/external/clients"}},
	"lint-kind":          {Inputs: []string{".golangci.yml", "hack/tools", lintScript, "build/kind", "build/release"}},
	"lint-release":       {Inputs: []string{".golangci.yml", "hack/tools", lintScript, "build/release"}},
	"verify-modules-of-long-tests": {
		Inputs: []string{"hack/verify-modules.sh", "hack/e2e", "hack/previous", "hack/kubelets", "build/kind", "build/release", "test/external"},
	},
}

// build makes what the shards need, each once. It returns the targets that failed.
func (r *runner) build(ctx context.Context, shards []Shard) map[string]bool {
	var targets []string
	for _, s := range shards {
		for _, need := range s.Needs {
			if !slices.Contains(targets, need) {
				targets = append(targets, need)
			}
		}
	}
	failed := map[string]bool{}
	for _, target := range targets {
		if ctx.Err() != nil {
			failed[target] = true
			continue
		}
		begun := r.now()
		r.progress("build", target, "")
		output, err := r.make(ctx, target)
		row := row{name: "make " + target, result: "built", seconds: r.now().Sub(begun)}
		if err != nil {
			failed[target], row.result, row.notes = true, failedResult, err.Error()
			fmt.Fprintf(r.stdout, "%s\nmake %s failed: %v\n", lastLines(output), target, err)
		}
		r.builds = append(r.builds, row)
		r.progress(row.result, target, seconds(row.seconds))
	}
	return failed
}

// make runs a target. Output of the build goes to a file of the output directory.
func (r *runner) make(ctx context.Context, target string) (output string, err error) {
	name := "make-" + strings.ReplaceAll(target, "/", "-") + ".log"
	log, err := os.Create(filepath.Join(r.dir(), name))
	if err != nil {
		return "", err
	}
	defer log.Close()
	if rest, ok := strings.CutPrefix(target, "_output/"); ok && r.outArgument != "" {
		target = r.outArgument + "/" + rest
	}
	cmd := exec.CommandContext(ctx, "make", "-s", target)
	cmd.Dir, cmd.Stdout, cmd.Stderr = r.root, log, log
	err = runGroup(cmd, r.grace)
	data, readErr := os.ReadFile(log.Name())
	if readErr != nil {
		return "", readErr
	}
	return string(data), err
}

// lastLines is the end of an output.
func lastLines(output string) string {
	all := strings.Split(strings.TrimRight(output, "\n"), "\n")
	return strings.Join(all[max(0, len(all)-maxLines):], "\n")
}

// seconds shows a duration in whole seconds.
func seconds(d time.Duration) string { return fmt.Sprintf("%.0f s", d.Seconds()) }
