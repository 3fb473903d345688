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

package flock

import (
	"context"
	"errors"
	"path/filepath"
	"testing"
	"time"
)

func TestTry(t *testing.T) {
	file := filepath.Join(t.TempDir(), "new", "lock")
	release, err := Try(file)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Try(file); !errors.Is(err, ErrTaken) {
		t.Errorf("a lock that is taken: %v", err)
	}
	if err := release(); err != nil {
		t.Fatal(err)
	}
	if release, err = Try(file); err != nil {
		t.Fatalf("a lock that is free again: %v", err)
	}
	if err := release(); err != nil {
		t.Error(err)
	}
	if _, err := Try(filepath.Join(file, "below a file")); err == nil || errors.Is(err, ErrTaken) {
		t.Errorf("a lock that cannot be: %v", err)
	}
}

func TestWait(t *testing.T) {
	file := filepath.Join(t.TempDir(), "lock")
	release, err := Try(file)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	if _, err := Wait(ctx, file); !errors.Is(err, ErrTaken) || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a lock that is not free in time: %v", err)
	}
	got := make(chan error)
	go func() {
		second, err := Wait(t.Context(), file)
		if err == nil {
			err = second()
		}
		got <- err
	}()
	if err := release(); err != nil {
		t.Fatal(err)
	}
	if err := <-got; err != nil {
		t.Errorf("a lock that becomes free: %v", err)
	}
}
