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
	"archive/tar"
	"context"
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/kubernetes-features/build/kind/programs"
	"k8s.io/kubernetes-features/build/release/archive"
)

// Base is a base image to be made. All files are there already: nothing is fetched.
type Base struct {
	// Name is the name that the image gets.
	Name string
	// Debs are the files of Debian's packages.
	Debs []string
	// Kind has kind's own files.
	Kind Kind
	// Programs has the programs of programs.Node.
	Programs programs.Builder
	// Images are archives of images that go into containerd's store.
	Images []string
	// RestrictOOMScore keeps containerd from asking for OOM scores below its own,
	// which needs CAP_SYS_RESOURCE.
	RestrictOOMScore bool
	// Log takes lines on progress.
	Log func(format string, args ...any)
}

//go:embed setup.sh
var setup []byte

//go:embed ctr.sh
var ctr []byte

const (
	// inputs is the label with the hash of all that an image was made from.
	inputs = "io.k8s.features.inputs"
	// cleaning is the time to remove what an image was made in.
	cleaning = 2 * time.Minute
)

// part names a container in which the image is made. The name is this checkout's: others
// may make an image with the same name in the same daemon.
func (b Base) part(name string) string {
	of := sha256.Sum256([]byte(b.Programs.Dir))
	return "kind-base-" + name + "-" + hex.EncodeToString(of[:6])
}

// Parts of which an image is made, one after the other.
const (
	unpacked = "unpacked"
	flat     = "flat"
)

// partImage is the image of which a part is a container.
func (b Base) partImage(name string) string { return "localhost/" + b.part(name) + ":latest" }

// Make makes the image in the daemon of Docker's client, unless it is there with
// the same inputs. Packages are unpacked first, so that there is something in which
// their scripts can run, and then installed in a container without privileges and
// network.
func (b Base) Make(ctx context.Context) (err error) {
	hash, err := b.hash()
	if err != nil {
		return err
	}
	// A run that was killed has left it.
	if err := b.clean(ctx); err != nil {
		return err
	}
	if was, err := docker(ctx, nil, "image", "inspect", "--format", "{{index .Config.Labels \""+inputs+"\"}}", b.Name); err == nil && was == hash {
		return nil
	}
	b.Log("Making the base image %s of %d packages", b.Name, len(b.Debs))
	defer func() { err = errors.Join(err, b.clean(ctx)) }()
	if err := stream(ctx, b.unpack, "import", "-", b.partImage(unpacked)); err != nil {
		return err
	}
	container, err := docker(ctx, nil, "run", "--detach", "--network=none", "--entrypoint=sleep", "--name="+b.part(unpacked),
		"--security-opt=seccomp=unconfined", "--env=RESTRICT_OOM_SCORE="+strconv.FormatBool(b.RestrictOOMScore), b.partImage(unpacked), "infinity")
	if err != nil {
		return err
	}
	if err := stream(ctx, b.add, "cp", "-", container+":/"); err != nil {
		return err
	}
	if _, err := docker(ctx, nil, "exec", container, "/bin/bash", "/setup.sh"); err != nil {
		return err
	}
	return b.squash(ctx, container, hash)
}

// squash makes an image of one layer of a container's files.
func (b Base) squash(ctx context.Context, container, hash string) error {
	err := stream(ctx, func(w io.Writer) error {
		export := exec.CommandContext(ctx, "docker", "export", container)
		export.Stdout = w
		return export.Run()
	}, "import", "-", b.partImage(flat))
	if err != nil {
		return err
	}
	// "docker import" takes neither labels nor signals, "docker commit" no signals.
	// By SIGTERM systemd executes itself again, by this one it ends.
	made, err := docker(ctx, nil, "create", "--stop-signal=SIGRTMIN+3", "--name="+b.part(flat), b.partImage(flat), "/sbin/init")
	if err != nil {
		return err
	}
	_, err = docker(ctx, nil, "commit",
		"--change", "ENV container=docker",
		"--change", `ENTRYPOINT ["/usr/local/bin/entrypoint", "/sbin/init"]`,
		"--change", "LABEL "+inputs+"="+hash,
		made, b.Name)
	return err
}

// clean removes what the image was made in, also when ctx has ended: then a command of
// the client may have done its work without telling what it made.
func (b Base) clean(ctx context.Context) error {
	ctx, done := context.WithTimeout(context.WithoutCancel(ctx), cleaning)
	defer done()
	var errs []error
	for _, name := range []string{unpacked, flat} {
		container, err := docker(ctx, nil, "ps", "--all", "--quiet", "--filter", "name=^/?"+b.part(name)+"$")
		if err == nil && container != "" {
			_, err = docker(ctx, nil, "rm", "--force", "--volumes", container)
		}
		image, e := docker(ctx, nil, "image", "ls", "--quiet", "--filter", "reference="+b.partImage(name))
		if e == nil && image != "" {
			_, e = docker(ctx, nil, "image", "rm", b.partImage(name))
		}
		errs = append(errs, err, e)
	}
	return errors.Join(errs...)
}

// unpack writes the files of all packages as one archive.
func (b Base) unpack(w io.Writer) error {
	tw := tar.NewWriter(w)
	// Packages share folders, and Docker takes each name once.
	folders := map[string]bool{}
	for _, deb := range b.Debs {
		if err := appendDeb(tw, deb, folders); err != nil {
			return fmt.Errorf("cannot unpack %s: %w", deb, err)
		}
	}
	return tw.Close()
}

func appendDeb(tw *tar.Writer, deb string, folders map[string]bool) error {
	cmd := exec.Command("dpkg-deb", "--fsys-tarfile", deb)
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("dpkg-deb (Debian's package dpkg): %w", err)
	}
	err = copyTar(tw, tar.NewReader(out), folders)
	// dpkg-deb ends when all is read, also the rest after the end of the archive.
	_, rest := io.Copy(io.Discard, out)
	return errors.Join(err, rest, cmd.Wait())
}

// copyTar leaves folders out that are in folders already, and adds the others there.
func copyTar(tw *tar.Writer, tr *tar.Reader, folders map[string]bool) error {
	for {
		h, err := tr.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if h.Typeflag == tar.TypeDir {
			if folders[h.Name] {
				continue
			}
			folders[h.Name] = true
		}
		if err := tw.WriteHeader(h); err != nil {
			return err
		}
		if _, err := io.Copy(tw, tr); err != nil {
			return err
		}
	}
}

// add writes all that is not of Debian, and the packages once more for dpkg.
func (b Base) add(w io.Writer) error {
	entries, err := b.entries()
	if err != nil {
		return err
	}
	for _, deb := range b.Debs {
		entries = append(entries, archive.Entry{Name: "debs/" + filepath.Base(deb), Path: deb})
	}
	return archive.Write(w, entries, time.Unix(0, 0))
}

func (b Base) entries() ([]archive.Entry, error) {
	entries := []archive.Entry{
		{Name: "setup.sh", Data: setup},
		{Name: "usr/local/bin/ctr", Data: ctr, Mode: 0o755},
	}
	for _, at := range slices.Sorted(maps.Keys(programs.Node)) {
		entries = append(entries, archive.Entry{Name: at, Path: b.Programs.File(programs.Node[at]), Mode: 0o755})
	}
	for _, file := range b.Images {
		entries = append(entries, archive.Entry{Name: "images/" + filepath.Base(file), Path: file})
	}
	files := os.DirFS(b.Kind.Files())
	err := fs.WalkDir(files, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		e := archive.Entry{Name: name, Path: filepath.Join(b.Kind.Files(), filepath.FromSlash(name))}
		if strings.Contains(name, "bin/") {
			e.Mode = 0o755
		}
		entries = append(entries, e)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("cannot read kind's own files: %w", err)
	}
	return entries, nil
}

// hash returns the hash of all inputs. Names of packages have their hashes.
func (b Base) hash() (string, error) {
	entries, err := b.entries()
	if err != nil {
		return "", err
	}
	h := sha256.New()
	fmt.Fprintln(h, b.RestrictOOMScore, b.Debs)
	if err := archive.Write(h, entries, time.Unix(0, 0)); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}
