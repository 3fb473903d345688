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
//	release plugin [flags] makes the archives of kubectl feature alone, and their manifest
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
	"strings"
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
	// download is the address of the folder that the archives will be published in.
	download string
	hostGo   bool
	// plugin leaves out all but kubectl feature.
	plugin bool
	apt    rootfs.Apt
}

// commands are what the program does, by the first argument; makeRelease goes without one.
var commands = map[string]func(context.Context, flags) error{"lock": writeLock, "plugin": makePlugin, "verify": verifyRelease}

func run(ctx context.Context, args []string) error {
	var f flags
	do, defaultPlatforms := makeRelease, "linux/"+runtime.GOARCH
	if len(args) > 0 && commands[args[0]] != nil {
		if args[0] == "plugin" {
			defaultPlatforms = list(targets.PluginPlatforms(), " ")
		}
		do, args = commands[args[0]], args[1:]
	}
	set := flag.NewFlagSet("release", flag.ContinueOnError)
	set.StringVar(&f.root, "root", ".", "the checkout")
	set.StringVar(&f.output, "output", "_output", "where release-stage, release-images and release-tars are written; a relative path is below the checkout")
	set.StringVar(&f.version, "version", "", "the version, for example v1.37.2+feature.1")
	set.StringVar(&f.platforms, "platforms", defaultPlatforms, "os/arch, separated by spaces")
	set.StringVar(&f.source, "source", "", "the address of the repository, for labels of images and the manifest of the plugin")
	set.StringVar(&f.download, "download", "", "the address of the folder that archives will be published in, for the manifest of the plugin")
	set.StringVar(&f.apt.Mirror, "debian-mirror", "", "where Debian's packages are fetched; deb.debian.org by default")
	set.StringVar(&f.apt.SecurityMirror, "debian-security-mirror", "", "where Debian's security updates are fetched; deb.debian.org by default")
	set.BoolVar(&f.hostGo, "host-go", false, "build with the Go on the PATH, whatever its version is")
	if err := set.Parse(args); err != nil {
		return err
	}
	if set.NArg() > 0 {
		return fmt.Errorf("unknown command %q; there are lock, plugin and verify", set.Arg(0))
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

// makePlugin makes what a release has of kubectl feature, and nothing else.
func makePlugin(ctx context.Context, f flags) error {
	platforms, err := targets.ParsePlatforms(f.platforms)
	if err != nil {
		return err
	}
	for _, p := range platforms {
		if !p.Has(targets.Plugin) {
			return fmt.Errorf("%s is not released for %s; use some of %s", pluginName, p, list(targets.PluginPlatforms(), ", "))
		}
	}
	f.plugin = true
	return makeRelease(ctx, f)
}

// list joins the names of platforms.
func list(platforms []targets.Platform, separator string) string {
	var names []string
	for _, p := range platforms {
		names = append(names, p.String())
	}
	return strings.Join(names, separator)
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
	if err := checkDownload(f.download); err != nil {
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
