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

package upstream

import (
	"context"
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"k8s.io/kubernetes-features/build/kind/programs"
	"k8s.io/kubernetes-features/build/release/archive"
	"k8s.io/kubernetes-features/build/release/image"
	"k8s.io/kubernetes-features/build/release/rootfs"
	"k8s.io/kubernetes-features/build/release/targets"
)

// Source is where an unchanged version of Kubernetes comes from: a directory below
// the checkout with a module that requires it.
type Source string

const (
	// Previous is the minor version before the one that ships.
	Previous Source = "hack/previous"
	// Same is the version that ships, without the delta of this repository.
	Same Source = "."
)

// lockFile has the packages in the image of kube-proxy, as in releases.
const lockFile = "build/release/debian.lock"

var required = regexp.MustCompile(`(?m)^(?:require |\t)k8s\.io/kubernetes (v\S+)`)

// Version returns the version of Kubernetes that the module in the checkout at root
// requires.
func (s Source) Version(root string) (targets.Version, error) {
	file := filepath.Join(root, string(s), "go.mod")
	content, err := os.ReadFile(file)
	if err != nil {
		return "", err
	}
	m := required.FindSubmatch(content)
	if m == nil {
		return "", fmt.Errorf("%s requires no k8s.io/kubernetes", file)
	}
	return targets.ParseVersion(string(m[1]))
}

// Release is what is packed.
type Release struct {
	// Source has the version.
	Source Source
	// Programs builds and keeps the binaries.
	Programs programs.Builder
	// Apt fetches the packages in images.
	Apt rootfs.Apt
	// Dir is where archives of images are written.
	Dir string
}

// VersionFlags make a program of upstream tell its version.
func VersionFlags(v targets.Version) string {
	major, minor := v.MajorMinor()
	var flags []string
	for _, pkg := range []string{"k8s.io/client-go/pkg/version", "k8s.io/component-base/version"} {
		for _, value := range [][2]string{{"gitVersion", string(v)}, {"gitMajor", major}, {"gitMinor", minor}, {"gitTreeState", "clean"}} {
			flags = append(flags, "-X", pkg+"."+value[0]+"="+value[1])
		}
	}
	return strings.Join(flags, " ")
}

// program is a command of Kubernetes.
func (s Source) program(name string, v targets.Version) programs.Program {
	pkg := "k8s.io/kubernetes/cmd/" + name
	if name == targets.LogRunner.Name {
		pkg = targets.LogRunner.Package
	}
	return programs.Program{
		Name: name, Module: programs.Module{Dir: string(s)}, Package: pkg,
		Tags: strings.Split(targets.Tags, ","), Flags: VersionFlags(v),
	}
}

// binaries are the programs of the archive outside of images.
func binaries() []string { return []string{"kubeadm", "kubectl", "kubelet"} }

// Stamp returns all that decides on the content of the archive, for comparison.
func (r Release) Stamp(ctx context.Context, v targets.Version) (string, error) {
	compiler, err := programs.Compiler(ctx)
	if err != nil {
		return "", err
	}
	names := append(binaries(), targets.LogRunner.Name)
	for _, b := range targets.Images() {
		names = append(names, b.Name)
	}
	text := string(v) + "\n"
	for _, name := range names {
		text += r.Programs.Stamp(r.Source.program(name, v), compiler)
	}
	for _, file := range []string{string(r.Source) + "/go.mod", string(r.Source) + "/go.sum", lockFile} {
		sum, err := archive.Sum(filepath.Join(r.Programs.Root, filepath.FromSlash(file)), sha256.New())
		if err != nil {
			return "", err
		}
		text += sum + " " + file + "\n"
	}
	return text, nil
}

// Pack writes the server archive of a version.
func (r Release) Pack(ctx context.Context, v targets.Version, file string) error {
	debs, err := r.debs(ctx)
	if err != nil {
		return err
	}
	tree, err := rootfs.Unpack(ctx, debs)
	if err != nil {
		return err
	}
	const bin = "kubernetes/server/bin/"
	entries := []archive.Entry{{Name: "kubernetes/version", Data: []byte(string(v) + "\n")}}
	for _, name := range binaries() {
		p := r.Source.program(name, v)
		if err := r.Programs.Build(ctx, p); err != nil {
			return err
		}
		entries = append(entries, archive.Entry{Name: bin + name, Path: r.Programs.File(p), Mode: 0o755})
	}
	for _, b := range targets.Images() {
		if b.EntryPoint() {
			// Nodes have kubectl, and need no image of it.
			continue
		}
		tar, err := r.image(ctx, b.Name, v, tree)
		if err != nil {
			return fmt.Errorf("cannot make the image of %s %s: %w", b.Name, v, err)
		}
		entries = append(entries,
			archive.Entry{Name: bin + b.Name + ".tar", Path: tar},
			archive.Entry{Name: bin + b.Name + ".docker_tag", Data: []byte(v.ImageTag() + "\n")})
	}
	return archive.WriteFile(ctx, file, entries, time.Unix(0, 0))
}

func (r Release) debs(ctx context.Context) ([]string, error) {
	f, err := os.Open(filepath.Join(r.Programs.Root, filepath.FromSlash(lockFile)))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	lock, err := rootfs.ReadLock(f, r.Apt.Arch)
	if err != nil {
		return nil, err
	}
	return r.Apt.Fetch(ctx, lock)
}

// image writes the archive of a component's image and returns its name.
func (r Release) image(ctx context.Context, name string, v targets.Version, tree rootfs.Tree) (string, error) {
	p, runner := r.Source.program(name, v), r.Source.program(targets.LogRunner.Name, v)
	if err := r.Programs.Build(ctx, p, runner); err != nil {
		return "", err
	}
	below, err := rootfs.Static(tree)
	if err != nil {
		return "", err
	}
	layers := []image.Layer{{Comment: "users and CA certificates", Entries: below}}
	if name == "kube-proxy" {
		tools, err := rootfs.Proxy(tree, r.Programs.Arch)
		if err != nil {
			return "", err
		}
		layers = append(layers, image.Layer{Comment: "programs of Debian", Entries: tools})
	}
	img, err := image.Build(image.Spec{
		Name: name, Arch: r.Programs.Arch, Version: string(v), Entrypoint: []string{image.Runner}, Created: time.Unix(0, 0),
		Layers: append(layers, image.Component(name, r.Programs.File(p), r.Programs.File(runner), nil)...),
	})
	if err != nil {
		return "", err
	}
	file := filepath.Join(r.Dir, name+".tar")
	if err := os.MkdirAll(r.Dir, 0o755); err != nil {
		return "", err
	}
	return file, image.Save(ctx, file, img, v.ImageName(name, r.Programs.Arch), time.Unix(0, 0))
}
