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

// Package main lets kind run where no registry is reachable, where Docker does not
// run, and where the machine withholds capabilities. "make kind-test" runs it.
//
//	kind-build fetch [flags]             builds what kind would pull
//	kind-build run [flags] -- COMMAND    runs COMMAND with a Docker daemon that has it
//	kind-build lock [flags]              writes lock files with Debian's newest packages
//	kind-build cgroup1 [flags] [FILE]    writes a description of a cluster for cgroup v1
//
// It has a module of its own, so that what it depends on does not move versions
// that ship.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"

	"k8s.io/kubernetes-features/build/kind/base"
	"k8s.io/kubernetes-features/build/kind/host"
	"k8s.io/kubernetes-features/build/kind/programs"
	"k8s.io/kubernetes-features/build/release/rootfs"
)

func main() {
	if host.IsChild(os.Args) {
		os.Exit(host.Main(os.Args))
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	err := run(ctx, os.Args[1:])
	if err == nil || errors.Is(err, flag.ErrHelp) {
		return
	}
	if text := complaint(err, os.Args[1] == inside); text != "" {
		fmt.Fprintln(os.Stderr, "Error:", text)
	}
	os.Exit(host.ExitCode(err))
}

// complaint is what is shown of an error. The process inside has started the command and
// shows that it failed; the outer one passes only the exit code on. The end by a signal
// is shown by the outer one: no other process may be left.
func complaint(err error, inner bool) string {
	var exit *host.ExitError
	if errors.As(err, &exit) && exit.Signaled() != inner {
		return err.Error()
	}
	return withoutExit(err)
}

// withoutExit returns the text of an error but for the exit code of a command.
func withoutExit(err error) string {
	var exit *host.ExitError
	if !errors.As(err, &exit) {
		return err.Error()
	}
	var texts []string
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		for _, e := range joined.Unwrap() {
			if text := withoutExit(e); text != "" {
				texts = append(texts, text)
			}
		}
	}
	return strings.Join(texts, "\n")
}

// options are the command line of all commands.
type options struct {
	root, dir, release, kind, offline string
	cluster                           string
	previous, own, e2e, fresh, input  bool
	apt                               rootfs.Apt
	args                              []string
}

func run(ctx context.Context, args []string) error {
	commands := map[string]func(options, context.Context) error{
		"fetch": options.fetch, "run": options.run, "lock": options.lock, "cgroup1": options.cgroup1, inside: options.inside,
	}
	var o options
	set := flag.NewFlagSet("kind-build", flag.ContinueOnError)
	set.StringVar(&o.root, "root", ".", "the checkout")
	set.StringVar(&o.dir, "dir", "_output/kind", "where what is built is kept")
	set.StringVar(&o.release, "release", "", "the server archive of the release")
	set.StringVar(&o.kind, "kind", "", "the directory of kind's module")
	set.StringVar(&o.offline, "offline", "auto", "yes: make what kind would pull; no: let kind pull it; auto: whichever works")
	set.BoolVar(&o.previous, "previous", false, "build upstream's minor version before, too, for upgrades from it")
	set.BoolVar(&o.own, "own", false, "make what tests of this repository bring into nodes, too: images of its own, and packages")
	set.BoolVar(&o.e2e, "e2e", false, "make upstream's end-to-end tests, their images, and upstream's unchanged version, too")
	set.StringVar(&o.cluster, "cluster", "", "the cluster that the command of run creates; in a daemon that was there, what is left of others is not the command's")
	set.BoolVar(&o.fresh, "fresh", false, "remove that cluster before and after the command of run, whose own it is")
	set.BoolVar(&o.input, "input", false, "pass the input on to the command of run, for example a terminal to a shell")
	set.StringVar(&o.apt.Mirror, "debian-mirror", "", "where Debian's packages are fetched; deb.debian.org by default")
	set.StringVar(&o.apt.SecurityMirror, "debian-security-mirror", "", "where Debian's security updates are fetched; deb.debian.org by default")
	if len(args) == 0 || commands[args[0]] == nil {
		return errors.New("a command is missing: fetch, run, lock or cgroup1")
	}
	if err := set.Parse(args[1:]); err != nil {
		return err
	}
	o.args = set.Args()
	for _, dir := range []*string{&o.root, &o.dir} {
		abs, err := filepath.Abs(*dir)
		if err != nil {
			return err
		}
		*dir = abs
	}
	o.apt.Dir, o.apt.Arch = filepath.Join(o.dir, "debian"), runtime.GOARCH
	return commands[args[0]](o, ctx)
}

func log(format string, args ...any) { fmt.Printf(format+"\n", args...) }

func (o options) lock(ctx context.Context) error {
	return errors.Join(base.NodePackages.WriteLock(ctx, o.root, o.apt), base.TestPackages.WriteLock(ctx, o.root, o.apt), base.TrialPackages.WriteLock(ctx, o.root, o.apt))
}

// builder has the programs that are built into the directory.
func (o options) builder() programs.Builder {
	return programs.Builder{Root: o.root, Dir: filepath.Join(o.dir, "programs"), Arch: runtime.GOARCH, Log: log}
}

// run runs a command where nodes can run. That the base image is made there, too,
// is left to inside, since only there is the daemon.
func (o options) run(ctx context.Context) error {
	if len(o.args) == 0 {
		return errors.New("a command is missing: kind-build run [flags] -- COMMAND")
	}
	if o.fresh && o.cluster == "" {
		return errors.New("-fresh needs -cluster, the cluster that is the command's own")
	}
	m, err := o.read()
	if err != nil {
		return err
	}
	if err := o.builder().Build(ctx, programs.Runtime); err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	var input *os.File
	if o.input {
		input = os.Stdin
	}
	return host.Run(ctx, host.Options{
		Dir: o.dir, Runtime: o.builder().File(programs.Runtime), Cluster: o.cluster, Fresh: o.fresh, Base: m.Base,
		Unload:  func(ctx context.Context) error { return base.Unload(ctx, m.Host, log) },
		Command: append([]string{self, inside, "-root=" + o.root, "-dir=" + o.dir, "--"}, o.args...),
		Env:     os.Environ(), Stdin: input, Stdout: os.Stdout, Stderr: os.Stderr, Log: log,
	})
}
