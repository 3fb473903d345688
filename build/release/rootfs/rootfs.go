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

package rootfs

import (
	"bytes"
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"

	"k8s.io/kubernetes-features/build/release/archive"
)

// Users of the images. Upstream's base images run as 0, given as a number so
// that runAsNonRoot can judge it; kubeadm's key files are readable by 0 only,
// and it sets runAsUser itself where RootlessControlPlane is on. NonRoot exists
// for those who set it in a pod's security context.
const (
	Root    = 0
	NonRoot = 65532
	nobody  = 65534
)

// CertificatesFile is where Go looks for CA certificates first.
const CertificatesFile = "etc/ssl/certs/ca-certificates.crt"

// inStatic are the packages that Static takes files from.
var inStatic = []string{"base-files", "ca-certificates"}

// InStatic reports whether files of a package are in all images.
func InStatic(name string) bool { return slices.Contains(inStatic, name) }

// Static returns the file system below statically linked binaries: users, CA
// certificates, a place for temporary files, and what it is made of.
func Static(tree Tree) ([]archive.Entry, error) {
	bundle, err := certificates(tree)
	if err != nil {
		return nil, err
	}
	about, err := about(tree, inStatic...)
	if err != nil {
		return nil, err
	}
	for _, name := range []string{"etc/os-release", "usr/lib/os-release"} {
		e, ok := tree[name]
		if !ok {
			return nil, fmt.Errorf("the package base-files has no %s", name)
		}
		about = append(about, e)
	}
	accounts := fmt.Sprintf("root:x:%[1]d:\nnobody:x:%[3]d:\nnonroot:x:%[2]d:\n", Root, NonRoot, nobody) // diction:ok
	users := fmt.Sprintf("root:x:%[1]d:%[1]d:root:/root:/sbin/nologin\n"+
		"nobody:x:%[3]d:%[3]d:nobody:/nonexistent:/sbin/nologin\n"+ // diction:ok
		"nonroot:x:%[2]d:%[2]d:nonroot:/home/nonroot:/sbin/nologin\n", Root, NonRoot, nobody)
	return append([]archive.Entry{
		{Name: CertificatesFile, Data: bundle},
		{Name: "etc/passwd", Data: []byte(users)},
		{Name: "etc/group", Data: []byte(accounts)},
		// Without it some resolvers do not read /etc/hosts.
		{Name: "etc/nsswitch.conf", Data: []byte("hosts: files dns\n")},
		{Name: "home/nonroot", Dir: true, Mode: 0o700, User: NonRoot},
		{Name: "root", Dir: true, Mode: 0o700},
		{Name: "tmp", Dir: true, Mode: 0o1777},
	}, about...), nil
}

// certificates joins Mozilla's certificates as update-ca-certificates does.
func certificates(tree Tree) ([]byte, error) {
	var bundle bytes.Buffer
	for _, name := range below(tree, "usr/share/ca-certificates/mozilla") {
		if path.Ext(name) == ".crt" {
			bundle.Write(bytes.TrimSpace(tree[name].Data))
			bundle.WriteByte('\n')
		}
	}
	if bundle.Len() == 0 {
		return nil, fmt.Errorf("the package ca-certificates has no certificates in usr/share/ca-certificates/mozilla")
	}
	return bundle.Bytes(), nil
}

// Programs of kube-proxy, each of them looked up on the PATH by k8s.io/kubernetes
// pkg/proxy or run by administrators in its container.
var programs = []string{
	"usr/sbin/nft", "usr/sbin/conntrack", "usr/sbin/ipset",
	"usr/bin/kmod", "usr/sbin/modprobe", "usr/sbin/lsmod", "usr/sbin/modinfo", "usr/sbin/insmod", "usr/sbin/rmmod",
}

// iptablesVariants are the two programs that iptables may be; Debian calls one
// of them by alternatives.
var iptablesVariants = map[string]string{"nft": "usr/sbin/xtables-nft-multi", "legacy": "usr/sbin/xtables-legacy-multi"}

// opened are libraries that kmod opens by name while it runs.
var opened = []string{"liblzma.so.5", "libzstd.so.1", "libz.so.1"}

// Proxy returns what kube-proxy needs on top of Static: nft, iptables,
// conntrack, ipset and kmod with their libraries. iptables is the variant that
// talks to nftables, as on every distribution of these years; the legacy one is
// there under its own name. In this it differs from upstream's image, which looks
// at the node's chains when it starts and takes the variant that has kubelet's, or
// more of them.
func Proxy(tree Tree, arch string) ([]archive.Entry, error) {
	lib := path.Join("usr/lib", architectures[arch].triplet)
	names := slices.Clone(programs)
	for _, library := range opened {
		names = append(names, path.Join(lib, library))
	}
	for variant, program := range iptablesVariants {
		names = append(names, program)
		for _, command := range iptablesCommands {
			names = append(names, "usr/sbin/"+fmt.Sprintf(command, variant))
		}
	}
	names = append(names, below(tree, path.Join(lib, "xtables"))...)
	// Which numbers protocols and services have, for iptables' names of them.
	names = append(names, "etc/protocols", "etc/services")
	found, err := Closure(tree, arch, names)
	if err != nil {
		return nil, err
	}
	// The links of a merged /usr, for those who ask for /sbin/iptables.
	for _, link := range []string{"bin", "sbin", "lib", "lib64"} {
		if e, ok := tree[link]; ok {
			found[link] = e
		}
	}
	for _, command := range iptablesCommands {
		name := "usr/sbin/" + fmt.Sprintf(command, "nft")
		plain := "usr/sbin/" + strings.Replace(command, "-%s", "", 1)
		found[plain] = archive.Entry{Name: plain, Link: path.Base(name)}
	}
	entries := slices.Collect(maps.Values(found))
	// The lock of the legacy variant.
	entries = append(entries, archive.Entry{Name: "run", Dir: true})
	all, err := about(tree, Names()...)
	if err != nil {
		return nil, err
	}
	below, err := about(tree, inStatic...)
	if err != nil {
		return nil, err
	}
	return append(entries, slices.DeleteFunc(all, func(e archive.Entry) bool {
		return slices.ContainsFunc(below, func(b archive.Entry) bool { return b.Name == e.Name })
	})...), nil
}

// iptablesCommands are the commands, with a place for the variant.
var iptablesCommands = []string{
	"iptables-%s", "iptables-%s-save", "iptables-%s-restore",
	"ip6tables-%s", "ip6tables-%s-save", "ip6tables-%s-restore",
}

// commonLicense matches where a copyright file has another for the text of a
// license.
var commonLicense = regexp.MustCompile(`/usr/share/common-licenses/[A-Za-z0-9.+-]*[A-Za-z0-9+]`)

// about returns what has to go along with files of packages: their licenses, with
// the texts that those refer to, and what scanners know them by.
func about(tree Tree, packages ...string) ([]archive.Entry, error) {
	found := Tree{}
	for _, name := range packages {
		status, ok := tree[path.Join(StatusFolder, name)]
		if !ok {
			return nil, fmt.Errorf("the package %s is not there", name)
		}
		found[status.Name] = status
		text, err := Copyright(tree, name)
		if err != nil {
			return nil, err
		}
		doc := copyrightFile(name)
		found[doc] = archive.Entry{Name: doc, Data: []byte(text)}
		for _, reference := range commonLicense.FindAllString(text, -1) {
			file, links, err := tree.Resolve(reference)
			if err != nil {
				return nil, fmt.Errorf("the license of the package %s refers to %s: %w", name, reference, err)
			}
			for _, text := range append(links, file) {
				found[text] = tree[text]
			}
		}
	}
	return slices.Collect(maps.Values(found)), nil
}

func copyrightFile(name string) string { return path.Join("usr/share/doc", name, "copyright") }

// Copyright returns the licenses of a package, as its file copyright has them.
func Copyright(tree Tree, name string) (string, error) {
	file, _, err := tree.Resolve(copyrightFile(name))
	if err != nil {
		return "", fmt.Errorf("the package %s has no license: %w", name, err)
	}
	return string(tree[file].Data), nil
}
