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
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/google/renameio/v2"

	"k8s.io/kubernetes-features/build/kind/capless/kernel"
)

// sharedDir returns where runs of a user at the same time on one machine find each other,
// also when each has a folder of its own. It is not below TMPDIR, which may differ.
func sharedDir(user int) string {
	const name = "kubernetes-features-kind"
	if user == 0 {
		return "/run/" + name
	}
	return fmt.Sprintf("/tmp/%s-%d", name, user)
}

// original is the machine before the first of the runs at the same time. A run that begins
// after the first would note what the first one's nodes have changed, and the first would
// restore under the nodes of the second, and remove folders that these have mounted. So
// the first notes for all, and the last restores.
type original struct {
	// Boot tells starts of the machine apart.
	Boot     string            `json:"boot"`
	Settings map[string]string `json:"settings"`
	// Dirs were not there.
	Dirs []string `json:"dirs,omitempty"`
}

// sharing is a run among those at the same time. Its lock is shared with them, and is
// exclusive while the first notes and the last restores. It ends with the process, too.
type sharing struct {
	dir  string
	lock *os.File
}

// share joins the runs that use the folder. Others may write beside a user's own folder, and
// could have made it first.
func share(dir string) (*sharing, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("cannot find other runs on this machine: %w", err)
	}
	info, err := os.Lstat(dir)
	if err != nil {
		return nil, fmt.Errorf("cannot find other runs on this machine: %w", err)
	}
	if stat, ok := info.Sys().(*syscall.Stat_t); !ok || !info.IsDir() || int(stat.Uid) != os.Geteuid() {
		return nil, fmt.Errorf("cannot find other runs on this machine: %s is no folder of this user; remove it", dir)
	}
	lock, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, fmt.Errorf("cannot find other runs on this machine: %w", err)
	}
	return &sharing{dir, lock}, nil
}

// alone returns true when there is no other run, and keeps others from beginning until
// join or end. Otherwise this run has no lock any more.
func (s *sharing) alone() (bool, error) {
	err := syscall.Flock(int(s.lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return false, nil
	}
	return err == nil, err
}

func (s *sharing) file() string { return filepath.Join(s.dir, "original.json") }

// join returns the machine as it was before the first run.
func (s *sharing) join(note func() (original, error)) (original, error) {
	for {
		first, err := s.alone()
		if err != nil {
			return original{}, err
		}
		if first {
			// A killed run left this file.
			before, found, err := s.read()
			if err == nil && !found {
				before, err = s.write(note)
			}
			return before, errors.Join(err, syscall.Flock(int(s.lock.Fd()), syscall.LOCK_SH))
		}
		if err := syscall.Flock(int(s.lock.Fd()), syscall.LOCK_SH); err != nil {
			return original{}, err
		}
		// Without a note the last of the others has just ended.
		if before, found, err := s.read(); err != nil || found {
			return before, err
		}
	}
}

// read returns what was noted since the start of the machine.
func (s *sharing) read() (o original, found bool, err error) {
	content, err := os.ReadFile(s.file())
	if errors.Is(err, fs.ErrNotExist) {
		return o, false, nil
	}
	if err != nil {
		return o, false, err
	}
	if err := json.Unmarshal(content, &o); err != nil {
		return o, false, fmt.Errorf("%s: %w; remove the file", s.file(), err)
	}
	now, err := kernel.Boot()
	return o, o.Boot == now, err
}

func (s *sharing) write(note func() (original, error)) (original, error) {
	before, err := note()
	if err != nil {
		return before, err
	}
	if before.Boot, err = kernel.Boot(); err != nil {
		return before, err
	}
	content, err := json.Marshal(before)
	if err != nil {
		return before, err
	}
	return before, renameio.WriteFile(s.file(), content, 0o644)
}

// end has the last of the runs restore the machine, and the others not. This run is none
// of them after it.
func (s *sharing) end(restore func() error, log func(string, ...any)) (err error) {
	defer func() { err = errors.Join(err, s.lock.Close()) }()
	last, err := s.alone()
	if err != nil {
		return err
	}
	if !last {
		log("Another run is active; settings of the kernel and folders are restored at its end")
		return nil
	}
	if err := restore(); err != nil {
		return err
	}
	if err := os.Remove(s.file()); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
