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

package kindcluster

import (
	"bytes"
	"context"
	"fmt"
	"os/exec"
	"strings"
	"testing"

	"k8s.io/kubernetes-features/test/e2e_features/framework"
)

// output runs a command and returns what it printed to its output. An error has what it
// printed to its error stream.
func output(ctx context.Context, input []byte, command string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, command, args...)
	var errors strings.Builder
	cmd.Stdin, cmd.Stderr = bytes.NewReader(input), &errors
	data, err := cmd.Output()
	if err != nil {
		err = fmt.Errorf("%s: %w: %s", cmd, err, strings.TrimSpace(errors.String()))
	}
	return string(data), err
}

// show runs a command and shows all that it prints in the test's output.
func show(ctx context.Context, t testing.TB, command string, args ...string) error {
	t.Helper()
	cmd := exec.CommandContext(ctx, command, args...)
	cmd.Stdout, cmd.Stderr = t.Output(), t.Output()
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%s: %w; its output is above", cmd, err)
	}
	return nil
}

// runMake runs a target of the Makefile for the cluster of tests. Settings are variables of
// the Makefile.
func runMake(ctx context.Context, t testing.TB, target string, settings ...string) error {
	t.Helper()
	args := append([]string{"--no-print-directory", "-C", framework.Root(t), target, "OUT=" + Out(t), "KIND_CLUSTER=" + name, "KIND_KUBECONFIG=" + Kubeconfig(t)}, settings...)
	return show(ctx, t, "make", args...)
}

// Kubeconfig is the file with which administrators reach the cluster.
func Kubeconfig(t testing.TB) string { return Out(t, "kind", "kubeconfig") }

// kind runs kind's own command.
func kind(ctx context.Context, t testing.TB, args ...string) error {
	t.Helper()
	return show(ctx, t, Out(t, "tools", "kind"), args...)
}
