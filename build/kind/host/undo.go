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
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"

	"github.com/google/renameio/v2"

	"k8s.io/kubernetes-features/build/kind/capless/kernel"
)

const (
	// modulesDir is mounted into kind's nodes. Docker makes it where it is missing.
	modulesDir = "/lib/modules"
)

// hiddenDirs are folders of the machine that a daemon writes to whatever its settings
// are: older ones have a key in the first, containerd makes the second. In the
// namespaces they are empty.
var hiddenDirs = []string{"/etc/docker", "/opt/containerd"}

// madeDirs are all folders that runs make where they are missing.
func madeDirs() []string { return append(slices.Clone(hiddenDirs), modulesDir) }

// undo is what namespaces do not keep apart from the machine.
type undo struct {
	// Boot tells starts of the machine apart.
	Boot string `json:"boot"`
	// Cgroup is the parent of the containers' cgroups, as an absolute path below the
	// root of every hierarchy.
	Cgroup string `json:"cgroup,omitempty"`
	// Network is true when the caller's daemon did not have kind's network.
	Network bool `json:"network,omitempty"`
	// Dirs were not there before, and are removed when they are empty.
	Dirs     []string          `json:"dirs,omitempty"`
	Settings map[string]string `json:"settings"`
}

// absent returns those folders that do not exist.
func absent(dirs ...string) (missing []string) {
	for _, dir := range dirs {
		if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
			missing = append(missing, dir)
		}
	}
	return missing
}

// run undoes everything that is there to be undone.
func (u undo) run(ctx context.Context, o Options) error {
	var errs []error
	if u.Cgroup != "" {
		roots, err := cgroupRoots()
		errs = append(errs, err)
		for _, root := range roots {
			errs = append(errs, removeCgroup(ctx, filepath.Join(root, u.Cgroup)))
		}
	}
	errs = append(errs, o.sharing.end(func() error { return u.restore(ctx, o) }, o.Log))
	return errors.Join(errs...)
}

// restore undoes what runs at the same time have in common.
func (u undo) restore(ctx context.Context, o Options) error {
	errs := []error{o.restoreSettings(ctx, u.Settings)}
	for _, dir := range u.Dirs {
		errs = append(errs, removeEmpty(dir))
	}
	return errors.Join(errs...)
}

// removeEmpty leaves a folder with content alone: it is another program's.
func removeEmpty(dir string) error {
	err := syscall.Rmdir(dir)
	if err == nil || errors.Is(err, syscall.ENOENT) || errors.Is(err, syscall.ENOTEMPTY) {
		return nil
	}
	return fmt.Errorf("cannot remove the empty folder %s, which Docker has made: %w; remove it", dir, err)
}

func undoFile(dir string) string { return filepath.Join(dir, "undo.json") }

// save writes what the next run undoes when this one is killed.
func (u undo) save(dir string) (err error) {
	if u.Boot, err = kernel.Boot(); err != nil {
		return err
	}
	content, err := json.MarshalIndent(u, "", "  ")
	if err != nil {
		return err
	}
	if err := renameio.WriteFile(undoFile(dir), content, 0o644); err != nil {
		return fmt.Errorf("cannot note how the machine was: %w", err)
	}
	return nil
}

func (undo) forget(dir string) error { return os.Remove(undoFile(dir)) }

// finishKilled undoes what a run that was killed has left, and returns what that was.
// After a restart of the machine nothing is left but what a daemon keeps.
func finishKilled(ctx context.Context, o Options) (u undo, err error) {
	content, err := os.ReadFile(undoFile(o.Dir))
	if errors.Is(err, fs.ErrNotExist) {
		return u, nil
	}
	if err != nil {
		return u, fmt.Errorf("cannot read what an earlier run has left: %w", err)
	}
	if err := json.Unmarshal(content, &u); err != nil {
		return u, fmt.Errorf("cannot read what an earlier run has left: %s: %w; remove the file", undoFile(o.Dir), err)
	}
	now, err := kernel.Boot()
	if err != nil {
		return u, err
	}
	if u.Boot == now {
		o.Log("An earlier run was killed, or failed to clean up; cleaning up what it has left")
		if o.sharing, err = share(o.shared); err != nil {
			return u, err
		}
		if err := u.run(ctx, o); err != nil {
			return u, fmt.Errorf("what an earlier run has left cannot be cleaned up: %w; remove %s to leave it", err, undoFile(o.Dir))
		}
	}
	return u, u.forget(o.Dir)
}

// lock keeps two runs from using one folder. It ends with the process, too.
func lock(dir string) (release func() error, err error) {
	f, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return nil, errors.Join(fmt.Errorf("cannot use the folder %s: %w; another run uses it, wait for its end or choose another folder", dir, err), f.Close())
	}
	return f.Close, nil
}
