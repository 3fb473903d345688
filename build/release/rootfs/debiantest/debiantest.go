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

// Package debiantest gives tests the packages of Debian that releases are made of.
package debiantest

import (
	"context"
	"os"
	"strings"
	"sync"
	"testing"

	"k8s.io/kubernetes-features/build/release/leftout"
	"k8s.io/kubernetes-features/build/release/rootfs"
	"k8s.io/kubernetes-features/build/release/targets"
)

// Dir returns the folder for Debian's packages, RELEASE_DEBIAN. Without one it skips
// the test.
func Dir(t *testing.T) string {
	t.Helper()
	dir := os.Getenv("RELEASE_DEBIAN")
	if dir == "" {
		leftout.Skip(t, "RELEASE_DEBIAN names no folder for Debian's packages; \"make test-release\" sets it")
	}
	return dir
}

// Lock returns the text of a lock file and sees to it that apt.Dir has its packages.
// It is the one in the file or, when there is no way to these packages any more, a
// new one: mirrors drop a version as soon as there is a fix for it, and not every
// machine reaches snapshot.debian.org. What is made of the packages can be tested
// with those of today as well; that the lock file is outdated is noted.
func Lock(t *testing.T, file string, apt rootfs.Apt) string {
	t.Helper()
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	err = fetch(t.Context(), string(content), apt)
	if err == nil {
		return string(content)
	}
	newest, second := todays(t.Context(), string(content), apt)
	if second == nil {
		second = fetch(t.Context(), newest, apt)
	}
	if second != nil {
		t.Fatalf("neither the packages of %s (%v) nor today's can be fetched: %v", file, err, second)
	}
	leftout.Note(t, "the packages of "+file+"; today's are taken: "+err.Error())
	return newest
}

var (
	replacing sync.Mutex
	// replaced has what replaces outdated lock files, by their texts.
	replaced = map[string]string{}
)

// todays returns the same lock file for the same outdated one: a lock file says when it
// was made, and tests compare what was made of two copies of one.
func todays(ctx context.Context, outdated string, apt rootfs.Apt) (string, error) {
	replacing.Lock()
	defer replacing.Unlock()
	if newest, ok := replaced[outdated]; ok {
		return newest, nil
	}
	newest, err := rootfs.NewLock(ctx, apt)
	if err == nil {
		replaced[outdated] = newest
	}
	return newest, err
}

// fetch fetches the packages of a lock file.
func fetch(ctx context.Context, text string, apt rootfs.Apt) error {
	for _, apt.Arch = range targets.ImageArchitectures() {
		lock, err := rootfs.ReadLock(strings.NewReader(text), apt.Arch)
		if err != nil {
			return err
		}
		if _, err := apt.Fetch(ctx, lock); err != nil {
			return err
		}
	}
	return nil
}
