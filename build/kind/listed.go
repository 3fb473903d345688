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
	"archive/tar"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
	"time"

	"k8s.io/kubernetes-features/build/release/archive"
)

// listing is what kubeadm of an archive lists. An archive with the same size and time of
// change has the same kubeadm.
type listing struct {
	Size    int64
	Changed time.Time
	Images  []string
}

// listings is the file with what was listed before, by archives.
func (o options) listings() string { return filepath.Join(o.dir, "listed.json") }

func (o options) readListings() (map[string]listing, error) {
	known := map[string]listing{}
	content, err := os.ReadFile(o.listings())
	if errors.Is(err, fs.ErrNotExist) {
		return known, nil
	}
	if err == nil {
		err = json.Unmarshal(content, &known)
	}
	if err != nil {
		return nil, fmt.Errorf("%w; remove %s", err, o.listings())
	}
	return known, nil
}

// listed returns the images that kubeadm of a release wants beside those in it. To
// unpack kubeadm takes seconds, so it is done once for each archive.
func (o options) listed(ctx context.Context, release string) ([]string, error) {
	info, err := os.Stat(release)
	if err != nil {
		return nil, err
	}
	known, err := o.readListings()
	if err != nil {
		return nil, err
	}
	if l, ok := known[release]; ok && l.Size == info.Size() && l.Changed.Equal(info.ModTime()) {
		return l.Images, nil
	}
	names, err := o.list(ctx, release)
	if err != nil {
		return nil, err
	}
	known[release] = listing{info.Size(), info.ModTime(), names}
	content, err := json.Marshal(known)
	if err != nil {
		return nil, err
	}
	return names, archive.WriteData(o.listings(), content)
}

// list asks kubeadm of a release.
func (o options) list(ctx context.Context, release string) (names []string, err error) {
	kubeadm := filepath.Join(o.dir, "kubeadm")
	version, err := extract(release, kubeadm)
	if err != nil {
		return nil, err
	}
	out, err := exec.CommandContext(ctx, kubeadm, "config", "images", "list", "--kubernetes-version", version).Output()
	if err != nil {
		return nil, fmt.Errorf("its kubeadm: %w", err)
	}
	for name := range strings.FieldsSeq(string(out)) {
		// With its pause, which kind does without, kubeadm checks a cluster before it
		// upgrades it.
		if !strings.HasPrefix(path.Base(name), "kube-") {
			names = append(names, name)
		}
	}
	return names, nil
}

// extract writes kubeadm of a release to file and returns the release's version.
func extract(release, file string) (version string, err error) {
	f, err := os.Open(release)
	if err != nil {
		return "", err
	}
	defer f.Close()
	unzipped, err := gzip.NewReader(f)
	if err != nil {
		return "", err
	}
	tr := tar.NewReader(unzipped)
	found := false
	for version == "" || !found {
		h, err := tr.Next()
		if err != nil {
			return "", fmt.Errorf("it has no kubernetes/version and kubernetes/server/bin/kubeadm: %w", err)
		}
		switch path.Clean(h.Name) {
		case "kubernetes/version":
			content, err := io.ReadAll(tr)
			if err != nil {
				return "", err
			}
			version = strings.TrimSpace(string(content))
		case "kubernetes/server/bin/kubeadm":
			if err := write(file, tr); err != nil {
				return "", err
			}
			found = true
		}
	}
	return version, nil
}

func write(file string, r io.Reader) error {
	f, err := os.OpenFile(file, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o755)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, r)
	return errors.Join(err, f.Close())
}
