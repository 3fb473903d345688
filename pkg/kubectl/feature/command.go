/*
Copyright 2026 The Kubernetes Authors.

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

// Package feature is the kubectl plugin "kubectl feature". It reads Features and
// FeatureReports and judges them with the library's packages; it knows the gates
// and the catalogue of the build it is part of, as the binaries of its version do.
// It changes nothing in a cluster.
package feature

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
)

// Exit codes of upgrade-check, for scripts.
const (
	// ExitSafe: every feature is safe.
	ExitSafe = 0
	// ExitNotSafe: at least one feature is not.
	ExitNotSafe = 1
	// ExitUnknown: none is known to be not safe, but it cannot be told of all.
	ExitUnknown = 2
	// ExitFailed: the command gave no answer: wrong flags, no access, or a question
	// that makes no sense.
	ExitFailed = 3
)

// exitError ends the command with a code and without a message: the output said
// why.
type exitError int

func (e exitError) Error() string { return fmt.Sprintf("exit code %d", int(e)) }

// NewCommand returns the plugin's command.
func NewCommand(streams genericiooptions.IOStreams) *cobra.Command {
	flags := genericclioptions.NewConfigFlags(true)
	cmd := &cobra.Command{
		Use:           "kubectl-feature",
		Short:         "Look at feature gates of a cluster and at what they store",
		Annotations:   map[string]string{cobra.CommandDisplayNameAnnotation: "kubectl feature"},
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	cmd.SetIn(streams.In)
	cmd.SetOut(streams.Out)
	cmd.SetErr(streams.ErrOut)
	flags.AddFlags(cmd.PersistentFlags())
	cmd.AddCommand(newUpgradeCheck(flags, streams))
	return cmd
}

// Run runs the command with arguments and returns the process's exit code. An
// interrupt ends it.
func Run(args []string, streams genericiooptions.IOStreams) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	cmd := NewCommand(streams)
	cmd.SetArgs(args)
	err := cmd.ExecuteContext(ctx)
	var code exitError
	switch {
	case err == nil:
		return ExitSafe
	case errors.As(err, &code):
		return int(code)
	default:
		fmt.Fprintln(streams.ErrOut, "error:", err)
		return ExitFailed
	}
}
