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

package docs

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/kubernetes-features/test/e2e_features/framework"
)

// patience bounds the commands of one page. It is generous: the machine may be
// busy.
const patience = 30 * time.Minute

// root is the repository.
const root = "../.."

// pagesAtOnce is how many pages are followed at a time: most of theirs they wait, for
// what a cluster does within the periods of its flags.
const pagesAtOnce = "4"

func TestMain(m *testing.M) {
	if err := flag.Set("test.parallel", pagesAtOnce); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}

// TestPages runs the commands of every page, from the top to the end, in an empty
// directory that has the binaries in _output/bin, as the repository does.
func TestPages(t *testing.T) {
	names, err := Pages(root)
	if err != nil {
		t.Fatal(err)
	}
	// It belongs to all pages, and ends with the last of them.
	shared := sync.OnceValue(func() string { return sharedCluster(t) })
	for _, name := range names {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			blocks, err := Read(root, name)
			if err != nil {
				t.Fatal(err)
			}
			if !slices.ContainsFunc(blocks, func(b Block) bool { return b.Skip == "" && b.File == "" }) {
				for _, b := range blocks {
					t.Logf("%s:%d is skipped: %s\n%s", name, b.Line, b.Skip, b.Text)
				}
				return
			}
			if looking[name] {
				look(t, name, shared()).run(blocks)
				return
			}
			newReader(t, name).run(blocks)
		})
	}
}

// reader follows one page.
type reader struct {
	t    *testing.T
	page string
	dir  string
}

func newReader(t *testing.T, page string) *reader {
	t.Helper()
	r := &reader{t: t, page: page, dir: framework.DataDir(t)}
	if err := os.Mkdir(filepath.Join(r.dir, "_output"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(framework.BinDir(t), filepath.Join(r.dir, "_output", "bin")); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.end)
	return r
}

// end ends the clusters of a page that does not, or that failed.
func (r *reader) end() {
	// The test's context has ended by now.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.t.Context()), framework.Patience)
	defer cancel()
	if r.t.Failed() {
		logs, err := filepath.Glob(filepath.Join(r.dir, "_output", "local", "logs", "kube-*.log"))
		for _, log := range logs {
			data, readErr := os.ReadFile(log)
			err = errors.Join(err, readErr)
			r.t.Logf("--- the end of %s:\n%s", filepath.Base(log), data[max(0, len(data)-2000):])
		}
		if err != nil {
			r.t.Logf("reading logs: %v", err)
		}
	}
	// A page may have another cluster beside that of _output/local, or none.
	for _, state := range r.clusters() {
		cmd := exec.CommandContext(ctx, "_output/bin/local-up", "down", "--data-dir="+filepath.Dir(state))
		cmd.Dir = r.dir
		if output, err := cmd.CombinedOutput(); err != nil {
			r.t.Errorf("ending the cluster in %s: %v\n%s", filepath.Dir(state), err, output)
		}
	}
}

// clusters are the states of those that the page has started.
func (r *reader) clusters() []string {
	var states []string
	for _, dir := range []string{"*", filepath.Join("_output", "local")} {
		found, err := filepath.Glob(filepath.Join(r.dir, dir, "state.json"))
		if err != nil {
			r.t.Errorf("looking for clusters: %v", err)
		}
		states = append(states, found...)
	}
	return states
}

func (r *reader) run(blocks []Block) {
	ctx, cancel := context.WithTimeout(r.t.Context(), patience)
	defer cancel()
	source, err := filepath.Abs(root)
	if err != nil {
		r.t.Fatal(err)
	}
	shell, err := StartShell(ctx, r.dir, append(goFolders(r.t),
		// Clusters of what the page runs are found by end, too.
		"TMPDIR="+r.dir,
		"PATH="+filepath.Join(r.dir, "_output", "bin")+":"+os.Getenv("PATH"),
		"KUBECONFIG="+filepath.Join(r.dir, "_output", "local", "admin.kubeconfig"),
		"HOME="+r.dir,
		"SOURCE="+source,
	))
	if err != nil {
		r.t.Fatal(err)
	}
	defer func() {
		if err := shell.Close(); err != nil && !r.t.Failed() {
			r.t.Errorf("ending the shell: %v", err)
		}
	}()
	for _, b := range blocks {
		r.do(shell, b)
	}
}

// goFolders are where the go command has what it downloaded and built, so that
// pages which build something find it although they have another home.
func goFolders(t *testing.T) []string {
	t.Helper()
	names := []string{"GOPATH", "GOMODCACHE", "GOCACHE", "GOFLAGS", "GOPROXY"}
	output, err := exec.CommandContext(t.Context(), "go", append([]string{"env"}, names...)...).Output()
	if err != nil {
		t.Fatalf("where the go command has its files: %v", err)
	}
	folders := strings.Split(strings.TrimSuffix(string(output), "\n"), "\n")
	if len(folders) != len(names) {
		t.Fatalf("go env printed %q, want a line for each of %v", output, names)
	}
	for i, name := range names {
		folders[i] = name + "=" + folders[i]
	}
	return folders
}

// do runs one block, or writes it. The page ends with the first that fails: what
// comes after builds on it.
func (r *reader) do(shell *Shell, b Block) {
	where := fmt.Sprintf("%s:%d", r.page, b.Line)
	commands := b.Text
	switch {
	case b.Skip != "":
		r.t.Logf("%s is skipped: %s\n%s", where, b.Skip, b.Text)
		return
	case b.File != "":
		if !filepath.IsLocal(b.File) {
			r.t.Fatalf("%s: %s is outside of the directory", where, b.File)
		}
		if err := os.WriteFile(filepath.Join(r.dir, b.File), []byte(b.Text), 0o600); err != nil {
			r.t.Fatalf("%s: %v", where, err)
		}
		return
	case b.Instead != "":
		commands = b.Instead + "\n"
	}
	begun := time.Now()
	output, err := shell.Run(commands)
	r.t.Logf("%s took %.1f s\n%s%s", where, time.Since(begun).Seconds(), prompt(commands), output)
	if err != nil {
		r.t.Fatalf("%s: a command failed: %v; of what it printed, this may say why:\n%s", where, err, strings.Join(Causes(output), "\n"))
	}
	if b.Output == nil {
		return
	}
	if diff := Differs(*b.Output, output); diff != "" {
		r.t.Fatalf("%s: the output is not that of the page (-page +now):\n%s", where, diff)
	}
}

// prompt shows commands as a user would have typed them.
func prompt(commands string) string {
	text := ""
	for line := range strings.Lines(commands) {
		text += "$ " + line
	}
	return text
}
