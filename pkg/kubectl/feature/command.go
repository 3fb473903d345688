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

package feature

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"runtime/debug"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/component-base/version"
)

// Exit codes, for scripts. All commands follow one convention: 0 yes, 1 no, 2 not
// known (yet), 3 the command failed.
const (
	// ExitSafe: upgrade-check found every feature safe.
	ExitSafe = 0
	// ExitNotSafe: at least one feature is not.
	ExitNotSafe = 1
	// ExitUnknown: none is known to be unsafe, but some are unknown.
	ExitUnknown = 2
	// ExitBlocked: plan found something that would hold the change.
	ExitBlocked = ExitNotSafe
	// ExitDiffer: diff found a difference.
	ExitDiffer = ExitNotSafe
	// ExitFailed: the command gave no answer: wrong flags, no access, a question
	// that makes no sense, or a request that was refused.
	ExitFailed = 3

	// ExitDone: the request of enable, disable or reset is stored or, with --wait,
	// complete.
	ExitDone = ExitSafe
	// ExitHeld: the request is stored, and the transition needs user action to
	// continue.
	ExitHeld = ExitNotSafe
	// ExitTimedOut: the request is stored, and the transition was still under way
	// when the time to wait for it was over.
	ExitTimedOut = ExitUnknown
)

// exitError ends the command with a code and without a message: the output has
// the reason.
type exitError int

func (e exitError) Error() string { return fmt.Sprintf("exit code %d", int(e)) }

const rootLong = `Inspect feature gates of a cluster and the data they store, and change them.

Features are looked for in kube-system, where those of Kubernetes are, whatever the namespace of the context is; --namespace names
that of an operator's.

Exit codes of all commands: 0 yes, or done; 1 no; 2 not known (yet); 3 the command failed or was refused.`

// NewCommand returns the plugin's command.
func NewCommand(streams genericiooptions.IOStreams) *cobra.Command {
	return newCommand(newBase(streams))
}

func newCommand(b *base) *cobra.Command {
	cmd := &cobra.Command{
		Use:           "kubectl-feature",
		Short:         "Inspect feature gates of a cluster and the data they store, and change them",
		Long:          rootLong,
		Annotations:   map[string]string{cobra.CommandDisplayNameAnnotation: "kubectl feature"},
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	addVersion(cmd)
	cmd.SetIn(b.In)
	cmd.SetOut(b.Out)
	cmd.SetErr(b.ErrOut)
	cmd.SetFlagErrorFunc(adviseFlags)
	b.flags.AddFlags(cmd.PersistentFlags())
	cmd.PersistentFlags().Lookup("namespace").Usage = "The namespace of the Features: kube-system, where those of Kubernetes are, without it, whatever that of the context is; those of an operator are in its own."
	b.completeConnection(cmd)
	cmd.AddCommand(newList(b), newDescribe(b), newUses(b), newPlan(b), newRollout(b), newPause(b), newResume(b), newWait(b), newClean(b), newDiff(b), newReport(b))
	cmd.AddCommand(newEnable(b), newDisable(b), newReset(b), newUpgradeCheck(b), newGates(b), newLeftovers(b))
	cmd.SetHelpCommand(newHelp())
	return cmd
}

// addVersion adds the flag --version, as all binaries have it. Cobra's own flag would take
// -v, too, and its text would be a template, which makes a linker keep all methods.
func addVersion(cmd *cobra.Command) {
	show := cmd.Flags().Bool("version", false, "Print version information and quit.")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if !*show {
			return cmd.Help()
		}
		_, err := fmt.Fprintln(cmd.OutOrStdout(), "Kubernetes", version.Get())
		return err
	}
}

// newHelp is cobra's command, but for a name that no command has: that is an error.
func newHelp() *cobra.Command {
	return &cobra.Command{
		Use:   "help [COMMAND]",
		Short: "Help about any command",
		ValidArgsFunction: func(cmd *cobra.Command, args []string, begun string) ([]cobra.Completion, cobra.ShellCompDirective) {
			var names []string
			for _, c := range cmd.Root().Commands() {
				if c.IsAvailableCommand() && len(args) == 0 {
					names = append(names, c.Name())
				}
			}
			return beginning(names, begun), cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			about, rest, err := cmd.Root().Find(args)
			if err != nil || len(rest) > 0 {
				return fmt.Errorf("there is no command %q; kubectl feature --help lists all", strings.Join(args, " "))
			}
			about.InitDefaultHelpFlag()
			return about.Help()
		},
	}
}

// Run runs the command with arguments and returns the process's exit code. An
// interrupt ends it.
func Run(args []string, streams genericiooptions.IOStreams) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	// The next signal ends a command that does not end by itself, as if it
	// were not handled here.
	context.AfterFunc(ctx, stop)
	return newBase(streams).run(ctx, args)
}

// run runs the command and prints its error. A panic is an error, too: its exit code,
// 2, would mean that something is not known yet.
func (b *base) run(ctx context.Context, args []string) (exitCode int) {
	defer func() {
		if fault := recover(); fault != nil {
			fmt.Fprintln(b.ErrOut, "error:", printableLines(fmt.Sprintf("this is a fault of kubectl-feature, please report it: %v\n%s", fault, debug.Stack()), "  "))
			exitCode = ExitFailed
		}
	}()
	cmd := newCommand(b)
	cmd.SetArgs(args)
	err := cmd.ExecuteContext(ctx)
	var code exitError
	switch {
	case err == nil:
		return ExitSafe
	case errors.As(err, &code):
		return int(code)
	default:
		for _, e := range allOf(err) {
			fmt.Fprintln(b.ErrOut, "error:", printableLines(advised(e), "  "))
		}
		return ExitFailed
	}
}

// allOf are the errors that were joined, also by joining what was joined. Those that
// wrap several and have words of their own are one.
func allOf(err error) []error {
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok || errors.Join(joined.Unwrap()...).Error() != err.Error() {
		return []error{err}
	}
	var all []error
	for _, e := range joined.Unwrap() {
		all = append(all, allOf(e)...)
	}
	return all
}
