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
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// written is what landing did to the files of a part.
type written struct {
	created, changed, removed int
	// upstreams are the names of those changed that are upstream's.
	upstreams []string
}

func (w written) count() int { return w.created + w.removed + w.changed }

// write makes files what they shall be, one after the other. When it fails, those
// before are done and none is half done: landing again goes on.
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
		name := filepath.Join(c.dir, filepath.FromSlash(t.path))
		if t.remove {
			if err := os.Remove(name); err != nil {
				return w, err
			}
			w.removed++
			continue
		}
		_, err = os.Lstat(name)
		existed := err == nil
		if err := c.replace(ctx, name, t); err != nil {
			return w, err
		}
		if !existed {
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

// replace gives a file its content and mode at once.
func (c checkout) replace(ctx context.Context, name string, t *target) (err error) {
	dir := filepath.Dir(name)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	executable, err := c.executable(ctx, t)
	if err != nil {
		return err
	}
	file, err := os.CreateTemp(dir, ".landing-*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = os.Remove(file.Name())
			err = fmt.Errorf("writing %s: %w", t.path, err)
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
	return os.Rename(file.Name(), name)
}

func modeOf(executable bool) fs.FileMode {
	if executable {
		return 0o755
	}
	return 0o644
}
