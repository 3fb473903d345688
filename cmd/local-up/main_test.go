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

package main

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/kubernetes-features/test/utils/localcluster"
)

// run runs a command and returns its error.
func run(args ...string) error {
	command := newCommand()
	command.SetArgs(args)
	command.SetOut(io.Discard)
	command.SetErr(&bytes.Buffer{})
	return command.Execute()
}

// TestCommandsThatNeedACluster say where they looked for it, and make nothing.
func TestCommandsThatNeedACluster(t *testing.T) {
	for _, command := range []string{"down", "status", "restart"} {
		t.Run(command, func(t *testing.T) {
			t.Chdir(t.TempDir())
			err := run(command)
			here, wdErr := os.Getwd()
			if wdErr != nil {
				t.Fatal(wdErr)
			}
			if exitCode(err) != exitNoCluster || !strings.Contains(err.Error(), filepath.Join(here, localcluster.DefaultDataDir)) {
				t.Errorf("got %v, want it to name the directory", err)
			}
			if entries, err := os.ReadDir("."); err != nil || len(entries) > 0 {
				t.Errorf("the directory has %v, %v", entries, err)
			}
		})
	}
}

// TestNextStepsPrinted names the cluster that was started, and no other.
func TestNextStepsPrinted(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a b")
	c, err := localcluster.Open(localcluster.Config{DataDir: dir, BinDir: "/b"})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	got := greeting(c)
	for _, text := range []string{
		"local-up down '--data-dir=" + dir + "'\n",
		"local-up restart --feature-gates=A=true '--data-dir=" + dir + "' --bin-dir=/b\n",
		"kubectl --kubeconfig '" + dir + "/admin.kubeconfig' get features -n kube-system\n",
	} {
		if !strings.Contains(got, text) {
			t.Errorf("it does not say %q:\n%s", text, got)
		}
	}
	failed := errors.New("it failed")
	if err := howToEnd(c, failed); !errors.Is(err, failed) || err.Error() != failed.Error() {
		t.Errorf("with nothing to end: %v", err)
	}
}
