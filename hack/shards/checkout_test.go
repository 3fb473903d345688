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
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// good and bad are packages of the small module that tests run.
const (
	goodTest = `package good

import (
	"os"
	"testing"

	"example.test/m/dep"
)

func TestGood(t *testing.T) {
	if _, err := os.Stat("testdata/x"); err != nil || dep.One != 1 {
		t.Fatal(err)
	}
	t.Log("the same again: GOOD_SEED=41")
	t.Run("sub", func(t *testing.T) { t.Skip("not today") })
}
`
	badTest = `package bad

import (
	"os"
	"testing"
)

func TestBad(t *testing.T) {
	if _, err := os.Stat("fixed"); err != nil {
		t.Fatal("it is broken")
	}
}
`
)

// small is a checkout with a tiny module.
type small struct {
	t   *testing.T
	dir string
}

func newSmall(t *testing.T) small {
	t.Helper()
	s := small{t, t.TempDir()}
	s.git("init", "-q")
	s.write(".gitignore", "/_output/\n")
	s.write("go.mod", "module example.test/m\n\ngo 1.24\n")
	s.write("Makefile", "all:\n\t@echo compiling; mkdir -p _output/bin; echo built >>_output/bin/calls\nhopeless:\n\t@echo cannot be built; exit 1\n")
	s.write("cmd/main.go", "package main\n\nfunc main() {}\n")
	s.write("test/utils/localcluster/kubemark/main.go", "package main\n\nfunc main() {}\n")
	s.write("dep/dep.go", "package dep\n\n// One is one.\nconst One = 1\n")
	s.write("dep/dep_test.go", "package dep\n")
	s.write("other/other.go", "package other\n")
	s.write("good/good_test.go", goodTest)
	s.write("good/testdata/x", "1")
	s.write("bad/bad_test.go", badTest)
	s.git("add", ".")
	for _, name := range []string{"KUBE_FEATURES_BIN", "KUBE_FEATURES_REQUIRE_ALL"} {
		t.Setenv(name, "")
	}
	return s
}

func (s small) write(file, content string) {
	s.t.Helper()
	file = filepath.Join(s.dir, file)
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		s.t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(content), 0o644); err != nil {
		s.t.Fatal(err)
	}
}

func (s small) git(args ...string) {
	s.t.Helper()
	cmd := exec.CommandContext(s.t.Context(), "git", args...)
	cmd.Dir = s.dir
	if output, err := cmd.CombinedOutput(); err != nil {
		s.t.Fatalf("git %v: %v\n%s", args, err, output)
	}
}

// rows are the shards of the small module.
func rows() []Shard {
	return []Shard{
		{Name: "bad", Covers: "what fails", Packages: []string{"./bad"}},
		{Name: "good", Covers: "what passes", Quick: true, Packages: []string{"./good"}},
	}
}

// run runs the program and returns its exit code and what it printed.
func (s small) run(table []Shard, args ...string) (code int, printed string) {
	s.t.Helper()
	return s.runWith(s.t.Context(), table, args...)
}

func (s small) runWith(ctx context.Context, table []Shard, args ...string) (code int, printed string) {
	s.t.Helper()
	var out output
	code = command(ctx, table, append([]string{"-root", s.dir}, args...), &out, &out)
	return code, out.String()
}

// output may be read while it is written to.
type output struct {
	mu    sync.Mutex
	text  bytes.Buffer
	wrote func(all string)
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	n, err := o.text.Write(p)
	if o.wrote != nil {
		o.wrote(o.text.String())
	}
	return n, err
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// has fails unless the text has all that is wanted.
func has(t *testing.T, text string, wanted ...string) {
	t.Helper()
	for _, want := range wanted {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in what was printed:\n%s", want, text)
		}
	}
}

// hasNot fails when the text has one of the strings.
func hasNot(t *testing.T, text string, unwanted ...string) {
	t.Helper()
	for _, other := range unwanted {
		if strings.Contains(text, other) {
			t.Errorf("%q is in what was printed:\n%s", other, text)
		}
	}
}
