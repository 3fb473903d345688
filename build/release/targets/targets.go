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

// Package targets lists the parts of a release: which binaries are built
// from which package for which platform, which of them go into which archive,
// and which of them become images. It only decides; nothing is read or written.
//
// The lists carry the facts of upstream's hack/lib/golang.sh and build/common.sh
// of the version in go.mod; kubectl-feature is this fork's addition.
package targets

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// Binary is a program of the release.
type Binary struct {
	// Name is the file's name without ".exe".
	Name string
	// Package is the import path of its main package.
	Package string
}

// EntryPoint reports whether the binary itself is the entry point of its image, in
// /bin, as upstream's build/server-image/kubectl has it; all others are in
// /usr/local/bin and are run by LogRunner.
func (b Binary) EntryPoint() bool { return b == kubectl }

// ours is the import path of this fork's binaries, upstreams that of upstream's.
const (
	ours      = "k8s.io/kubernetes-features/cmd/"
	upstreams = "k8s.io/kubernetes/cmd/"
)

// LogRunner is the entry point of images, which runs another program and may
// write its output to a file. Upstream installs it as /go-runner.
var LogRunner = Binary{"kube-log-runner", "k8s.io/component-base/logs/kube-log-runner"}

var (
	apiserver  = Binary{"kube-apiserver", ours + "kube-apiserver"}
	manager    = Binary{"kube-controller-manager", ours + "kube-controller-manager"}
	scheduler  = Binary{"kube-scheduler", ours + "kube-scheduler"}
	proxy      = Binary{"kube-proxy", ours + "kube-proxy"}
	kubelet    = Binary{"kubelet", ours + "kubelet"}
	kubeadm    = Binary{"kubeadm", ours + "kubeadm"}
	kubectl    = Binary{"kubectl", ours + "kubectl"}
	feature    = Binary{"kubectl-feature", ours + "kubectl-feature"}
	convert    = Binary{"kubectl-convert", upstreams + "kubectl-convert"}
	aggregator = Binary{"kube-aggregator", "k8s.io/kube-aggregator"}
	extensions = Binary{"apiextensions-apiserver", "k8s.io/apiextensions-apiserver"}
	mounter    = Binary{"mounter", "k8s.io/kubernetes/cluster/gce/gci/mounter"}
)

// Tags are the build tags that upstream's hack/lib/golang.sh gives binaries of a
// release. grpcnotrace keeps golang.org/x/net/trace, and with it a page of every
// request, out of servers.
const Tags = "selinux,notest,grpcnotrace"

// Component is one of the archives of a release.
type Component string

// Upstream's archives; each is named kubernetes-<component>-<os>-<arch>.tar.gz and
// has its binaries in kubernetes/<component>/bin.
const (
	Client Component = "client"
	Node   Component = "node"
	Server Component = "server"
)

// Plugin is kubectl-feature alone, which is this fork's addition, for a kubectl that
// is installed already. The archive is named kubectl-feature-<os>-<arch>.tar.gz and has
// no folder around the binary.
const Plugin Component = "plugin"

var binaries = map[Component][]Binary{
	Client: {kubectl, convert, feature},
	Node:   {proxy, kubeadm, kubelet, LogRunner},
	Plugin: {feature},
	Server: {proxy, apiserver, manager, kubelet, kubeadm, scheduler, LogRunner, aggregator, extensions, mounter},
}

// platforms are those that upstream supports for each component, and of the client's
// those that the plugin is released for.
var platforms = map[Component][]string{
	Client: {
		"linux/amd64", "linux/386", "linux/arm", "linux/arm64", "linux/s390x", "linux/ppc64le",
		"darwin/amd64", "darwin/arm64", "windows/amd64", "windows/386", "windows/arm64",
	},
	Node:   {"linux/amd64", "linux/arm64", "linux/s390x", "linux/ppc64le", "windows/amd64"},
	Plugin: {"darwin/amd64", "darwin/arm64", "linux/amd64", "linux/arm64", "windows/amd64", "windows/arm64"},
	Server: {"linux/amd64", "linux/arm64", "linux/s390x", "linux/ppc64le"},
}

// imageArchitectures are those that images are made for: the lock file has Debian's
// packages of these only.
var imageArchitectures = []string{"amd64", "arm64"}

// ImageArchitectures are those that images are made for, as the go command names
// them. Upstream has ppc64le and s390x, too.
func ImageArchitectures() []string { return slices.Clone(imageArchitectures) }

// Platforms are those that releases are made for, sorted by name: upstream's without
// those whose servers would have no images.
func Platforms() []Platform {
	var list []Platform
	for _, name := range slices.Sorted(slices.Values(platforms[Client])) {
		if p := parse(name); !p.Has(Server) || slices.Contains(imageArchitectures, p.Arch) {
			list = append(list, p)
		}
	}
	return list
}

func parse(name string) Platform {
	os, arch, _ := strings.Cut(name, "/")
	return Platform{OS: os, Arch: arch}
}

// Images are the binaries that become images. Upstream builds one of kubectl
// too.
func Images() []Binary {
	return []Binary{apiserver, manager, scheduler, proxy, kubectl}
}

// Platform is an operating system and an architecture as the go command names
// them.
type Platform struct {
	OS, Arch string
}

// String returns os/arch.
func (p Platform) String() string { return p.OS + "/" + p.Arch }

// Tag returns os-arch, which names of archives contain.
func (p Platform) Tag() string { return p.OS + "-" + p.Arch }

// Executable returns the file name of a program on p.
func (p Platform) Executable(name string) string {
	if p.OS == "windows" {
		return name + ".exe"
	}
	return name
}

// Has reports whether component is released for p.
func (p Platform) Has(component Component) bool {
	return slices.Contains(platforms[component], p.String())
}

// Components returns what is released for p, sorted.
func (p Platform) Components() []Component {
	var found []Component
	for _, c := range []Component{Client, Node, Plugin, Server} {
		if p.Has(c) {
			found = append(found, c)
		}
	}
	return found
}

// ParsePlatforms reads a list as in KUBE_BUILD_PLATFORMS: os/arch separated by
// spaces. The result is sorted and has no duplicates.
func ParsePlatforms(list string) ([]Platform, error) {
	words := strings.Fields(list)
	slices.Sort(words)
	known := Platforms()
	var parsed []Platform
	for _, word := range slices.Compact(words) {
		p := parse(word)
		if slices.Contains(known, p) {
			parsed = append(parsed, p)
			continue
		}
		why := "Kubernetes is not released for it"
		if p.Has(Server) {
			why = "there are no packages of Debian for its images"
		}
		var names []string
		for _, p := range known {
			names = append(names, p.String())
		}
		return nil, fmt.Errorf("platform %q of KUBE_BUILD_PLATFORMS cannot be made: %s; use some of %s", word, why, strings.Join(names, ", "))
	}
	if len(parsed) == 0 {
		return nil, fmt.Errorf("KUBE_BUILD_PLATFORMS names no platform; for example linux/amd64")
	}
	return parsed, nil
}

// PluginPlatforms are those that the plugin is released for, sorted by name.
func PluginPlatforms() []Platform {
	var list []Platform
	for _, p := range Platforms() {
		if p.Has(Plugin) {
			list = append(list, p)
		}
	}
	return list
}

// Of returns the binaries in the archive of component, sorted by name. Those of
// the client are in all of upstream's three: they help to find errors on a node.
func Of(component Component) []Binary {
	list := slices.Clone(binaries[component])
	if component == Node || component == Server {
		list = append(list, binaries[Client]...)
	}
	slices.SortFunc(list, func(a, b Binary) int { return strings.Compare(a.Name, b.Name) })
	return list
}

// For returns every binary that has to be built for components, sorted by name.
func For(components []Component) []Binary {
	var list []Binary
	for _, c := range components {
		list = append(list, Of(c)...)
	}
	slices.SortFunc(list, func(a, b Binary) int { return strings.Compare(a.Name, b.Name) })
	return slices.Compact(list)
}

// Version is the version of a release, such as v1.37.2+feature.1.
type Version string

var semantic = regexp.MustCompile(`^v([0-9]+)\.([0-9]+)\.[0-9]+(-[0-9A-Za-z.-]+)?(\+[0-9A-Za-z.-]+)?$`)

// ParseVersion accepts a semantic version with a leading v, as upstream's
// hack/lib/version.sh does.
func ParseVersion(s string) (Version, error) {
	if !semantic.MatchString(s) {
		return "", fmt.Errorf("version %q is not a semantic version; set VERSION, for example to v1.37.2+feature.1", s)
	}
	return Version(s), nil
}

// MajorMinor returns the first two numbers. The minor one ends in "+" for a
// pre-release, as upstream's does.
func (v Version) MajorMinor() (string, string) {
	m := semantic.FindStringSubmatch(string(v))
	if m == nil {
		return "", ""
	}
	if m[3] != "" {
		return m[1], m[2] + "+"
	}
	return m[1], m[2]
}

// ImageTag is the version as an image's tag, which may not contain "+".
// kubeadm translates it in the same way.
func (v Version) ImageTag() string { return strings.ReplaceAll(string(v), "+", "_") }

// ImageName is the reference in an archive: the registry is always
// registry.k8s.io, and kind takes the architecture off the name.
func (v Version) ImageName(binary, arch string) string {
	return "registry.k8s.io/" + binary + "-" + arch + ":" + v.ImageTag()
}
