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

// Package main makes a release: binaries, image archives, the archives that
// Kubernetes is published as, hashes and a bill of materials. "make
// quick-release" runs it; no container runtime is needed.
//
//	release [flags]        makes a release of the checkout
//	release lock [flags]   writes debian.lock with Debian's newest packages
//	release verify [flags] makes the release in place again and compares
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
	"syscall"

	"k8s.io/kubernetes-features/build/release/archive"
	"k8s.io/kubernetes-features/build/release/build"
	"k8s.io/kubernetes-features/build/release/rootfs"
	"k8s.io/kubernetes-features/build/release/targets"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	// The second signal ends the process at once.
	context.AfterFunc(ctx, stop)
	if err := run(ctx, os.Args[1:]); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return
		}
		fmt.Fprintln(os.Stderr, "Error:", err)
		os.Exit(1)
	}
}

// flags are the command line of all commands.
type flags struct {
	root, output, version, platforms, source string
	hostGo                                   bool
	apt                                      rootfs.Apt
}

func run(ctx context.Context, args []string) error {
	var f flags
	set := flag.NewFlagSet("release", flag.ContinueOnError)
	set.StringVar(&f.root, "root", ".", "the checkout")
	set.StringVar(&f.output, "output", "_output", "where release-stage, release-images and release-tars are written; a relative path is below the checkout")
	set.StringVar(&f.version, "version", "", "the version, for example v1.37.2+feature.1")
	set.StringVar(&f.platforms, "platforms", "linux/"+runtime.GOARCH, "os/arch, separated by spaces")
	set.StringVar(&f.source, "source", "", "the address of the repository, for labels of images")
	set.StringVar(&f.apt.Mirror, "debian-mirror", "", "where Debian's packages are fetched; deb.debian.org by default")
	set.StringVar(&f.apt.SecurityMirror, "debian-security-mirror", "", "where Debian's security updates are fetched; deb.debian.org by default")
	set.BoolVar(&f.hostGo, "host-go", false, "build with the Go on the PATH, whatever its version is")
	do := makeRelease
	if len(args) > 0 {
		if other, ok := map[string]func(context.Context, flags) error{"lock": writeLock, "verify": verifyRelease}[args[0]]; ok {
			do, args = other, args[1:]
		}
	}
	if err := set.Parse(args); err != nil {
		return err
	}
	if set.NArg() > 0 {
		return fmt.Errorf("unknown command %q; there are lock and verify", set.Arg(0))
	}
	root, err := filepath.Abs(f.root)
	if err != nil {
		return err
	}
	f.root = root
	if !filepath.IsAbs(f.output) {
		f.output = filepath.Join(root, f.output)
	}
	f.apt.Dir = filepath.Join(f.output, "debian")
	return do(ctx, f)
}

func lockFile(root string) string { return filepath.Join(root, "build", "release", "debian.lock") }

func writeLock(ctx context.Context, f flags) error {
	lock, err := rootfs.NewLock(ctx, f.apt)
	if err != nil {
		return err
	}
	return archive.WriteData(lockFile(f.root), []byte(lock))
}

func makeRelease(ctx context.Context, f flags) error {
	version, err := targets.ParseVersion(f.version)
	if err != nil {
		return err
	}
	platforms, err := targets.ParsePlatforms(f.platforms)
	if err != nil {
		return err
	}
	source, err := build.Describe(ctx, f.root)
	if err != nil {
		return err
	}
	if source.Go, err = build.FindGo(ctx, f.root, f.hostGo); err != nil {
		return err
	}
	if err := builtBy(runtime.Version(), source.Go); err != nil {
		return err
	}
	fmt.Printf("Release %s of commit %s, built with %s\n", version, source, source.Go.Version)
	if f.hostGo {
		fmt.Printf("FORCE_HOST_GO: %s may name another version of Go; the bytes are those of other people only where it is %s\n", build.VersionFile, source.Go.Version)
	}
	r := &release{flags: f, version: version, source: source, out: f.output}
	r.compile = r.goBuild
	return r.make(ctx, platforms)
}

// builtBy is an error when this program, which was built by version, is of another Go
// than the binaries will be: compress/gzip, archive/tar and encoding/json, too, write
// other bytes in other versions, and with other experiments.
func builtBy(version string, binaries build.Go) error {
	if version == binaries.Version {
		return nil
	}
	return fmt.Errorf("the program that makes releases was built by %s and the release would be by %s, which gives other bytes than those of other people: "+
		"run \"make quick-release\", which builds it by the Go of %s; where that says this, \"go env -u GOEXPERIMENT\"", version, binaries.Version, build.VersionFile)
}
