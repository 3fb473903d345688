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
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"k8s.io/kubernetes-features/build/release/archive"
	"k8s.io/kubernetes-features/build/release/build"
	"k8s.io/kubernetes-features/build/release/sbom"
	"k8s.io/kubernetes-features/build/release/targets"
)

// release is a release in the making.
type release struct {
	flags
	version targets.Version
	source  build.Source
	// out is the folder with release-stage, release-images and release-tars.
	out string
	// unpublished is what the names of the last two end in until all is whole, so
	// that a release which fails leaves the one before.
	unpublished string
	// sources are the files of this fork, by their paths: of a clean tree as git has
	// them, whatever happens on disk meanwhile.
	sources map[string]archive.Entry
	// compile builds all binaries of a platform into bin.
	compile func(context.Context, targets.Platform) error
	// bases are below the images, by architecture.
	bases map[string]base
	// bill gathers what has been made.
	bill sbom.Release
	// modules are those of a platform's binaries, by their paths.
	modules map[targets.Platform]map[string]module
}

func (r *release) stage() string { return filepath.Join(r.out, "release-stage") }
func (r *release) bin(p targets.Platform) string {
	return filepath.Join(r.stage(), "bin", p.OS, p.Arch)
}
func (r *release) allImages() string { return filepath.Join(r.out, imagesFolder+r.unpublished) }
func (r *release) images(arch string) string {
	return filepath.Join(r.allImages(), arch)
}
func (r *release) tars() string { return filepath.Join(r.out, tarsFolder+r.unpublished) }

// The folders that a release is published in.
const (
	imagesFolder = "release-images"
	tarsFolder   = "release-tars"
)

// Names in release-tars.
const (
	sourceArchive = "kubernetes-src.tar.gz"
	billFile      = "kubernetes.spdx.json"
)

// components are those that are made for p: all, or the plugin alone.
func (r *release) components(p targets.Platform) []targets.Component {
	if r.plugin {
		return []targets.Component{targets.Plugin}
	}
	return p.Components()
}

// make rebuilds everything, except for what the go command and the cache of
// packages have already. What may fail for want of something comes first.
func (r *release) make(ctx context.Context, platforms []targets.Platform) (err error) {
	end, err := r.begin()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, end()) }()
	r.unpublished = ".new"
	for _, dir := range []string{r.stage(), r.allImages(), r.tars()} {
		if err := os.RemoveAll(dir); err != nil {
			return err
		}
	}
	if err := os.MkdirAll(r.tars(), 0o755); err != nil {
		return err
	}
	r.bill = sbom.Release{Version: string(r.version), Created: r.source.Time, Source: "commit " + r.source.String(), Go: r.source.Go.Version}
	r.modules = map[targets.Platform]map[string]module{}
	if err := r.readSources(ctx); err != nil {
		return err
	}
	if !r.plugin {
		if err := step("Fetching Debian's packages", func() error { return r.fetch(ctx, platforms) }); err != nil {
			return err
		}
	}
	for _, p := range platforms {
		components := r.components(p)
		what := fmt.Sprintf("Building %d binaries for %s", len(targets.For(components)), p)
		if err := step(what, func() error { return r.build(ctx, p) }); err != nil {
			return err
		}
		if !slices.Contains(components, targets.Server) {
			continue
		}
		what = fmt.Sprintf("Making %d images for %s", len(targets.Images()), p)
		if err := step(what, func() error { return r.makeImages(ctx, p) }); err != nil {
			return err
		}
	}
	if err := step("Writing archives", func() error { return r.write(ctx, platforms) }); err != nil {
		return err
	}
	if err := r.publish(); err != nil {
		return err
	}
	fmt.Println("The release is in", r.tars())
	return nil
}

// step prints what is done, and then how long it took.
func step(what string, do func() error) error {
	fmt.Println(what)
	begun := time.Now()
	if err := do(); err != nil {
		return err
	}
	fmt.Printf("  took %.0f s\n", time.Since(begun).Seconds())
	return nil
}

// write writes release-tars: the archives, the manifest of the plugin, the bill and the
// hashes of all.
func (r *release) write(ctx context.Context, platforms []targets.Platform) error {
	if err := r.enterCompletion(); err != nil {
		return err
	}
	if !r.plugin {
		if err := r.packSource(ctx); err != nil {
			return err
		}
		if err := r.copyData(); err != nil {
			return err
		}
	}
	if err := r.source.Unchanged(ctx); err != nil {
		return err
	}
	if err := r.packAll(ctx, platforms); err != nil {
		return err
	}
	if err := r.writeManifest(platforms); err != nil {
		return err
	}
	var bill bytes.Buffer
	if err := sbom.Write(&bill, r.bill); err != nil {
		return err
	}
	if err := archive.WriteData(filepath.Join(r.tars(), billFile), bill.Bytes()); err != nil {
		return err
	}
	return archive.WriteSums(r.tars())
}

// build compiles the binaries of p and enters them into the bill.
func (r *release) build(ctx context.Context, p targets.Platform) error {
	if err := os.MkdirAll(r.bin(p), 0o755); err != nil {
		return err
	}
	if err := r.compile(ctx, p); err != nil {
		return fmt.Errorf("cannot build the binaries for %s: %w", p, err)
	}
	if slices.Contains(r.components(p), targets.Plugin) {
		if err := checkPluginSize(filepath.Join(r.bin(p), p.Executable(pluginName)), p); err != nil {
			return err
		}
	}
	found, err := r.findModules(ctx, p)
	if err != nil {
		return err
	}
	r.modules[p] = found
	for _, b := range targets.For(r.components(p)) {
		file := r.binary(b, p)
		modules, err := sbom.Modules(file, string(r.version))
		if err != nil {
			return err
		}
		if err := r.license(modules, p); err != nil {
			return err
		}
		if err := r.enter(sbom.File{Name: p.String() + "/" + b.Name, Modules: modules}, file); err != nil {
			return err
		}
	}
	return nil
}

// goBuild runs the go command, in a folder for what it leaves when it is ended.
func (r *release) goBuild(ctx context.Context, p targets.Platform) (err error) {
	temporary := filepath.Join(r.stage(), "tmp")
	if err := os.MkdirAll(temporary, 0o755); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(temporary)) }()
	cmd := r.source.Command(ctx, r.version, p, build.Folder(r.bin(p)), build.Packages(r.components(p))...)
	cmd.Env = append(cmd.Env, "GOTMPDIR="+temporary)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	return cmd.Run()
}

func (r *release) binary(b targets.Binary, p targets.Platform) string {
	return filepath.Join(r.bin(p), p.Executable(b.Name))
}

// enter adds a file to the bill.
func (r *release) enter(f sbom.File, file string) error {
	sum, err := archive.Sum(file, sha256.New())
	if err != nil {
		return err
	}
	f.SHA256 = sum
	r.bill.Files = append(r.bill.Files, f)
	return nil
}

// completion is of kubectl feature; kubectl looks for it beside the plugin.
const completion = "kubectl_complete-feature"

// completionSource is where the sources have it.
const completionSource = "cmd/kubectl-feature/" + completion

// dataSources are where the sources have files that are published as they are, by their names in
// release-tars: the history of the gates, and its schema.
var dataSources = map[string]string{
	"gates.json":        "pkg/featurelifecycle/history/gates.json",
	"gates.schema.json": "pkg/featurelifecycle/history/gates.schema.json",
}

// readSources finds the sources of this fork; those of upstream are Go modules,
// which go.sum names.
func (r *release) readSources(ctx context.Context) error {
	entries, err := r.source.Entries(ctx)
	if err != nil {
		return err
	}
	r.sources = map[string]archive.Entry{}
	for _, e := range entries {
		r.sources[e.Name] = e
	}
	for _, needed := range slices.Concat([]string{completionSource, ownLicense}, slices.Sorted(maps.Values(dataSources))) {
		if _, ok := r.sources[needed]; !ok {
			return fmt.Errorf("%s of %s has no %s", r.root, r.source, needed)
		}
	}
	return nil
}

// content reads an entry.
func content(e archive.Entry) ([]byte, error) {
	if e.Path != "" {
		return os.ReadFile(e.Path)
	}
	return e.Data, nil
}

// packSource writes the sources and enters them into the bill.
func (r *release) packSource(ctx context.Context) error {
	file := filepath.Join(r.tars(), sourceArchive)
	if err := archive.WriteFile(ctx, file, slices.Collect(maps.Values(r.sources)), r.source.Time); err != nil {
		return err
	}
	return r.enter(sbom.File{Name: sourceArchive}, file)
}

// enterCompletion enters the completion, which archives have as the sources have it,
// into the bill.
func (r *release) enterCompletion() error {
	data, err := content(r.sources[completionSource])
	if err != nil {
		return err
	}
	r.bill.Files = append(r.bill.Files, sbom.File{Name: completion, SHA256: fmt.Sprintf("%x", sha256.Sum256(data))})
	return nil
}

// copyData writes the files that are published as they are, and enters them into the bill.
func (r *release) copyData() error {
	for _, name := range slices.Sorted(maps.Keys(dataSources)) {
		data, err := content(r.sources[dataSources[name]])
		if err != nil {
			return err
		}
		file := filepath.Join(r.tars(), name)
		if err := archive.WriteData(file, data); err != nil {
			return err
		}
		if err := r.enter(sbom.File{Name: name}, file); err != nil {
			return err
		}
	}
	return nil
}

// packAll writes the archives of all components, as many at once as there are
// processors: compressing takes most of the time. Then it enters them into the
// bill.
func (r *release) packAll(ctx context.Context, platforms []targets.Platform) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(runtime.GOMAXPROCS(0))
	for _, p := range platforms {
		for _, c := range r.components(p) {
			group.Go(func() error { return r.pack(ctx, c, p) })
		}
	}
	if err := group.Wait(); err != nil {
		return err
	}
	for _, p := range platforms {
		for _, c := range r.components(p) {
			f := sbom.File{Name: archiveName(c, p)}
			if hasCompletion(c, p) {
				f.Contains = append(f.Contains, completion)
			}
			for _, b := range targets.Of(c) {
				f.Contains = append(f.Contains, p.String()+"/"+b.Name)
			}
			if c == targets.Server {
				for _, b := range targets.Images() {
					f.Contains = append(f.Contains, p.String()+"/"+b.Name+".tar")
				}
			}
			if c == targets.Node || c == targets.Server {
				f.Contains = append(f.Contains, sourceArchive)
			}
			if err := r.enter(f, filepath.Join(r.tars(), f.Name)); err != nil {
				return err
			}
		}
	}
	return nil
}

func archiveName(c targets.Component, p targets.Platform) string {
	if c == targets.Plugin {
		return fmt.Sprintf("%s-%s.tar.gz", pluginName, p.Tag())
	}
	return fmt.Sprintf("kubernetes-%s-%s.tar.gz", c, p.Tag())
}

// pack writes the archive of a component.
func (r *release) pack(ctx context.Context, c targets.Component, p targets.Platform) error {
	contents := r.contents
	if c == targets.Plugin {
		contents = r.pluginContents
	}
	entries, err := contents(c, p)
	if err != nil {
		return err
	}
	return archive.WriteFile(ctx, filepath.Join(r.tars(), archiveName(c, p)), entries, r.source.Time)
}

// contents returns what is in the archive of one of upstream's components, in the layout
// of upstream's build/lib/release.sh.
func (r *release) contents(c targets.Component, p targets.Platform) ([]archive.Entry, error) {
	entries := r.binaries(c, p)
	if c != targets.Client {
		licenses, err := r.licenses(c, p)
		if err != nil {
			return nil, err
		}
		entries = append(entries, licenses...)
		entries = append(entries,
			archive.Entry{Name: "kubernetes/version", Data: []byte(string(r.version) + "\n")},
			archive.Entry{Name: "kubernetes/" + sourceArchive, Path: filepath.Join(r.tars(), sourceArchive)})
	}
	if c == targets.Server {
		entries = append(entries, archive.Entry{Name: "kubernetes/addons", Dir: true})
		for _, b := range targets.Images() {
			name := "kubernetes/server/bin/" + b.Name
			entries = append(entries,
				archive.Entry{Name: name + ".tar", Path: filepath.Join(r.images(p.Arch), b.Name+".tar")},
				archive.Entry{Name: name + ".docker_tag", Data: []byte(r.version.ImageTag() + "\n")})
		}
	}
	return entries, nil
}

// binaries are the programs of a component, and the completion of one.
func (r *release) binaries(c targets.Component, p targets.Platform) []archive.Entry {
	dir := "kubernetes/" + string(c) + "/bin/"
	var entries []archive.Entry
	for _, b := range targets.Of(c) {
		entries = append(entries, archive.Entry{Name: dir + p.Executable(b.Name), Path: r.binary(b, p), Mode: 0o755})
	}
	script := r.sources[completionSource]
	script.Name, script.Mode = dir+completion, 0o755
	return append(entries, script)
}
