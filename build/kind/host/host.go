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
	"os"
	"path/filepath"
	"strings"

	"k8s.io/kubernetes-features/build/kind/capless/withheld"
)

// Options are what Run needs to know.
type Options struct {
	// Dir keeps images and logs of a daemon of Run's own, and what Run has to undo when
	// it was killed. It is absolute.
	Dir string
	// Runtime is the executable of package capless. Only machines that withhold
	// capabilities need it.
	Runtime string
	// Command is a program and its arguments.
	Command []string
	// Env is the command's environment, this process' by default.
	Env            []string
	Stdout, Stderr io.Writer
	// Log says what Run does, in sentences without an end of line.
	Log func(format string, args ...any)

	// settings is the folder of the kernel's settings, and observe is how the machine is
	// looked at: for tests.
	settings string
	observe  func() (observation, error)
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

// ExitCode returns the code by which a process gives an error of Run on: the command's
// own one where it failed.
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
	if err := finishKilled(ctx, o); err != nil {
		return err
	}
	why := whyOwn(ctx, o.Env, lacking)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if why == "" {
		o.Log("The nodes run in the Docker daemon that is there")
		return withCallers(ctx, o)
	}
	o.Log("The nodes run in a Docker daemon of their own: %s", why)
	return withOwn(ctx, o, lacking)
}

// WhyOwn returns why Run would start a daemon of its own, which reaches no network, and ""
// where it uses the one that is there.
func WhyOwn(ctx context.Context) (string, error) {
	lacking, err := withheld.Capabilities(os.DirFS("/proc"))
	if err != nil {
		return "", err
	}
	return whyOwn(ctx, os.Environ(), lacking), ctx.Err()
}

func whyOwn(ctx context.Context, env, lacking []string) string {
	if err := (docker{env}).reach(ctx); err != nil {
		return err.Error()
	}
	if len(lacking) > 0 {
		return "the machine withholds " + strings.Join(lacking, ", ") + ", without which the Docker daemon that is there starts no privileged containers"
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
	o.settings = cmp.Or(o.settings, "/proc/sys")
	if o.observe == nil {
		o.observe = observe
	}
	if o.Env == nil {
		o.Env = os.Environ()
	}
	o.Stdout, o.Stderr = cmp.Or(o.Stdout, io.Discard), cmp.Or(o.Stderr, io.Discard)
	if o.Log == nil {
		o.Log = func(string, ...any) {}
	}
	return os.MkdirAll(o.Dir, 0o755)
}
