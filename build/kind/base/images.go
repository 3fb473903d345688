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

package base

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"k8s.io/kubernetes-features/build/kind/programs"
	"k8s.io/kubernetes-features/build/release/archive"
	"k8s.io/kubernetes-features/build/release/image"
)

// content is what an image consists of.
type content struct {
	// at is the path of the image's one program, empty without one.
	at string
	// program is that program, and tagged has those of images whose tag is a version.
	program programs.Program
	tagged  map[string]programs.Program
	// shell adds a static busybox with its commands.
	shell bool
}

// programFor returns the program of an image with a tag.
func (c content) programFor(tag string) (programs.Program, error) {
	if c.tagged == nil {
		return c.program, nil
	}
	p, ok := c.tagged[tag]
	if !ok {
		return p, fmt.Errorf("build/kind/programs has no program of the version %s: add it", tag)
	}
	return p, nil
}

// OwnImages are images of this repository's own, which Pods of "make kind-test" run. Those
// of kind have the programs that kind needs, and no others. No registry has these names.
var OwnImages = []string{"localhost/shell:v1", "localhost/sample-device-plugin:v1", "localhost/healthdriver:v1"}

// contents has images by their repositories.
var contents = map[string]content{
	"registry.k8s.io/pause":                    {at: "/pause", program: programs.Pause},
	"registry.k8s.io/etcd":                     {at: "/usr/local/bin/etcd", tagged: programs.Etcd},
	"registry.k8s.io/coredns/coredns":          {at: "/coredns", tagged: programs.CoreDNS},
	"docker.io/kindest/kindnetd":               {at: "/bin/kindnetd", program: programs.Netd},
	"docker.io/kindest/local-path-provisioner": {at: "/usr/bin/local-path-provisioner", program: programs.LocalPath},
	"docker.io/kindest/local-path-helper":      {shell: true},
	"docker.io/envoyproxy/envoy":               {at: "/usr/local/bin/envoy", program: programs.Balancer, shell: true},
	"localhost/shell":                          {shell: true},
	"localhost/sample-device-plugin":           {at: "/sample-device-plugin", program: programs.SampleDevicePlugin},
	"localhost/healthdriver":                   {at: "/healthdriver", program: programs.HealthDriver},
}

// split returns the repository and the tag of an image's name.
func split(name string) (repository, tag string) {
	colon := strings.LastIndexByte(name, ':')
	if colon < strings.LastIndexByte(name, '/') {
		return name, ""
	}
	return name[:colon], name[colon+1:]
}

// ImageFile returns the name of an image's archive.
func ImageFile(dir, name string) string {
	repository, tag := split(name)
	return filepath.Join(dir, path.Base(repository)+"-"+tag+".tar")
}

// WriteImages writes an archive of each of the images into dir. Builder has their
// programs, which are built first, and busybox is the path of a static one.
func WriteImages(ctx context.Context, dir string, b programs.Builder, busybox string, names []string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for _, name := range names {
		if err := writeImage(ctx, ImageFile(dir, name), b, busybox, name); err != nil {
			return fmt.Errorf("cannot make the image %s: %w", name, err)
		}
	}
	return nil
}

func writeImage(ctx context.Context, file string, b programs.Builder, busybox, name string) error {
	repository, tag := split(name)
	c, ok := contents[repository]
	if !ok || tag == "" {
		return errors.New("build/kind does not know what is in it: add it to contents")
	}
	var entries []archive.Entry
	spec := image.Spec{Name: path.Base(repository), Version: tag, Arch: b.Arch, Created: time.Unix(0, 0)}
	if c.at != "" {
		p, err := c.programFor(tag)
		if err != nil {
			return err
		}
		if err := b.Build(ctx, p); err != nil {
			return err
		}
		entries = append(entries, archive.Entry{Name: c.at[1:], Path: b.File(p), Mode: 0o755})
	}
	if c.shell {
		entries = append(entries, shell(busybox)...)
	} else {
		// Commands start images with a shell.
		spec.Entrypoint = []string{c.at}
	}
	entries = append(entries,
		archive.Entry{Name: "etc/passwd", Data: []byte("root:x:0:0:root:/root:/sbin/nologin\n")},
		archive.Entry{Name: "etc/nsswitch.conf", Data: []byte("hosts: files dns\n")},
		archive.Entry{Name: "tmp", Dir: true, Mode: 0o1777},
	)
	spec.Layers = []image.Layer{{Comment: repository, Entries: entries}}
	img, err := image.Build(spec)
	if err != nil {
		return err
	}
	return image.Save(ctx, file, img, name, spec.Created)
}

// applets are the commands that images with a shell have.
var applets = []string{
	"sh", "cat", "chmod", "cp", "echo", "httpd", "ls", "mkdir", "mv", "nc", "nslookup", "rm", "sleep", "stat", "tail", "touch", "true", "wget",
}

func shell(busybox string) []archive.Entry {
	entries := []archive.Entry{{Name: "bin/busybox", Path: busybox, Mode: 0o755}}
	for _, name := range applets {
		entries = append(entries, archive.Entry{Name: "bin/" + name, Link: "busybox"})
	}
	// kind starts the load balancer by bash, of which busybox has no applet.
	return append(entries, archive.Entry{Name: "bin/bash", Data: []byte("#!/bin/sh\nexec /bin/sh \"$@\"\n"), Mode: 0o755})
}

// Kind is the directory of kind's module, out of which comes what is kind's own.
type Kind string

// Files is the directory of the files that are in kind's base image.
func (k Kind) Files() string { return filepath.Join(string(k), "images", "base", "files") }

// constant is where kind names an image, below its directory.
type constant struct {
	file  string
	image *regexp.Regexp
}

var (
	baseImage     = constant{"pkg/build/nodeimage/defaults.go", regexp.MustCompile(`"(docker\.io/kindest/base:[^"]+)"`)}
	networkImage  = constant{"pkg/build/nodeimage/const_cni.go", regexp.MustCompile(`"(docker\.io/kindest/kindnetd:[^"]+)"`)}
	storageImage  = constant{"pkg/build/nodeimage/const_storage.go", regexp.MustCompile(`"(docker\.io/kindest/local-path-provisioner:[^"]+)"`)}
	helperImage   = constant{"pkg/build/nodeimage/const_storage.go", regexp.MustCompile(`"(docker\.io/kindest/local-path-helper:[^"]+)"`)}
	sandboxImage  = constant{"images/base/files/etc/containerd/config.toml", regexp.MustCompile(`sandbox_image = "([^"]+)"`)}
	balancerImage = constant{"pkg/cluster/internal/loadbalancer/const.go", regexp.MustCompile(`"(docker\.io/envoyproxy/envoy:[^"]+)"`)}
)

// read returns the image that kind names there.
func (k Kind) read(c constant) (string, error) {
	text, err := os.ReadFile(filepath.Join(string(k), filepath.FromSlash(c.file)))
	if err != nil {
		return "", fmt.Errorf("kind's module has changed: %w", err)
	}
	m := c.image.FindSubmatch(text)
	if m == nil {
		return "", fmt.Errorf("kind's module has changed: there is no %s in %s", c.image, c.file)
	}
	return string(m[1]), nil
}

// Image returns the name of kind's base image.
func (k Kind) Image() (string, error) { return k.read(baseImage) }

// Balancer returns the image that kind starts in front of several control planes.
func (k Kind) Balancer() (string, error) { return k.read(balancerImage) }

// InNode returns the images that kind loads into a node image beside those of the
// release and those that kubeadm lists.
func (k Kind) InNode() ([]string, error) {
	var names []string
	for _, c := range []constant{sandboxImage, networkImage, storageImage, helperImage} {
		name, err := k.read(c)
		if err != nil {
			return nil, err
		}
		names = append(names, name)
	}
	return names, nil
}
