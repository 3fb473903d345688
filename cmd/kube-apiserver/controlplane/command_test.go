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

package controlplane

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"k8s.io/feature-lifecycle/lifecycle/control"
	"k8s.io/kubernetes/cmd/kube-apiserver/app"
)

// flagsOf returns a command's flags, their types and defaults, one a line.
func flagsOf(cmd *cobra.Command) string {
	var lines strings.Builder
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		fmt.Fprintf(&lines, "%s %s %q\n", f.Name, f.Value.Type(), f.DefValue)
	})
	return lines.String()
}

// upstreamsFlags is set for a process that has to print the flags of upstream's
// command: a process can build only one of the two, since each takes over the
// process's signals.
const upstreamsFlags = "PRINT_FLAGS_OF_UPSTREAM"

func TestMain(m *testing.M) {
	if os.Getenv(upstreamsFlags) != "" {
		_, err := io.WriteString(os.Stdout, flagsOf(app.NewAPIServerCommand()))
		if err != nil {
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// ours is built once, however often the tests run, for the same reason.
var ours = sync.OnceValue(NewCommand)

// TestTheCommandTakesUpstreamsFlags compares with upstream's own command, with
// global flags and all.
func TestTheCommandTakesUpstreamsFlags(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	upstream := exec.CommandContext(t.Context(), self)
	upstream.Env = append(os.Environ(), upstreamsFlags+"=1")
	upstream.Stderr = os.Stderr
	printed, err := upstream.Output()
	if err != nil {
		t.Fatal(err)
	}
	flags := map[string]bool{}
	for line := range strings.Lines(flagsOf(ours())) {
		flags[line] = true
	}
	count := 0
	for line := range strings.Lines(string(printed)) {
		count++
		if !flags[line] {
			t.Errorf("not as upstream's: --%s", line)
		}
		delete(flags, line)
	}
	if count < 100 {
		t.Fatalf("upstream has %d flags only; the comparison is empty", count)
	}
	for line := range flags {
		if !strings.HasPrefix(line, "feature-") && !strings.HasPrefix(line, control.CentralFlag) && !strings.HasPrefix(line, control.DynamicFlag) {
			t.Errorf("neither upstream's nor the feature lifecycle's: --%s", line)
		}
	}
}

func TestTheCommandTakesNoArguments(t *testing.T) {
	cmd := ours()
	cmd.SetOut(io.Discard)
	cmd.SetErr(io.Discard)
	cmd.SetArgs([]string{"serve"})
	if err := cmd.Execute(); err == nil || !strings.Contains(err.Error(), "does not take any arguments") {
		t.Errorf("an argument is taken: %v", err)
	}
}
