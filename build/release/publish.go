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
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"k8s.io/kubernetes-features/build/release/flock"
)

// The folders that a release is published in, the last to be moved last.
var published = []string{imagesFolder, tarsFolder}

// While a release takes the place of the one before, that one is in replaced. It
// is renamed to done in one step when it is no longer needed.
const (
	replaced = "release-replaced"
	done     = "release-replaced.done"
)

// begin keeps others from making a release in the same folder, and puts back what an
// ended process has moved aside.
func (r *release) begin() (end func() error, err error) {
	end, err = flock.Try(filepath.Join(r.out, "release.lock"))
	if errors.Is(err, flock.ErrTaken) {
		return nil, fmt.Errorf("another release is being made in %s: wait for it, or set OUT to another folder", r.out)
	}
	if err != nil {
		return nil, err
	}
	if err := r.putBack(); err != nil {
		return nil, errors.Join(err, end())
	}
	return end, nil
}

// publish puts the whole release in the place of the one before. That one is put
// back when something fails, and by begin when the process ends.
func (r *release) publish() error {
	if err := r.replace(); err != nil {
		return errors.Join(fmt.Errorf("cannot put the release in its place, so the one before stays: %w", err), r.putBack())
	}
	r.unpublished = ""
	return r.remove(done)
}

func (r *release) remove(folder string) error { return os.RemoveAll(filepath.Join(r.out, folder)) }

func (r *release) replace() error {
	if !exists(filepath.Join(r.out, tarsFolder)) {
		// Images without archives are of no release.
		if err := r.remove(imagesFolder); err != nil {
			return err
		}
	}
	if err := os.Mkdir(filepath.Join(r.out, replaced), 0o755); err != nil {
		return err
	}
	for _, folder := range published {
		if err := moveIfThere(filepath.Join(r.out, folder), filepath.Join(r.out, replaced, folder)); err != nil {
			return err
		}
	}
	// Without a platform that has images there is no folder of them.
	if err := moveIfThere(r.allImages(), filepath.Join(r.out, imagesFolder)); err != nil {
		return err
	}
	if err := os.Rename(r.tars(), filepath.Join(r.out, tarsFolder)); err != nil {
		return err
	}
	return os.Rename(filepath.Join(r.out, replaced), filepath.Join(r.out, done))
}

// putBack undoes what a replace that did not come to its end has done.
func (r *release) putBack() error {
	if err := r.remove(done); err != nil {
		return err
	}
	aside := filepath.Join(r.out, replaced)
	if !exists(aside) {
		return nil
	}
	// The archives of the previous release are moved last. Where they are no longer
	// in their place, or never were, the files there belong to the new one.
	if exists(filepath.Join(aside, tarsFolder)) || !exists(filepath.Join(r.out, tarsFolder)) {
		for _, folder := range published {
			if err := r.remove(folder); err != nil {
				return err
			}
		}
	}
	for _, folder := range published {
		if err := moveIfThere(filepath.Join(aside, folder), filepath.Join(r.out, folder)); err != nil {
			return err
		}
	}
	return r.remove(replaced)
}

func exists(name string) bool {
	_, err := os.Lstat(name)
	return err == nil
}

// moveIfThere renames a folder if there is one.
func moveIfThere(from, to string) error {
	if !exists(from) {
		return nil
	}
	return os.Rename(from, to)
}
