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
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"k8s.io/kubernetes-features/build/release/archive"
	"k8s.io/kubernetes-features/build/release/image"
	"k8s.io/kubernetes-features/build/release/rootfs"
	"k8s.io/kubernetes-features/build/release/sbom"
	"k8s.io/kubernetes-features/build/release/targets"
)

// base is what images of an architecture are built on.
type base struct {
	static, proxy []archive.Entry
	packages      []rootfs.Package
}

// makeImages writes the images of p and enters them into the bill.
func (r *release) makeImages(ctx context.Context, p targets.Platform) error {
	base := r.bases[p.Arch]
	if err := os.MkdirAll(r.images(p.Arch), 0o755); err != nil {
		return err
	}
	for _, b := range targets.Images() {
		img, err := image.Build(r.spec(b, p, base))
		if err != nil {
			return err
		}
		file := filepath.Join(r.images(p.Arch), b.Name+".tar")
		if err := image.Save(ctx, file, img, r.version.ImageName(b.Name, p.Arch), r.source.Time); err != nil {
			return err
		}
		entry := sbom.File{Name: p.String() + "/" + b.Name + ".tar", Contains: []string{p.String() + "/" + b.Name}}
		if !b.EntryPoint() {
			entry.Contains = append(entry.Contains, p.String()+"/"+targets.LogRunner.Name)
		}
		for _, deb := range base.packages {
			if b.Name == "kube-proxy" || rootfs.InStatic(deb.Name) {
				entry.Contains = append(entry.Contains, debName(deb))
			}
		}
		if err := r.enter(entry, file); err != nil {
			return err
		}
	}
	return nil
}

// fetch gets what is below the images of all platforms, and refuses platforms
// that have none.
func (r *release) fetch(ctx context.Context, platforms []targets.Platform) error {
	r.bases = map[string]base{}
	for _, p := range platforms {
		if !slices.Contains(r.components(p), targets.Server) {
			continue
		}
		made, err := r.base(ctx, p)
		if err != nil {
			return err
		}
		r.bases[p.Arch] = made
	}
	return nil
}

// base fetches and unpacks the packages for p.
func (r *release) base(ctx context.Context, p targets.Platform) (base, error) {
	f, err := os.Open(lockFile(r.root))
	if err != nil {
		return base{}, err
	}
	defer f.Close()
	lock, err := rootfs.ReadLock(f, p.Arch)
	if err != nil {
		return base{}, fmt.Errorf("there are no images for %s: %w; KUBE_BUILD_PLATFORMS may have linux/%s", p, err, strings.Join(targets.ImageArchitectures(), " and linux/"))
	}
	apt := r.apt
	apt.Arch = p.Arch
	debs, err := apt.Fetch(ctx, lock)
	if err != nil {
		return base{}, err
	}
	tree, err := rootfs.Unpack(ctx, debs)
	if err != nil {
		return base{}, err
	}
	for _, p := range lock.Packages {
		text, err := rootfs.Copyright(tree, p.Name)
		if err != nil {
			return base{}, err
		}
		r.bill.Debian = append(r.bill.Debian, sbom.Package{
			Name: debName(p), Deb: p.Name, Version: p.Version, Arch: p.Arch, Distro: rootfs.Distro, SHA256: p.SHA256, Copyright: text,
		})
	}
	made := base{packages: lock.Packages}
	if made.static, err = rootfs.Static(tree); err != nil {
		return base{}, err
	}
	made.proxy, err = rootfs.Proxy(tree, p.Arch)
	return made, err
}

// debName names a package in the bill.
func debName(p rootfs.Package) string { return p.For + "/" + p.Name + "_" + p.Version }

// spec returns what the image of b consists of.
func (r *release) spec(b targets.Binary, p targets.Platform, base base) image.Spec {
	s := image.Spec{
		Name: b.Name, Arch: p.Arch, User: rootfs.Root, Entrypoint: []string{image.Runner},
		Version: string(r.version), Revision: r.source.Revision(), Source: r.flags.source, Created: r.source.Time,
		Layers: []image.Layer{{Comment: "users and CA certificates", Entries: base.static}},
	}
	if b.EntryPoint() {
		s.Entrypoint = []string{"/bin/" + b.Name}
		s.Layers = append(s.Layers, image.Layer{Comment: b.Name, Entries: []archive.Entry{
			{Name: "bin/" + b.Name, Path: r.binary(b, p), Mode: 0o755},
		}})
		return s
	}
	var xattrs map[string]string
	switch b.Name {
	case "kube-apiserver":
		xattrs = map[string]string{image.CapabilityAttribute: image.NetBindService()}
	case "kube-proxy":
		s.Layers = append(s.Layers, image.Layer{Comment: "nftables, iptables, conntrack, ipset and kmod of Debian", Entries: base.proxy})
	}
	s.Layers = slices.Concat(s.Layers, image.Component(b.Name, r.binary(b, p), r.binary(targets.LogRunner, p), xattrs))
	return s
}
