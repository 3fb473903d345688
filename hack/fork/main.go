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

// fork lands this repository in a kubernetes/kubernetes checkout of the version that
// go.mod names, or writes it as a series for "git am". docs/contributors/fork.md has the
// places and the reasons.
//
// Everything it writes is computed from this repository and from upstream's
// module, whose contents go.sum guards, never from the checkout: landing twice
// is the same as landing once. The checkout is only compared and written.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

// options are the flags.
type options struct {
	source   string
	kubeRoot string
	patch    string
	// different has landing accept a fork's own changes in files that it does not
	// write.
	different bool
}

func main() {
	var o options
	flag.StringVar(&o.source, "source", ".", "Root of this repository.")
	flag.StringVar(&o.kubeRoot, "kube-root", "", "Root of a clean kubernetes/kubernetes checkout.")
	flag.StringVar(&o.patch, "patch", "", "Write a series for git am into this directory, which must be empty or new, and leave the checkout alone.")
	flag.BoolVar(&o.different, "allow-different", false, "Land although files differ from upstream's, as long as landing does not write them; their names are printed.")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, o, os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "fork:", err)
		os.Exit(1)
	}
}

// run lands the delta, or writes it as a series.
func run(ctx context.Context, o options, out io.Writer) error {
	if o.kubeRoot == "" {
		return fmt.Errorf("no checkout is named; use make fork KUBE_ROOT=<checkout of kubernetes/kubernetes>")
	}
	var err error
	for _, dir := range []*string{&o.source, &o.kubeRoot, &o.patch} {
		if *dir == "" {
			continue
		}
		if *dir, err = filepath.Abs(*dir); err != nil {
			return err
		}
	}
	tree, err := open(ctx, o.kubeRoot)
	if err != nil {
		return err
	}
	base, err := findUpstream(ctx, o.source)
	if err != nil {
		return err
	}
	plan, err := newPlan(ctx, o.source, base)
	if err != nil {
		return err
	}
	if len(plan.untracked) > 0 {
		fmt.Fprintf(out, "Not in git, so they do not land: %s\n", some(plan.untracked))
	}
	if err := tree.check(ctx, base, plan, o.different, out); err != nil {
		return err
	}
	if o.patch != "" {
		return writeSeries(ctx, tree, plan, o.patch, out)
	}
	return land(ctx, tree, base, plan, out)
}

// land writes missing files into the checkout and prints a summary.
func land(ctx context.Context, tree checkout, base *upstream, plan *plan, out io.Writer) error {
	if err := tree.prepare(ctx, plan); err != nil {
		return err
	}
	total := 0
	for number, part := range parts {
		files := plan.of(number)
		w, err := tree.write(ctx, files)
		total += w.count()
		if err != nil {
			return fmt.Errorf("%w; %d files are written, of %d that landing has, each whole: land again, which continues", err, total, len(plan.files))
		}
		fmt.Fprintf(out, "%d. %s: %d files new, %d changed, %d removed, %d as they are\n", number+1, part.title, w.created, w.changed, w.removed, len(files)-w.count())
		for _, name := range w.upstreams {
			fmt.Fprintf(out, "   upstream's %s\n", name)
		}
	}
	brought, err := plan.newModules()
	if err != nil {
		return err
	}
	vendored, err := tree.vendor(ctx, brought, total > 0)
	if err != nil {
		return err
	}
	unset, err := tree.withoutMode(ctx, slices.Collect(maps.Values(plan.files)))
	if err != nil {
		return err
	}
	if len(unset) > 0 {
		slices.Sort(unset)
		fmt.Fprintf(out, "git does not see modes there (core.fileMode is false): git add --chmod=+x %s\n", strings.Join(unset, " "))
	}
	if total == 0 && !vendored {
		fmt.Fprintf(out, "%s has it all: nothing changed\n", tree.dir)
		return nil
	}
	fmt.Fprintf(out, "Landed on %s in %s: %d files written\n", base.version, tree.dir, total)
	if vendored {
		fmt.Fprintln(out, "go work vendor has renewed vendor/")
	}
	fmt.Fprintln(out, "Next: look at git status, commit, and run make all there; docs/contributors/fork.md says what a fork can fold into upstream's own files")
	return nil
}

// prepare removes what a killed landing left, and notes that vendor/ has to be
// renewed if a file will be written.
func (c checkout) prepare(ctx context.Context, p *plan) error {
	for _, name := range p.leftovers {
		if err := c.remove(name); err != nil {
			return err
		}
	}
	for _, t := range p.files {
		// The write returns the error.
		if has, err := c.has(t); err != nil || !has {
			return c.vendoringDue(ctx)
		}
	}
	return nil
}
