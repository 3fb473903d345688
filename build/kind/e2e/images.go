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

package e2e

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"k8s.io/kubernetes-features/build/kind/base"
	"k8s.io/kubernetes-features/build/kind/programs"
	"k8s.io/kubernetes-features/build/release/archive"
	"k8s.io/kubernetes-features/build/release/image"
	"k8s.io/kubernetes-features/build/release/rootfs"
)

// registry has the images of tests.
const registry = "registry.k8s.io/e2e-test-images/"

// content is what an image has. Where the fields come from is in the Dockerfile of
// the image's folder in upstream's test/images.
type content struct {
	// programs are those of upstream's module by their paths.
	programs map[string]programs.Program
	// files are read from upstream's test/images, by their paths in the image.
	files map[string]string
	// data has further files.
	data map[string]string
	// links are symbolic links by their paths.
	links map[string]string
	// setuid are the paths of programs that run as their owner.
	setuid []string
	// served are images that agnhost's own registry has, by names with tags.
	served map[string]content
	// tools adds Debian's, and busybox for all other commands.
	tools bool
	// entrypoint and command are what runs.
	entrypoint, command []string
	// user is what it runs as.
	user int
}

// page is where upstream's web server has its page, which tests move.
const page = "usr/share/nginx/html/index.html"

// contents are the images by their names below the registry, whatever the tag.
var contents = map[string]content{
	"agnhost": {
		tools:    true,
		programs: map[string]programs.Program{"agnhost": programs.Agnhost, "coredns": programs.CoreDNSNewest},
		files:    map[string]string{"localhost.crt": "agnhost/porter/localhost.crt", "localhost.key": "agnhost/porter/localhost.key"},
		links:    map[string]string{"agnhost-2": "agnhost"},
		data: map[string]string{
			"etc/passwd": "root:x:0:0:root:/root:/bin/sh\nuser-defined-in-image:x:1000:1000::/home/user-defined-in-image:/bin/sh\n",
			"etc/group":  "root:x:0:\nuser-defined-in-image:x:1000:\ngroup-defined-in-image:x:50000:user-defined-in-image\n",
		},
		// As in upstream's agnhost/fakeregistryserver/images.txt.
		served:     map[string]content{"pause:testing": {programs: map[string]programs.Program{"pause": programs.Pause}, entrypoint: []string{"/pause"}}},
		entrypoint: []string{"/agnhost"}, command: []string{"pause"},
	},
	"busybox":           {tools: true, command: []string{"sh"}},
	"glibc-dns-testing": {tools: true, programs: map[string]programs.Program{"coredns": programs.CoreDNSNewest}, command: []string{"sh"}},
	"ipc-utils":         {tools: true, command: []string{"sh"}},
	"kitten": {
		tools: true, programs: map[string]programs.Program{"agnhost": programs.Agnhost},
		files: map[string]string{"data.json": "kitten/html/data.json", "kitten.jpg": "kitten/html/kitten.jpg"},
		// A spec looks for the name of upstream's base in an image that is a volume.
		data:       map[string]string{"etc/os-release": "PRETTY_NAME=\"tools of Debian in place of those of Alpine Linux\"\n"},
		entrypoint: []string{"/agnhost"}, command: []string{"test-webserver"},
	},
	"nginx": {
		tools: true, data: map[string]string{page: "<h1>Welcome</h1>\n"},
		command: []string{"httpd", "-f", "-p", "80", "-h", "/" + path.Dir(page)},
	},
	"nonewprivs": {
		programs: map[string]programs.Program{"usr/local/bin/nnp": programs.NoNewPrivileges}, setuid: []string{"usr/local/bin/nnp"},
		tools: true, command: []string{"nnp"},
	},
	"nonroot":                {tools: true, command: []string{"sh"}, user: 1234},
	"regression-issue-74839": {programs: map[string]programs.Program{"regression-issue-74839": programs.Regression74839}, entrypoint: []string{"/regression-issue-74839"}},
	"sample-device-plugin": {
		programs:   map[string]programs.Program{"sampledeviceplugin": programs.SampleDevicePlugin},
		entrypoint: []string{"/sampledeviceplugin", "-alsologtostderr"},
	},
}

// otherImages are images that nodes have anyway, and one that no registry has.
var otherImages = []string{"registry.k8s.io/pause", "registry.k8s.io/etcd", "invalid.registry.k8s.io/invalid/alpine"}

// Builder makes images.
type Builder struct {
	// Programs builds and keeps programs.
	Programs programs.Builder
	// Dir is where archives of images are written.
	Dir string
	// Debs are files of the packages of base.TestPackages.
	Debs []string
}

// Images writes the archives of those images among names that are made here, and
// returns their files and the names of all others, but those of otherImages.
func (b Builder) Images(ctx context.Context, names []string) (files, unknown []string, err error) {
	if err := os.MkdirAll(b.Dir, 0o755); err != nil {
		return nil, nil, err
	}
	tree, err := rootfs.Unpack(ctx, b.Debs)
	if err != nil {
		return nil, nil, err
	}
	tools, err := b.tools(ctx, tree)
	if err != nil {
		return nil, nil, err
	}
	sources, err := b.sources(ctx)
	if err != nil {
		return nil, nil, err
	}
	for _, name := range names {
		repository, tag, _ := strings.Cut(strings.TrimPrefix(name, registry), ":")
		c, ok := contents[repository]
		if !ok || !strings.HasPrefix(name, registry) {
			if i := strings.LastIndexByte(name, ':'); i < 0 || !slices.Contains(otherImages, name[:i]) {
				unknown = append(unknown, name)
			}
			continue
		}
		entries, err := b.entries(ctx, c, sources)
		if err != nil {
			return nil, nil, fmt.Errorf("cannot make the image %s: %w", name, err)
		}
		var layers []image.Layer
		if c.tools {
			// Nodes store a layer that images share once.
			layers = append(layers, image.Layer{Comment: "programs of Debian", Entries: tools})
		}
		img, err := image.Build(b.spec(c, repository, tag, append(layers, image.Layer{Comment: repository, Entries: entries})))
		if err != nil {
			return nil, nil, err
		}
		file := base.ImageFile(b.Dir, name)
		if err := image.Save(ctx, file, img, name, time.Unix(0, 0)); err != nil {
			return nil, nil, fmt.Errorf("cannot write the image %s: %w", name, err)
		}
		files = append(files, file)
	}
	return files, unknown, nil
}

// spec describes an image of these layers.
func (b Builder) spec(c content, repository, tag string, layers []image.Layer) image.Spec {
	return image.Spec{
		Name: repository, Version: tag, Arch: b.Programs.Arch, User: c.user, Created: time.Unix(0, 0),
		Entrypoint: c.entrypoint, Command: c.command, Layers: layers,
	}
}

// debianTools are the commands that Debian's packages have and busybox has not, or
// not with the flags that tests give.
var debianTools = []string{
	"usr/bin/bash", "usr/bin/curl", "usr/bin/dig", "usr/bin/getent", "usr/bin/ipcmk", "usr/bin/ipcs", "usr/bin/lsns", "usr/bin/nc.openbsd",
	"usr/bin/nsenter", "usr/bin/nslookup", "usr/bin/socat", "usr/bin/ip", "usr/bin/ss",
}

// busybox is Debian's static one in the tree of packages.
const busybox = "usr/bin/busybox"

// tools returns the files below programs: Debian's tools with what they need, and
// busybox for all other commands that it has.
func (b Builder) tools(ctx context.Context, tree rootfs.Tree) ([]archive.Entry, error) {
	found, err := rootfs.Closure(tree, b.Programs.Arch, append(slices.Clone(debianTools), busybox))
	if err != nil {
		return nil, err
	}
	for _, link := range []string{"bin", "sbin", "lib", "lib64"} {
		if e, ok := tree[link]; ok {
			found[link] = e
		}
	}
	found["usr/bin/nc"] = archive.Entry{Name: "usr/bin/nc", Link: "nc.openbsd"}
	// The shell of Debian's busybox runs its own commands before those of PATH, and keeps
	// variables from them whose names are none of a shell.
	found["usr/bin/sh"] = archive.Entry{Name: "usr/bin/sh", Link: "bash"}
	applets, err := applets(ctx, tree[busybox].Data)
	if err != nil {
		return nil, err
	}
	for _, name := range applets {
		name = "usr/bin/" + name
		if _, ok := found[name]; !ok {
			found[name] = archive.Entry{Name: name, Link: "busybox"}
		}
	}
	return slices.Collect(maps.Values(found)), nil
}

// applets asks busybox, which is of this machine's architecture, for its commands.
func applets(ctx context.Context, program []byte) ([]string, error) {
	dir, err := os.MkdirTemp("", "busybox-")
	if err != nil {
		return nil, err
	}
	file := filepath.Join(dir, "busybox")
	if err := os.WriteFile(file, program, 0o700); err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	out, err := exec.CommandContext(ctx, file, "--list").Output()
	if err != nil {
		err = fmt.Errorf("asking Debian's busybox for its commands: %w", err)
	}
	return strings.Fields(string(out)), errors.Join(err, os.RemoveAll(dir))
}

// sources is the folder of upstream's images.
func (b Builder) sources(ctx context.Context) (string, error) {
	cmd := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", "k8s.io/kubernetes")
	cmd.Dir = filepath.Join(b.Programs.Root, programs.E2E.Module.Dir)
	cmd.Env = append(os.Environ(), "GOWORK=off")
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("looking for k8s.io/kubernetes in %s: %w", cmd.Dir, err)
	}
	return filepath.Join(strings.TrimSpace(string(out)), "test", "images"), nil
}

// entries are the files of an image, without tools.
func (b Builder) entries(ctx context.Context, c content, sources string) ([]archive.Entry, error) {
	files := map[string]archive.Entry{
		"etc/nsswitch.conf": {Data: []byte("hosts: files dns\n")},
		"etc/passwd":        {Data: []byte("root:x:0:0:root:/root:/bin/sh\n")},
		"etc/group":         {Data: []byte("root:x:0:\n")},
		"root":              {Dir: true, Mode: 0o700},
		"tmp":               {Dir: true, Mode: 0o1777},
		"uploads":           {Dir: true},
	}
	for at, p := range c.programs {
		if err := b.Programs.Build(ctx, p); err != nil {
			return nil, err
		}
		e := archive.Entry{Path: b.Programs.File(p), Mode: 0o755}
		if slices.Contains(c.setuid, at) {
			e.Mode |= 0o4000
		}
		files[at] = e
	}
	for at, file := range c.files {
		files[at] = archive.Entry{Path: filepath.Join(sources, filepath.FromSlash(file))}
	}
	for at, text := range c.data {
		files[at] = archive.Entry{Data: []byte(text)}
	}
	for at, target := range c.links {
		files[at] = archive.Entry{Link: target}
	}
	for name, served := range c.served {
		if err := b.serve(ctx, files, name, served, sources); err != nil {
			return nil, fmt.Errorf("the image %s of its registry: %w", name, err)
		}
	}
	var entries []archive.Entry
	for at, e := range files {
		e.Name = at
		entries = append(entries, e)
	}
	return entries, nil
}

// served is the folder of the images that agnhost's own registry has, as upstream's
// agnhost/fakeregistryserver reads it: a file of each tag has the digest of a manifest.
const served = "var/registry/"

// serve adds the files of an image that agnhost's own registry has.
func (b Builder) serve(ctx context.Context, files map[string]archive.Entry, name string, c content, sources string) error {
	entries, err := b.entries(ctx, c, sources)
	if err != nil {
		return err
	}
	repository, tag, _ := strings.Cut(name, ":")
	img, err := image.Build(b.spec(c, repository, tag, []image.Layer{{Comment: repository, Entries: entries}}))
	if err != nil {
		return err
	}
	add := func(folder, hash string, data []byte) {
		files[served+repository+"/"+folder+"/sha256/"+hash[:2]+"/"+hash+"/data"] = archive.Entry{Data: data}
	}
	manifest, err := img.RawManifest()
	if err != nil {
		return err
	}
	hash, err := img.Digest()
	if err != nil {
		return err
	}
	add("manifests", hash.Hex, manifest)
	files[served+repository+"/manifests/"+tag] = archive.Entry{Data: []byte(hash.String() + "\n")}
	config, err := img.RawConfigFile()
	if err != nil {
		return err
	}
	if hash, err = img.ConfigName(); err != nil {
		return err
	}
	add("blobs", hash.Hex, config)
	layers, err := img.Layers()
	if err != nil {
		return err
	}
	for _, layer := range layers {
		hash, err := layer.Digest()
		if err != nil {
			return err
		}
		content, err := layer.Compressed()
		if err != nil {
			return err
		}
		data, err := io.ReadAll(content)
		if err := errors.Join(err, content.Close()); err != nil {
			return err
		}
		add("blobs", hash.Hex, data)
	}
	return nil
}
