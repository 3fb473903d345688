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
	"io/fs"
	"os"
	"path"
	"path/filepath"
)

// written has the changes of landing to the files of a part.
type written struct {
	created, changed, removed int
	// upstreams are the names of those changed that are upstream's.
	upstreams []string
}

func (w written) count() int { return w.created + w.removed + w.changed }

// write makes files what they shall be, one after the other. When it fails, those
// before are done and none is half done: landing again continues.
func (c checkout) write(ctx context.Context, files []*target) (written, error) {
	var w written
	for _, t := range files {
		if err := ctx.Err(); err != nil {
			return w, err
		}
		done, err := c.has(t)
		if err != nil {
			return w, err
		}
		if done {
			continue
		}
		if t.remove {
			if err := c.remove(t.path); err != nil {
				return w, err
			}
			w.removed++
			continue
		}
		existed, err := c.lstat(t.path)
		if err != nil {
			return w, err
		}
		if err := c.replace(ctx, t); err != nil {
			return w, fmt.Errorf("writing %s: %w", t.path, err)
		}
		if existed == nil {
			w.created++
			continue
		}
		w.changed++
		if t.base != nil {
			w.upstreams = append(w.upstreams, t.path)
		}
	}
	return w, nil
}

// replace gives a file its content and mode at once. It stays inside of the
// checkout, wherever links lead.
func (c checkout) replace(ctx context.Context, t *target) (err error) {
	executable, err := c.executable(ctx, t)
	if err != nil {
		return err
	}
	tree, err := os.OpenRoot(c.dir)
	if err != nil {
		return err
	}
	defer func() { _ = tree.Close() }()
	if err := tree.MkdirAll(filepath.FromSlash(path.Dir(t.path)), 0o755); err != nil {
		return err
	}
	name := filepath.FromSlash(temporaryOf(t.path))
	file, err := tree.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = tree.Remove(name)
		}
	}()
	_, err = file.Write(t.data)
	if err == nil {
		err = file.Chmod(modeOf(executable))
	}
	if closing := file.Close(); err == nil {
		err = closing
	}
	if err != nil {
		return err
	}
	return tree.Rename(name, filepath.FromSlash(t.path))
}

// remove removes a file, and the directories that are empty without it.
func (c checkout) remove(name string) error {
	tree, err := os.OpenRoot(c.dir)
	if err != nil {
		return err
	}
	defer func() { _ = tree.Close() }()
	if err := tree.Remove(filepath.FromSlash(name)); err != nil {
		return err
	}
	for dir := path.Dir(name); dir != "." && tree.Remove(filepath.FromSlash(dir)) == nil; dir = path.Dir(dir) {
	}
	return nil
}

func modeOf(executable bool) fs.FileMode {
	if executable {
		return 0o755
	}
	return 0o644
}
