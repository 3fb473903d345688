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

package host

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/moby/sys/mountinfo"
)

// cgroupEnds is the time that the kernel has to take the last process, which has
// ended, out of a cgroup.
const cgroupEnds = 20 * time.Second

// cgroupRoots returns where the hierarchies of cgroups are mounted, of both versions.
func cgroupRoots() (roots []string, err error) {
	mounts, err := mountinfo.GetMounts(mountinfo.FSTypeFilter("cgroup", "cgroup2"))
	if err != nil {
		return nil, fmt.Errorf("cannot find the hierarchies of cgroups: %w", err)
	}
	for _, m := range mounts {
		roots = append(roots, m.Mountpoint)
	}
	slices.Sort(roots)
	return slices.Compact(roots), nil
}

// thaw lets processes of a cgroup and those below it end, which cgroups of version 1 keep
// from that while they are frozen. A runtime freezes a container for a moment, and when it
// is killed meanwhile, the container stays frozen.
func thaw(dir string) error {
	const file, thawed = "freezer.state", "THAWED"
	return filepath.WalkDir(dir, func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || entry.Name() != file {
			return ignoreMissing(err)
		}
		state, err := os.ReadFile(name)
		if err != nil || strings.TrimSpace(string(state)) == thawed {
			return ignoreMissing(err)
		}
		return ignoreMissing(os.WriteFile(name, []byte(thawed+"\n"), 0o644))
	})
}

// ignoreMissing returns nil for a cgroup that has been removed meanwhile.
func ignoreMissing(err error) error {
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENODEV) {
		return nil
	}
	return err
}

// thawAll is thaw in all hierarchies, for the absolute path of a cgroup below their roots.
func thawAll(cgroup string) error {
	roots, err := cgroupRoots()
	for _, root := range roots {
		err = errors.Join(err, thaw(filepath.Join(root, cgroup)))
	}
	if err != nil {
		return fmt.Errorf("cannot let frozen containers end: %w", err)
	}
	return nil
}

// removeCgroup removes a cgroup and those below it, the deepest first.
func removeCgroup(ctx context.Context, dir string) error {
	last := thaw(dir)
	if last != nil {
		return fmt.Errorf("cannot let the processes of the cgroup %s end: %w", dir, last)
	}
	// The error of the wait says only that the cgroup stays.
	_ = poll(ctx, cgroupEnds, func() bool {
		last = removeFolders(dir)
		return last == nil
	})
	if last != nil {
		return fmt.Errorf("the cgroup %s is left: %w; end its processes and remove it", dir, last)
	}
	return nil
}

// removeFolders removes a folder and those below it. Files of cgroups are none to be
// removed.
func removeFolders(dir string) error {
	var dirs []string
	err := filepath.WalkDir(dir, func(name string, entry fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err == nil && entry.IsDir() {
			dirs = append(dirs, name)
		}
		return err
	})
	if err != nil {
		return err
	}
	for _, name := range slices.Backward(dirs) {
		if err := syscall.Rmdir(name); err != nil && !errors.Is(err, syscall.ENOENT) {
			return fmt.Errorf("rmdir %s: %w", name, err)
		}
	}
	return nil
}
