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
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// rowsVariable has rows as JSON for a process that is to be the program itself.
const rowsVariable = "SHARDS_TEST_ROWS"

func TestMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[1] == spinArgument {
		spin()
	}
	if text := os.Getenv(rowsVariable); text != "" {
		// Elements that are there would keep what the rows leave out.
		shards = nil
		if err := json.Unmarshal([]byte(text), &shards); err != nil {
			panic(err)
		}
		main()
	}
	os.Exit(m.Run())
}

func TestARunContinuesAfterAFailureAndRepeatsIt(t *testing.T) {
	s := newSmall(t)
	code, printed := s.run(rows(), "-lanes=1")
	if code != 1 {
		t.Errorf("exit code %d", code)
	}
	has(t, printed, "FAIL   bad", "ok     good", "=== WHY example.test/m/bad.TestBad FAILED\n    bad_test.go:10: it is broken\n", "GOOD_SEED=41")
	if !strings.HasSuffix(printed, "\n1 passed, 1 failed, 1 skipped\n") {
		t.Errorf("the last line is another:\n%s", printed)
	}
	for _, file := range []string{"bad.json", "bad.log", "bad.failed.json", "good.passed.json"} {
		if _, err := os.Stat(filepath.Join(s.dir, "_output/shards", file)); err != nil {
			t.Error(err)
		}
	}
	code, printed = s.run(rows(), "-only=failed")
	if code != 1 {
		t.Errorf("exit code %d of what fails again", code)
	}
	hasNot(t, printed, "good")
	s.write("bad/fixed", "")
	code, printed = s.run(rows(), "-only=failed")
	if code != 0 {
		t.Errorf("exit code %d of what was repaired:\n%s", code, printed)
	}
	code, printed = s.run(rows(), "-only=failed")
	if code != 0 {
		t.Errorf("exit code %d when nothing is left to repeat", code)
	}
	has(t, printed, "nothing to repeat")
	code, printed = s.run(rows())
	if code != 0 {
		t.Errorf("exit code %d when nothing changed:\n%s", code, printed)
	}
	has(t, printed, "bad     unchanged", "good    unchanged", "0 passed, 0 failed, 0 skipped\n")
	code, printed = s.run(rows(), "-force")
	if code != 0 {
		t.Errorf("exit code %d", code)
	}
	has(t, printed, "\n2 passed, 0 failed, 1 skipped\n")
	if _, printed = s.run(rows(), "-quick"); strings.Contains(printed, "bad") {
		t.Errorf("a shard that is not quick ran:\n%s", printed)
	}
	has(t, printed, "\n1 passed, 0 failed, 1 skipped\n")
}

func TestARunInWhichNoTestRanFails(t *testing.T) {
	s := newSmall(t)
	none := Shard{Name: "none", Covers: "nothing", Packages: []string{"./good"}, Run: "^TestNothing$"}
	code, printed := s.run([]Shard{none})
	if code != 1 {
		t.Errorf("exit code %d", code)
	}
	has(t, printed, "no test ran; see Packages, Run and Skip", "0 passed, 1 failed, 0 skipped")
	if code, printed = s.run([]Shard{none}, "-quick"); code != 1 {
		t.Errorf("exit code %d of no shard:\n%s", code, printed)
	}
}

func TestAShardWhoseTestsAreAllSkippedHasNotPassed(t *testing.T) {
	s := newSmall(t)
	s.write("skips/skips_test.go", "package skips\n\nimport \"testing\"\n\nfunc TestSkips(t *testing.T) { t.Skip(\"not here\") }\n")
	for range 2 {
		code, printed := s.run([]Shard{{Name: "skips", Covers: "x", Packages: []string{"./skips"}}})
		if code != 0 {
			t.Errorf("exit code %d", code)
		}
		has(t, printed, "skip   skips", "all tests were skipped", "\n0 passed, 0 failed, 1 skipped\n")
	}
}

func TestASecondRunIsRefused(t *testing.T) {
	s := newSmall(t)
	r := &runner{out: filepath.Join(s.dir, "_output")}
	if err := os.MkdirAll(r.dir(), 0o755); err != nil {
		t.Fatal(err)
	}
	unlock, err := r.lock()
	if err != nil {
		t.Fatal(err)
	}
	code, printed := s.run(rows(), "-quick")
	if code != 1 {
		t.Errorf("exit code %d", code)
	}
	has(t, printed, "another run of shards works in "+r.dir())
	hasNot(t, printed, "start")
	if code, printed = s.run(rows(), "-list"); code != 0 {
		t.Errorf("exit code %d of the list:\n%s", code, printed)
	}
	unlock()
	if code, printed = s.run(rows(), "-quick"); code != 0 {
		t.Errorf("exit code %d when the other has ended:\n%s", code, printed)
	}
}

func TestFailuresThatNoTestReports(t *testing.T) {
	s := newSmall(t)
	s.write("broken/a_test.go", "package broken\n\nimport \"testing\"\n\nfunc TestA(t *testing.T) { undefined() }\n")
	s.write("dies/a_test.go", "package dies\n\nimport (\n\t\"os\"\n\t\"testing\"\n)\n\nfunc TestA(t *testing.T) { println(\"last words\"); os.Exit(3) }\n")
	table := []Shard{
		{Name: "broken", Covers: "x", Packages: []string{"./broken"}},
		{Name: "dies", Covers: "x", Packages: []string{"./dies"}},
		{Name: "absent", Covers: "x", Packages: []string{"./absent"}},
		{Name: "unbuilt", Covers: "x", Packages: []string{"./good"}, Needs: []string{"hopeless"}},
		{Name: "built", Covers: "x", Packages: []string{"./good"}, Needs: []string{"all"}},
		{Name: "built-too", Covers: "x", Packages: []string{"./good"}, Needs: []string{"all"}},
	}
	builds["hopeless"] = build{}
	defer delete(builds, "hopeless")
	code, printed := s.run(table)
	if code != 1 {
		t.Errorf("exit code %d", code)
	}
	has(t, printed, "undefined: undefined", "last words", "/absent: directory not found", "cannot be built\nmake: ", "make hopeless failed: exit status", "shard unbuilt FAILED\nmake hopeless failed",
		"make all        built", "\n2 passed, 4 failed, 2 skipped\n")
	calls, err := os.ReadFile(filepath.Join(s.dir, "_output/bin/calls"))
	if err != nil || string(calls) != "built\n" {
		t.Errorf("two shards need all, which was built so: %q, %v", calls, err)
	}
}

func TestUnknownShardsRefused(t *testing.T) {
	s := newSmall(t)
	for name, tc := range map[string]struct {
		args []string
		says string
	}{
		"a name that is like another": {[]string{"-shard=goood"}, `no shard is called "goood", near it are good; "make test-all LIST=1" lists all`},
		"a name like none":            {[]string{"-shard=x"}, `no shard is called "x"; "make test-all LIST=1" lists all`},
		"another value of ONLY":       {[]string{"-only=passed"}, "ONLY=passed is not known; the only value is ONLY=failed"},
		"failures before any run":     {[]string{"-only=failed"}, `run "make test-all" first`},
		"an argument":                 {[]string{"good"}, `argument "good" is not known`},
		"no lanes":                    {[]string{"-lanes=0"}, "lanes and runs are 1 or more"},
	} {
		t.Run(name, func(t *testing.T) {
			code, printed := s.run(rows(), tc.args...)
			if code != 1 {
				t.Errorf("exit code %d", code)
			}
			has(t, printed, tc.says)
		})
	}
}

func TestNames(t *testing.T) {
	table := []Shard{{Name: "unit-a"}, {Name: "unit-b"}, {Name: "model"}, {Name: "soak"}}
	for given, want := range map[string]string{
		"model": "model", "soak,unit-a": "unit-a, soak", "unit-*": "unit-a, unit-b", "*,!unit-*,!model": "soak",
	} {
		found, err := named(table, given)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, names(found)); diff != "" {
			t.Errorf("%s: -want +got:\n%s", given, diff)
		}
	}
}

// waiting is a test that starts two processes, one of which leaves the process group,
// and never ends by itself.
const waiting = `package waits

import (
	"os"
	"os/exec"
	"strconv"
	"syscall"
	"testing"
)

func TestWaits(t *testing.T) {
	child, apart := exec.Command("sleep", "600"), exec.Command("sleep", "600")
	apart.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	for _, cmd := range []*exec.Cmd{child, apart} {
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile("../_output/child.tmp", []byte(strconv.Itoa(child.Process.Pid)+" "+strconv.Itoa(apart.Process.Pid)), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename("../_output/child.tmp", "../_output/child"); err != nil {
		t.Fatal(err)
	}
	_ = child.Wait()
}
`

// TestSignalsEndAllProcesses starts the program, and sends it signals once its test
// has started a process.
func TestSignalsEndAllProcesses(t *testing.T) {
	for name, signal := range map[string]os.Signal{"SIGTERM": syscall.SIGTERM, "SIGINT": os.Interrupt} {
		t.Run(name, func(t *testing.T) {
			s := newSmall(t)
			s.write("waits/waits_test.go", waiting)
			table := append([]Shard{{Name: "waits", Covers: "x", Packages: []string{"./waits"}}}, rows()...)
			text, err := json.Marshal(table)
			if err != nil {
				t.Fatal(err)
			}
			var out output
			cmd := exec.CommandContext(t.Context(), os.Args[0], "-root", s.dir, "-lanes=1")
			cmd.Env, cmd.Stdout, cmd.Stderr = append(os.Environ(), rowsVariable+"="+string(text)), &out, &out
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			ended := make(chan error, 1)
			go func() { ended <- cmd.Wait() }()
			children := waitForChildren(t, s, ended, &out)
			if err := cmd.Process.Signal(signal); err != nil {
				t.Fatal(err)
			}
			var exit *exec.ExitError
			if err := <-ended; !errors.As(err, &exit) || exit.ExitCode() != 1 {
				t.Errorf("it ended with %v, want exit code 1", err)
			}
			has(t, out.String(), "waits   interrupted", "left running, and ended: sleep\n", "good    interrupted   -                 not started", "interrupted: ", "\n0 passed, 0 failed, 0 skipped\n")
			// They were killed, which takes effect when the kernel comes to it.
			for _, child := range children {
				untilEnded(t, child)
			}
			if _, err := os.Stat(filepath.Join(s.dir, "_output/shards/waits.failed.json")); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("what was interrupted is recorded as failed: %v", err)
			}
		})
	}
}

// waitForChildren waits until the test has started its processes, and returns their ids.
func waitForChildren(t *testing.T, s small, ended <-chan error, out *output) []int {
	t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	limit, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	for {
		data, err := os.ReadFile(filepath.Join(s.dir, "_output/child"))
		if err == nil {
			var children []int
			for _, field := range strings.Fields(string(data)) {
				child, err := strconv.Atoi(field)
				if err != nil {
					t.Fatal(err)
				}
				children = append(children, child)
			}
			return children
		}
		select {
		case <-tick.C:
		case err := <-ended:
			t.Fatalf("it ended too early: %v\n%s", err, out.String())
		case <-limit.Done():
			t.Fatalf("the test has not started its processes: %v; printed:\n%s", err, out.String())
		}
	}
}

// untilEnded waits until a process has ended.
func untilEnded(t *testing.T, pid int) {
	t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	limit, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for {
		err := syscall.Kill(pid, 0)
		if errors.Is(err, syscall.ESRCH) || zombie(pid) {
			return
		}
		select {
		case <-tick.C:
		case <-limit.Done():
			t.Errorf("process %d that the test started is left: %v", pid, err)
			return
		}
	}
}

// zombie is true for a process that has ended and whose parent has not asked how.
func zombie(pid int) bool {
	data, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	_, state, _ := strings.Cut(string(data), ") ")
	return err != nil || strings.HasPrefix(state, "Z")
}
