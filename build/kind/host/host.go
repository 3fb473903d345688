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

package host

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"k8s.io/kubernetes-features/build/kind/capless/kernel"
	"k8s.io/kubernetes-features/build/kind/capless/withheld"
)

// Options are what Run needs to know.
type Options struct {
	// Dir keeps images and logs of a daemon of Run's own, and what Run has to undo when
	// it was killed. It is absolute.
	Dir string
	// Runtime is the executable of package capless. It is the runtime on machines that
	// withhold capabilities, and finds out what containers of the caller's daemon have.
	Runtime string
	// Cluster is the name of the command's cluster. Only in the caller's daemon it matters:
	// there are clusters of others.
	Cluster string
	// Fresh says that this cluster is the command's alone: what an earlier run has left of it
	// is removed before, and what this one leaves after.
	Fresh bool
	// Base is the image that node images are built on, where it is the command's own.
	Base string
	// Unload removes from the caller's daemon what the command has loaded.
	Unload func(context.Context) error
	// Command is a program and its arguments.
	Command []string
	// Env is the command's environment, this process' by default.
	Env []string
	// Stdin is the command's input, which has none without it. A terminal in whose
	// foreground this process is goes to the command, with its signals.
	Stdin          *os.File
	Stdout, Stderr io.Writer
	// Log says what Run does, in sentences without an end of line.
	Log func(format string, args ...any)

	// settings is the folder of the kernel's settings, kernel reads and write writes it, and
	// observe lists what the machine has. Tests have others.
	settings string
	kernel   fs.FS
	write    func(dir string, values map[string]string) error
	observe  func() (observation, error)
	// terminal is true where Stdin is a terminal that the command gets.
	terminal bool
	// callers is true in the caller's daemon.
	callers bool
	// dirs are folders that are removed when they were missing.
	dirs []string
	// shared is the folder in which runs find each other, and sharing is this one among them.
	shared  string
	sharing *sharing
	// counts is true for settings that the command can have changed.
	counts func(name string) bool
}

// signaled is what shells add to the number of a signal.
const signaled = 128

// ExitError is the end of a command that failed.
type ExitError struct {
	// Code is its exit code, as shells count: 128 and the number of a signal for that.
	Code int
}

// Signaled returns true when a signal has ended the command.
func (e *ExitError) Signaled() bool { return e.Code > signaled }

func (e *ExitError) Error() string { return fmt.Sprintf("the command ended with exit code %d", e.Code) }

// ExitCode returns the exit code of a process for an error of Run: the command's own one
// where it failed.
func ExitCode(err error) int {
	var exit *ExitError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &exit):
		return exit.Code
	}
	return 1
}

// Run runs the command. At the end of ctx the command gets SIGTERM, and what it leaves
// is cleaned up all the same. The error is the command's, and what is left behind.
func Run(ctx context.Context, o Options) (err error) {
	if err := o.complete(); err != nil {
		return err
	}
	lacking, err := withheld.Capabilities(os.DirFS("/proc"))
	if err != nil {
		return err
	}
	release, err := lock(o.Dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, release()) }()
	was, err := finishKilled(ctx, o)
	if err != nil {
		return err
	}
	if o.terminal = HasTerminal(o.Stdin); o.terminal {
		defer func() { err = errors.Join(err, takeBack(o.Stdin)) }()
	}
	why := whyOwn(ctx, o.Env, o.Runtime)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if why == "" {
		o.Log("The nodes run in the Docker daemon that is there")
		return withCallers(ctx, o, was)
	}
	o.Log("The nodes run in a Docker daemon of their own: %s", why)
	return withOwn(ctx, o, lacking)
}

// WhyOwn returns why Run would start a daemon of its own, which reaches no network, and ""
// where it uses the one that is there. It fails where Run would not find what a daemon of
// its own needs. runtime is the executable of package capless.
func WhyOwn(ctx context.Context, runtime string) (string, error) {
	why := whyOwn(ctx, os.Environ(), runtime)
	if ctx.Err() != nil || why == "" {
		return why, ctx.Err()
	}
	if _, err := findDockerd(); err != nil {
		return why, fmt.Errorf("%w; it has to be one of its own: %s", err, why)
	}
	return why, nil
}

// whyOwn asks the daemon, which may be on a machine where more or less is permitted than
// here.
func whyOwn(ctx context.Context, env []string, runtime string) string {
	d := docker{env}
	if err := d.reach(ctx); err != nil {
		return err.Error()
	}
	if _, err := d.withheld(ctx, runtime); err != nil {
		return "the Docker daemon that is there starts no privileged containers: " + err.Error()
	}
	return ""
}

// complete sets defaults and refuses what cannot work.
func (o *Options) complete() error {
	if len(o.Command) == 0 {
		return errors.New("there is no command to run; name one")
	}
	if !filepath.IsAbs(o.Dir) {
		return fmt.Errorf("the folder %q of the Docker daemon is no absolute path; make it one", o.Dir)
	}
	for _, hidden := range append(hiddenDirs, "/run", "/var/run", "/proc") {
		if o.Dir == hidden || strings.HasPrefix(o.Dir, hidden+"/") {
			return fmt.Errorf("the folder %s of the Docker daemon is below %s, which the daemon has for itself; choose another", o.Dir, hidden)
		}
	}
	o.settings, o.shared = cmp.Or(o.settings, kernel.Dir), cmp.Or(o.shared, sharedDir(os.Geteuid()))
	if o.kernel == nil {
		o.kernel = os.DirFS(o.settings)
	}
	if o.write == nil {
		o.write = kernel.Write
	}
	if o.observe == nil {
		o.observe = observe
	}
	if o.dirs == nil {
		o.dirs = madeDirs()
	}
	o.counts = func(string) bool { return true }
	if o.Env == nil {
		o.Env = os.Environ()
	}
	o.Stdout, o.Stderr = cmp.Or(o.Stdout, io.Discard), cmp.Or(o.Stderr, io.Discard)
	if o.Log == nil {
		o.Log = func(string, ...any) {}
	}
	return os.MkdirAll(o.Dir, 0o755)
}
