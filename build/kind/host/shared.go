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
)

// sharedDir is where runs at the same time on one machine find each other, also when each
// has a folder of its own. Only root can write there, and only root can restore settings.
const sharedDir = "/run/kubernetes-features-kind"

// original are the kernel's settings before the first of the runs at the same time. A run
// that begins after the first would note what the first one's nodes have changed, and
// the first would restore under the nodes of the second. So the first notes for all, and the
// last restores.
type original struct {
	// Boot tells starts of the machine apart.
	Boot     string            `json:"boot"`
	Settings map[string]string `json:"settings"`
}

// sharing is a run among those at the same time. Its lock is shared with them, and is
// exclusive while the first notes and the last restores. It ends with the process, too.
type sharing struct {
	dir  string
	lock *os.File
}

// share returns nil where runs cannot find each other, without root.
func share(dir string) (*sharing, error) {
	err := os.MkdirAll(dir, 0o755)
	if err == nil {
		var lock *os.File
		if lock, err = os.OpenFile(filepath.Join(dir, "lock"), os.O_CREATE|os.O_RDWR, 0o644); err == nil {
			return &sharing{dir, lock}, nil
		}
	}
	if errors.Is(err, fs.ErrPermission) {
		return nil, nil
	}
	return nil, fmt.Errorf("cannot find other runs on this machine: %w", err)
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

func (s *sharing) file() string { return filepath.Join(s.dir, "settings.json") }

// join returns the settings as they were before the first run.
func (s *sharing) join(note func() (map[string]string, error)) (map[string]string, error) {
	if s == nil {
		return note()
	}
	for {
		first, err := s.alone()
		if err != nil {
			return nil, err
		}
		if first {
			// What is there a run has left that was killed.
			before, err := s.read()
			if err == nil && before == nil {
				before, err = s.write(note)
			}
			return before, errors.Join(err, syscall.Flock(int(s.lock.Fd()), syscall.LOCK_SH))
		}
		if err := syscall.Flock(int(s.lock.Fd()), syscall.LOCK_SH); err != nil {
			return nil, err
		}
		// Without a note the last of the others has just ended.
		if before, err := s.read(); err != nil || before != nil {
			return before, err
		}
	}
}

// read returns nil where nothing was noted since the start of the machine.
func (s *sharing) read() (map[string]string, error) {
	content, err := os.ReadFile(s.file())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var o original
	if err := json.Unmarshal(content, &o); err != nil {
		return nil, fmt.Errorf("%s: %w; remove the file", s.file(), err)
	}
	now, err := boot()
	if err != nil || o.Boot != now {
		return nil, err
	}
	return o.Settings, nil
}

func (s *sharing) write(note func() (map[string]string, error)) (map[string]string, error) {
	before, err := note()
	if err != nil {
		return nil, err
	}
	now, err := boot()
	if err != nil {
		return nil, err
	}
	content, err := json.Marshal(original{now, before})
	if err != nil {
		return nil, err
	}
	return before, renameio.WriteFile(s.file(), content, 0o644)
}

// end has the last of the runs restore settings, and the others not. This run is none of
// them after it.
func (s *sharing) end(restore func() error, log func(string, ...any)) (err error) {
	if s == nil {
		return restore()
	}
	defer func() { err = errors.Join(err, s.lock.Close()) }()
	last, err := s.alone()
	if err != nil {
		return err
	}
	if !last {
		log("Another run is active; settings of the kernel are restored at its end")
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
