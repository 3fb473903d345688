/*
Copyright 2026 The Kubernetes Authors.

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
	"os"
	"path/filepath"
	"slices"

	"k8s.io/kubernetes-features/hack/release/archive"
	"k8s.io/kubernetes-features/hack/release/image"
	"k8s.io/kubernetes-features/hack/release/rootfs"
	"k8s.io/kubernetes-features/hack/release/sbom"
	"k8s.io/kubernetes-features/hack/release/targets"
)

// base is what images of an architecture are built on.
type base struct {
	static, proxy []archive.Entry
	packages      []rootfs.Package
}

// makeImages writes the images of p and enters them into the bill.
func (r *release) makeImages(ctx context.Context, p targets.Platform) error {
	base, err := r.base(ctx, p.Arch)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(r.images(p.Arch), 0o755); err != nil {
		return err
	}
	for _, b := range targets.Images() {
		img, err := image.Build(r.spec(b, p, base))
		if err != nil {
			return err
		}
		file := filepath.Join(r.images(p.Arch), b.Name+".tar")
		if err := image.Save(file, img, r.version.ImageName(b.Name, p.Arch), r.source.Time); err != nil {
			return err
		}
		entry := sbom.File{Name: p.String() + "/" + b.Name + ".tar", Contains: []string{p.String() + "/" + b.Name}}
		if !b.EntryPoint() {
			entry.Contains = append(entry.Contains, p.String()+"/"+targets.LogRunner.Name)
		}
		for _, deb := range base.packages {
			if b.Name == "kube-proxy" || deb.Name == "ca-certificates" {
				entry.Contains = append(entry.Contains, debName(deb))
			}
		}
		if err := r.enter(entry, file); err != nil {
			return err
		}
	}
	return nil
}

// base fetches and unpacks the packages for arch.
func (r *release) base(ctx context.Context, arch string) (base, error) {
	f, err := os.Open(lockFile(r.root))
	if err != nil {
		return base{}, err
	}
	defer f.Close()
	packages, err := rootfs.ReadLock(f, arch)
	if err != nil {
		return base{}, err
	}
	apt := r.apt
	apt.Arch = arch
	debs, err := apt.Fetch(ctx, packages)
	if err != nil {
		return base{}, err
	}
	tree, err := rootfs.Unpack(ctx, debs)
	if err != nil {
		return base{}, err
	}
	for _, p := range packages {
		r.bill.Debian = append(r.bill.Debian, sbom.Package{
			Name: debName(p), Deb: p.Name, Version: p.Version, Arch: p.Arch, Suite: rootfs.Suite, SHA256: p.SHA256,
		})
	}
	made := base{packages: packages}
	if made.static, err = rootfs.Static(tree); err != nil {
		return base{}, err
	}
	made.proxy, err = rootfs.Proxy(tree, arch)
	return made, err
}

// debName names a package in the bill.
func debName(p rootfs.Package) string { return p.For + "/" + p.Name + "_" + p.Version }

// spec says what the image of b consists of.
func (r *release) spec(b targets.Binary, p targets.Platform, base base) image.Spec {
	s := image.Spec{
		Name: b.Name, Arch: p.Arch, User: rootfs.Root, Entrypoint: []string{image.Runner}, Licenses: "Apache-2.0",
		Version: string(r.version), Revision: r.source.Commit, Source: r.flags.source, Created: r.source.Time,
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
		s.Licenses = "Apache-2.0 AND GPL-2.0-or-later"
		s.Layers = append(s.Layers, image.Layer{Comment: "nftables, iptables, conntrack, ipset and kmod of Debian", Entries: base.proxy})
	}
	s.Layers = slices.Concat(s.Layers, image.Component(b.Name, r.binary(b, p), r.binary(targets.LogRunner, p), xattrs))
	return s
}
