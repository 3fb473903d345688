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
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"path"
	"strings"

	"k8s.io/kubernetes-features/build/release/archive"
)

// Tree is a file system in memory, by slash-separated path without a leading
// slash. Directories are not in it.
type Tree map[string]archive.Entry

// Unpack returns the files of .deb files.
func Unpack(ctx context.Context, debs []string) (Tree, error) {
	tree := Tree{}
	for _, deb := range debs {
		cmd := exec.CommandContext(ctx, "dpkg-deb", "--fsys-tarfile", deb)
		var stderr bytes.Buffer
		cmd.Stderr = &stderr
		content, err := cmd.Output()
		if err != nil {
			return nil, fmt.Errorf("dpkg-deb (Debian's package dpkg) cannot unpack %s: %w: %s", deb, err, stderr.String())
		}
		if err := tree.add(bytes.NewReader(content)); err != nil {
			return nil, fmt.Errorf("cannot read %s: %w", deb, err)
		}
		control, err := exec.CommandContext(ctx, "dpkg-deb", "--field", deb).Output()
		if err != nil {
			return nil, fmt.Errorf("dpkg-deb cannot read the fields of %s: %w", deb, err)
		}
		if err := tree.status(control); err != nil {
			return nil, fmt.Errorf("cannot read the fields of %s: %w", deb, err)
		}
	}
	return tree, nil
}

// StatusFolder has a file of each package. Images without dpkg's database say by
// these what they contain: scanners of vulnerabilities read them, since Google's
// distroless images have them.
const StatusFolder = "var/lib/dpkg/status.d"

// status adds the file of a package with these fields.
func (t Tree) status(control []byte) error {
	for line := range strings.Lines(string(control)) {
		if name, ok := strings.CutPrefix(line, "Package: "); ok {
			file := path.Join(StatusFolder, strings.TrimSpace(name))
			t[file] = archive.Entry{Name: file, Data: control}
			return nil
		}
	}
	return fmt.Errorf("there is no field Package")
}

// add reads a tar archive.
func (t Tree) add(r io.Reader) error {
	tr := tar.NewReader(r)
	for {
		h, err := tr.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		name := strings.TrimPrefix(path.Clean("/"+h.Name), "/")
		e := archive.Entry{Name: name, Mode: h.Mode & 0o7777}
		switch h.Typeflag {
		case tar.TypeReg:
			if e.Data, err = io.ReadAll(tr); err != nil {
				return err
			}
		case tar.TypeSymlink:
			e.Link = h.Linkname
		case tar.TypeLink:
			target, ok := t[strings.TrimPrefix(path.Clean("/"+h.Linkname), "/")]
			if !ok {
				return fmt.Errorf("%s is a hard link to %s, which is not there", name, h.Linkname)
			}
			e.Data, e.Mode = target.Data, target.Mode
		case tar.TypeDir:
			continue
		default:
			return fmt.Errorf("%s is of type %q, which is not known here", name, h.Typeflag)
		}
		if old, ok := t[name]; ok {
			return fmt.Errorf("another package has %s, too (%d bytes there, %d here)", name, len(old.Data), len(e.Data))
		}
		t[name] = e
	}
}

// maxLinks is the number of symbolic links after which Linux gives up.
const maxLinks = 40

// Resolve follows symbolic links, those in parent directories included. It
// returns the name of the file and those of the links that led to it.
func (t Tree) Resolve(name string) (file string, links []string, err error) {
	rest := strings.Split(strings.TrimPrefix(path.Clean("/"+name), "/"), "/")
	at := ""
	for len(rest) > 0 {
		at = path.Join(at, rest[0])
		rest = rest[1:]
		e, ok := t[at]
		if !ok || e.Link == "" {
			continue
		}
		links = append(links, at)
		if len(links) > maxLinks {
			return "", nil, fmt.Errorf("%s leads into a circle of symbolic links", name)
		}
		target := e.Link
		if !path.IsAbs(target) {
			target = path.Join("/", path.Dir(at), target)
		}
		target = strings.TrimPrefix(path.Clean(target), "/")
		rest = append(strings.Split(target, "/"), rest...)
		at = ""
	}
	if _, ok := t[at]; !ok {
		return "", nil, fmt.Errorf("%s is in none of the packages", name)
	}
	return at, links, nil
}
