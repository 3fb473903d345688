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
	"os"
	"path/filepath"
	"testing"
)

// fingerprint is the hash of what the shard depends on.
func (s small) fingerprint(shard Shard) string {
	s.t.Helper()
	f := newFingerprints(s.dir)
	in, err := f.inputs(s.t.Context(), shard, filepath.Join(s.dir, "_output"))
	if err != nil {
		s.t.Fatal(err)
	}
	hash, err := f.hash(s.t.Context(), in)
	if err != nil {
		s.t.Fatal(err)
	}
	return hash
}

func TestFingerprint(t *testing.T) {
	plain := rows()[1]
	built := plain
	built.Needs = []string{"all"}
	reader := plain
	reader.Inputs = []string{"docs"}
	whole := plain
	whole.Inputs = []string{"."}
	commit := func(s small, _ *Shard) {
		s.git("-c", "user.name=x", "-c", "user.email=x@example.test", "commit", "-q", "-m", "x")
	}
	for name, tc := range map[string]struct {
		shard  Shard
		change func(s small, shard *Shard)
		same   bool
	}{
		"a test":                            {plain, func(s small, _ *Shard) { s.write("good/good_test.go", goodTest+"\n") }, false},
		"a file of testdata":                {plain, func(s small, _ *Shard) { s.write("good/testdata/x", "2") }, false},
		"a new file of testdata":            {plain, func(s small, _ *Shard) { s.write("good/testdata/deep/y", "") }, false},
		"a file of testdata that is gone":   {plain, func(s small, _ *Shard) { remove(s, "good/testdata/x") }, false},
		"an imported package":               {plain, func(s small, _ *Shard) { s.write("dep/dep.go", "package dep\n\nconst One = 2 - 1\n") }, false},
		"a file beside an imported package": {plain, func(s small, _ *Shard) { s.write("dep/embedded.txt", "") }, false},
		"go.mod":                            {plain, func(s small, _ *Shard) { s.write("go.mod", "module example.test/m\n\ngo 1.25\n") }, false},
		"go.sum":                            {plain, func(s small, _ *Shard) { s.write("go.sum", "\n") }, false},
		"the row":                           {plain, func(_ small, shard *Shard) { shard.Race = true }, false},
		"a variable":                        {plain, func(s small, _ *Shard) { s.t.Setenv("FAULTS_SHORT", "x") }, false},
		"flags of Go":                       {plain, func(s small, _ *Shard) { s.t.Setenv("GOFLAGS", "-trimpath") }, false},
		"a test of an imported package":     {plain, func(s small, _ *Shard) { s.write("dep/dep_test.go", "package dep\n\n// More.\n") }, true},
		"another package":                   {plain, func(s small, _ *Shard) { s.write("other/other.go", "package other\n\n// More.\n") }, true},
		"an ignored file":                   {plain, func(s small, _ *Shard) { s.write("_output/x", "") }, true},
		"a program, which is not needed":    {plain, func(s small, _ *Shard) { s.write("cmd/main.go", "package main\n\nfunc main() { main() }\n") }, true},
		"a program":                         {built, func(s small, _ *Shard) { s.write("cmd/main.go", "package main\n\nfunc main() { main() }\n") }, false},
		"the Makefile":                      {built, func(s small, _ *Shard) { s.write("Makefile", "all:\n") }, false},
		"a new version of binaries":         {built, func(s small, _ *Shard) { s.t.Setenv("VERSION", "v9") }, false},
		"an input":                          {reader, func(s small, _ *Shard) { s.write("docs/page.md", "") }, false},
		"a commit, of all that is read":     {whole, commit, false},
		"a commit":                          {plain, commit, true},
		"a page that is no input":           {plain, func(s small, _ *Shard) { s.write("docs/page.md", "") }, true},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSmall(t)
			s.write("go.sum", "")
			before := s.fingerprint(tc.shard)
			tc.change(s, &tc.shard)
			if after := s.fingerprint(tc.shard); (after == before) != tc.same {
				t.Errorf("the same after the change: %t, want %t", after == before, tc.same)
			}
		})
	}
}

func remove(s small, file string) {
	s.t.Helper()
	if err := os.Remove(filepath.Join(s.dir, file)); err != nil {
		s.t.Fatal(err)
	}
}

func TestAShardThatChangedWhileItRanHasNoFingerprint(t *testing.T) {
	s := newSmall(t)
	s.write("self/self_test.go", "package self\n\nimport (\n\t\"os\"\n\t\"testing\"\n)\n\nfunc TestSelf(t *testing.T) {\n\tif err := os.WriteFile(\"note\", []byte(t.TempDir()), 0o600); err != nil {\n\t\tt.Fatal(err)\n\t}\n}\n")
	table := []Shard{{Name: "self", Covers: "x", Packages: []string{"./self"}}}
	for range 2 {
		code, printed := s.run(table)
		if code != 0 {
			t.Errorf("exit code %d", code)
		}
		has(t, printed, "its inputs changed while it ran", "1 passed")
	}
}

func TestBinariesFromElsewhereAreNotKnown(t *testing.T) {
	s := newSmall(t)
	table := rows()[1:]
	table[0].Needs = []string{"all"}
	t.Setenv("KUBE_FEATURES_BIN", t.TempDir())
	for range 2 {
		_, printed := s.run(table)
		has(t, printed, "1 passed")
	}
}
