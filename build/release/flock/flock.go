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

// Package flock keeps two processes, or two goroutines of one, from working in the
// same folder at once. A lock ends with the process that has it, however that ends.
package flock

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// ErrTaken is returned when another process has the lock.
var ErrTaken = errors.New("another process has the lock")

// Try takes the lock on a file, which it makes together with its folder and which
// stays. The error is ErrTaken when another process has it. The lock ends with
// release.
func Try(file string) (release func() error, err error) {
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(file, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, err
	}
	err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if err == nil {
		return f.Close, nil
	}
	if errors.Is(err, syscall.EWOULDBLOCK) {
		err = ErrTaken
	}
	return nil, errors.Join(fmt.Errorf("cannot lock %s: %w", file, err), f.Close())
}

// pause is the time that Wait waits between two attempts. The system call that waits by
// itself does not end with a context.
const pause = 100 * time.Millisecond

// Wait is Try that waits until the lock is free or ctx has ended.
func Wait(ctx context.Context, file string) (release func() error, err error) {
	again := time.NewTicker(pause)
	defer again.Stop()
	for {
		release, err := Try(file)
		if !errors.Is(err, ErrTaken) {
			return release, err
		}
		select {
		case <-ctx.Done():
			return nil, errors.Join(err, ctx.Err())
		case <-again.C:
		}
	}
}
