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
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/utils/ptr"
)

// page makes a page: ' is a backquote.
func page(text string) string { return strings.ReplaceAll(text, "'''", "```") }

func TestParse(t *testing.T) {
	for name, test := range map[string]struct {
		page   string
		want   []Block
		errors []string
	}{
		"no blocks": {page: "words `code`"},
		"commands and their output": {
			page: "a\n'''bash\nls\npwd\n'''\n\n'''text\nx\n'''\nb\n'''bash\nid\n'''\n",
			want: []Block{{Line: 2, Text: "ls\npwd\n", Output: ptr.To("x\n")}, {Line: 11, Text: "id\n"}},
		},
		"what is only read": {page: "'''go\nx\n'''\n'''yaml\na: b\n'''\n<!-- docs-test: shown: an example of a log -->\n'''text\nlog\n'''\n"},
		"a file":            {page: "'''yaml\n# file: a.yaml\nb: c\n'''\n", want: []Block{{Line: 1, Text: "# file: a.yaml\nb: c\n", File: "a.yaml"}}},
		"a block in a list loses its indent": {
			page: "1. one\n   '''bash\n   if x; then\n     y\n   fi\n   '''\n",
			want: []Block{{Line: 2, Text: "if x; then\n  y\nfi\n"}},
		},
		"a skipped block takes its output with it": {
			page: "<!-- docs-test: skip: takes an hour -->\n\n'''bash\nmake\n'''\n'''text\nx\n'''\n",
			want: []Block{{Line: 3, Text: "make\n", Skip: "takes an hour", Output: ptr.To("x\n")}},
		},
		"something instead": {
			page: "<!-- docs-test: instead: local-up up -->\n'''bash\nmake up\n'''\n",
			want: []Block{{Line: 2, Text: "make up\n", Instead: "local-up up"}},
		},
		"a fence in a longer fence is text": {page: "````bash\n'''\n````\n", want: []Block{{Line: 1, Text: "```\n"}}},

		"no language":                 {page: "'''\nls\n'''\n", errors: []string{"line 1", "needs a language"}},
		"a language without a runner": {page: "'''console\n$ ls\n'''\n", errors: []string{"line 1", `"console"`, "bash"}},
		"output without commands":     {page: "'''text\nx\n'''\n", errors: []string{"line 1", "there is none"}},
		"words between commands and output": {
			page: "'''bash\nls\n'''\nprints\n'''text\nx\n'''\n", errors: []string{"line 5", "there is none"},
			want: []Block{{Line: 1, Text: "ls\n"}},
		},
		"output of output":           {page: "'''bash\nls\n'''\n'''text\nx\n'''\n'''text\ny\n'''\n", errors: []string{"line 7"}, want: []Block{{Line: 1, Text: "ls\n", Output: ptr.To("x\n")}}},
		"a mark without a block":     {page: "<!-- docs-test: skip: why -->\nwords\n'''bash\nls\n'''\n", errors: []string{"line 1", "before no block"}, want: []Block{{Line: 3, Text: "ls\n"}}},
		"a mark at the end":          {page: "<!-- docs-test: skip: why -->\n", errors: []string{"line 1", "before no block"}},
		"a mark without a reason":    {page: "<!-- docs-test: skip -->\n", errors: []string{"line 1", "is not understood"}},
		"words about marks":          {page: "such as `<!-- docs-test: skip: why -->`\n"},
		"a mark that is unknown":     {page: "<!-- docs-test: later: why -->\n'''bash\nls\n'''\n", errors: []string{"line 2", `"later"`}},
		"commands that are shown":    {page: "<!-- docs-test: shown: why -->\n'''bash\nls\n'''\n", errors: []string{"line 2", "shown is for text"}},
		"output that is skipped":     {page: "<!-- docs-test: skip: why -->\n'''text\nls\n'''\n", errors: []string{"line 2"}},
		"commands that sleep":        {page: "'''bash\nls; sleep 5\n'''\n", errors: []string{"line 1", "kubectl wait"}},
		"a block without an end":     {page: "'''bash\nls\n", errors: []string{"line 1", "no end"}},
		"every reason is told":       {page: "'''\n'''\n'''sh\n'''\n", errors: []string{"line 1", "line 3"}},
		"an indented bare fence":     {page: "* x\n  '''\n  ls\n  '''\n", errors: []string{"line 2", "needs a language"}},
		"a fence of other letters":   {page: "~~~\nls\n~~~\n", errors: []string{"line 1", "needs a language"}},
		"a language with properties": {page: "'''bash {.x}\nls\n'''\n", want: []Block{{Line: 1, Text: "ls\n"}}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Parse(page(test.page))
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("unexpected blocks (-want +got):\n%s", diff)
			}
			if (err != nil) != (len(test.errors) > 0) {
				t.Fatalf("error %v, want one that says %q", err, test.errors)
			}
			for _, text := range test.errors {
				if !strings.Contains(err.Error(), text) {
					t.Errorf("the error does not say %q: %v", text, err)
				}
			}
		})
	}
}

func TestCauses(t *testing.T) {
	output := `=== RUN   TestEveryGate
    gate_test.go:113:    0.0 s begun
I1121 23:57:16.966560   12453 storage.go:153] all are created.
{"level":"warn","msg":"an error of etcd's"}
    framework.go:98: starting the cluster: kube-scheduler died; the end of its log:
    framework.go:130: --- kube-apiserver runs, the end of its log:
        [-]poststarthook failed: not finished
    framework.go:130: --- kube-scheduler HAS ENDED, the end of its log:
        panic: runtime error: invalid memory address
--- FAIL: TestEveryGate (0.98s)
`
	want := []string{
		"framework.go:98: starting the cluster: kube-scheduler died; the end of its log:",
		"framework.go:130: --- kube-scheduler HAS ENDED, the end of its log:",
		"panic: runtime error: invalid memory address",
		"--- FAIL: TestEveryGate (0.98s)",
	}
	if diff := cmp.Diff(want, Causes(output)); diff != "" {
		t.Errorf("unexpected causes (-want +got):\n%s", diff)
	}
}

func TestDiffers(t *testing.T) {
	for name, test := range map[string]struct {
		want, got string
		differs   bool
	}{
		"the same":                              {want: "a\nb\n", got: "a\nb\n"},
		"nothing":                               {},
		"other widths of columns":               {want: "NAME  AGE\na     b \n", got: "NAME          AGE\na             b\n\n"},
		"any text in a line":                    {want: "a … c\n", got: "a b x c\n"},
		"no text in a line":                     {want: "a… c\n", got: "a c\n"},
		"any text at an end":                    {want: "a…\n", got: "abc\n"},
		"any lines":                             {want: "a\n…\nd\n", got: "a\nb\nc\nd\n"},
		"no lines":                              {want: "a\n…\n", got: "a\n"},
		"only any lines":                        {want: "…\n", got: "a\nb\n"},
		"what looks like a pattern":             {want: "a.c (x|y) [1]\n", got: "a.c (x|y) [1]\n"},
		"another line":                          {want: "a\n", got: "b\n", differs: true},
		"a line too many":                       {want: "a\n", got: "a\nb\n", differs: true},
		"a line that is missing":                {want: "a\nb\n", got: "a\n", differs: true},
		"something where nothing should be":     {want: "", got: "a\n", differs: true},
		"any text does not reach into the next": {want: "a…b\n", got: "a\nb\n", differs: true},
		"a pattern is no pattern":               {want: "a.c\n", got: "abc\n", differs: true},
		"the rest of a line matters":            {want: "…b\n", got: "abc\n", differs: true},
		"no output where some should be":        {want: "a\n", got: "", differs: true},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := Differs(test.want, test.got); (diff != "") != test.differs {
				t.Errorf("differs: %q", diff)
			}
		})
	}
}

func TestShell(t *testing.T) {
	dir := t.TempDir()
	shell, err := StartShell(t.Context(), dir, []string{"GIVEN=yes"})
	if err != nil {
		t.Fatal(err)
	}
	run := func(commands, want string) {
		t.Helper()
		if got, err := shell.Run(commands); err != nil || got != want {
			t.Fatalf("printed %q, %v, want %q", got, err, want)
		}
	}
	run("echo $GIVEN; pwd\n", "yes\n"+dir+"\n")
	run("export A=1; mkdir sub; cd sub; say() { echo said $A; }\n", "")
	run("say; basename $PWD; cat\n", "said 1\nsub\n")
	run("false || echo failed: $?; echo err >&2\n", "failed: 1\nerr\n")
	// What stays in the background does not keep the page waiting.
	run("trap 'kill $!' EXIT; tail -f /dev/null >/dev/null 2>&1 &\n", "")
	for _, bad := range []string{"echo before; false; echo after\n", "echo before; false | true\n", "echo before; echo $UNSET\n", "echo before; exit 0\n"} {
		one, err := StartShell(t.Context(), dir, nil)
		if err != nil {
			t.Fatal(err)
		}
		got, err := one.Run(bad)
		if err == nil || !strings.HasPrefix(got, "before\n") || strings.Contains(got, "after") {
			t.Errorf("%q: printed %q, %v", bad, got, err)
		}
		if _, err := one.Run("echo again\n"); err == nil {
			t.Errorf("%q: the shell continues", bad)
		}
	}
	if err := shell.Close(); err != nil {
		t.Error(err)
	}
}

// TestShellTerminatesRemainingProcesses: a page that fails never comes to the command
// that ends what it started.
func TestShellTerminatesRemainingProcesses(t *testing.T) {
	dir := t.TempDir()
	pipe := filepath.Join(dir, "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	shell, err := StartShell(t.Context(), dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := shell.Run("tail -f /dev/null >pipe 2>/dev/null &\n"); err != nil {
		t.Fatal(err)
	}
	// The pipe is open for as long as the process lives.
	reader, err := os.Open(pipe)
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	if err := reader.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	if _, err := shell.Run("false\n"); err == nil {
		t.Error("a command failed, and the shell says nothing")
	}
	if _, err := io.ReadAll(reader); err != nil {
		t.Errorf("the process in the background still runs: %v", err)
	}
}
