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
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// record is the result of a shard's last run in this checkout.
type record struct {
	figures
	// Hash is the fingerprint of what the shard depended on, "" when it is not known.
	Hash string
	// At is the time of its end.
	At      time.Time
	Seconds float64
}

// dir is the directory for all data about shards.
func (r *runner) dir() string { return filepath.Join(r.out, "shards") }

// lock keeps other runs out: they would write the same files, build the same binaries,
// and run beside shards with Alone. It ends with the process.
func (r *runner) lock() (unlock func(), err error) {
	file, err := os.Create(filepath.Join(r.dir(), "lock"))
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		_ = file.Close()
		return nil, fmt.Errorf("another run of shards works in %s; wait for it or end it, or take another checkout: %w", r.dir(), err)
	}
	return func() { _ = file.Close() }, nil
}

func (r *runner) file(s Shard, suffix string) string { return filepath.Join(r.dir(), s.Name+suffix) }

const (
	passedSuffix = ".passed.json"
	failedSuffix = ".failed.json"
)

// readRecord returns nil when there is none.
func (r *runner) readRecord(s Shard, suffix string) (*record, error) {
	data, err := os.ReadFile(r.file(s, suffix))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var rec record
	if err := json.Unmarshal(data, &rec); err != nil {
		return nil, fmt.Errorf("reading %s, which \"make clean\" removes: %w", r.file(s, suffix), err)
	}
	return &rec, nil
}

// writeRecord replaces what is known of the shard.
func (r *runner) writeRecord(s Shard, suffix string, rec record) error {
	for _, other := range []string{passedSuffix, failedSuffix} {
		if err := os.Remove(r.file(s, other)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	data, err := json.MarshalIndent(rec, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(r.file(s, suffix), append(data, '\n'), 0o644)
}
