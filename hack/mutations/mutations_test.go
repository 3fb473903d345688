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
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const root = "../.."

func TestEveryMutationChangesOneLineThatIsThere(t *testing.T) {
	names := map[string]bool{}
	for _, m := range mutations {
		t.Run(m.Name, func(t *testing.T) {
			if names[m.Name] {
				t.Error("another mutation has this name")
			}
			names[m.Name] = true
			before, err := os.ReadFile(filepath.Join(root, m.File))
			if err != nil {
				t.Fatal(err)
			}
			dir := t.TempDir()
			file := filepath.Join(dir, m.File)
			if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(file, before, 0o644); err != nil {
				t.Fatal(err)
			}
			restore, err := m.apply(dir)
			if err != nil {
				t.Fatal(err)
			}
			after, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if string(after) == string(before) {
				t.Error("the file did not change")
			}
			if _, err := parser.ParseFile(token.NewFileSet(), file, after, parser.SkipObjectResolution); err != nil {
				t.Errorf("the mutation is no Go: %v", err)
			}
			if err := restore(); err != nil {
				t.Fatal(err)
			}
			if restored, err := os.ReadFile(file); err != nil || string(restored) != string(before) {
				t.Errorf("the file is not restored: %v", err)
			}
		})
	}
}

func TestMutationsAreSpreadOverTheProduct(t *testing.T) {
	areas := map[string]int{}
	for _, m := range mutations {
		areas[m.Area]++
		if m.Wrong == "" {
			t.Errorf("%s does not say what is wrong", m.Name)
		}
	}
	if len(mutations) < 20 {
		t.Errorf("%d mutations, want 20", len(mutations))
	}
	for _, area := range []string{"layer", "report", "transition", "tasks", "registry", "values", "plugin"} {
		if areas[area] < 2 {
			t.Errorf("%d mutations of %s, want 2", areas[area], area)
		}
	}
}

func TestTheFirstFailureIsNamed(t *testing.T) {
	output := "start  unit\nFAIL   unit\n\n=== WHY k8s.io/x.TestA/with_b FAILED\n    a_test.go:1: no\n\n0 passed, 1 failed, 0 skipped\n"
	if got, want := firstFailure(output), "k8s.io/x.TestA/with_b"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := firstFailure("./x.go:1: undefined: y\n"); got != "" {
		t.Errorf("a run that did not start names %q", got)
	}
}

func TestAnUnknownMutationIsRefused(t *testing.T) {
	if _, err := (settings{only: "no-such"}).choose(); err == nil || !strings.Contains(err.Error(), "no-such") {
		t.Errorf("got %v", err)
	}
}

// TestTestsOfAPackage checks which results show that a mutation was noticed.
func TestTestsOfAPackage(t *testing.T) {
	for name, test := range map[string]struct {
		body    string
		want    string
		wantErr string
	}{
		"passes":         {body: "", want: ""},
		"fails":          {body: `t.Error("no")`, want: "p.TestIt"},
		"panics":         {body: `panic("no")`, want: "p.TestIt"},
		"is not a build": {body: `undefined()`, wantErr: "cannot run"},
	} {
		t.Run(name, func(t *testing.T) {
			c := &checkout{dir: t.TempDir()}
			for file, content := range map[string]string{
				"go.mod": "module p\n", "p/p.go": "package p\n",
				"p/p_test.go": "package p\n\nimport \"testing\"\n\nfunc TestIt(t *testing.T) {\n\t" + test.body + "\n}\n",
			} {
				path := filepath.Join(c.dir, file)
				if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			t.Setenv("GOWORK", "off")
			got, err := c.testPackage(t.Context(), "p")
			if got != test.want || (err == nil) != (test.wantErr == "") || err != nil && !strings.Contains(err.Error(), test.wantErr) {
				t.Errorf("got %q and %v, want %q and %q", got, err, test.want, test.wantErr)
			}
		})
	}
}

// TestShardsThatReadTheMutationsAreLeftOut: this package notices every mutation.
func TestShardsThatReadTheMutationsAreLeftOut(t *testing.T) {
	for name, args := range map[string][]string{"quick": quick, "all": all} {
		if !strings.Contains(strings.Join(args, " "), "!unit-hack") {
			t.Errorf("%s has the shard of this package: %v", name, args)
		}
	}
}
