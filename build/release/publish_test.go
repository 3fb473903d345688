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
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"k8s.io/kubernetes-features/build/release/targets"
)

// TestAFailedReleaseLeavesTheOneBefore ends a release at its second platform, by
// a failure and by a signal.
func TestAFailedReleaseLeavesTheOneBefore(t *testing.T) {
	r := standIn(t, checkout(t), amd64)
	before, err := os.ReadFile(filepath.Join(r.tars(), "SHA256SUMS"))
	if err != nil {
		t.Fatal(err)
	}
	compile, ctx := r.compile, t.Context()
	broken := errors.New("does not compile")
	for what, want := range map[string]error{"a failure": broken, "a signal": context.Canceled} {
		ctx, end := context.WithCancel(ctx)
		r.compile = func(ctx context.Context, p targets.Platform) error {
			if p == amd64 {
				return compile(ctx, p)
			}
			if errors.Is(want, broken) {
				return broken
			}
			err := compile(ctx, p)
			end()
			return err
		}
		if err := r.make(ctx, []targets.Platform{amd64, arm64}); !errors.Is(err, want) {
			t.Errorf("%s: the release ended with %v, want %v", what, err, want)
		}
		end()
		r.unpublished = ""
		checkSums(t, r.tars())
		after, err := os.ReadFile(filepath.Join(r.tars(), "SHA256SUMS"))
		if err != nil || !bytes.Equal(before, after) {
			t.Errorf("after %s the release before is another one: %v", what, err)
		}
		if _, err := os.Stat(filepath.Join(r.images("amd64"), "kube-proxy.tar")); err != nil {
			t.Errorf("after %s an image of the release before is gone: %v", what, err)
		}
		left, err := filepath.Glob(filepath.Join(r.out, "*", "*", ".archive-*"))
		if err != nil || len(left) > 0 {
			t.Errorf("%s left %v: %v", what, left, err)
		}
	}
	r.compile = compile
	if err := r.make(ctx, []targets.Platform{amd64}); err != nil {
		t.Errorf("after failures: %v", err)
	}
}

// lay makes empty files in the folder of a release, and returns that.
func lay(t *testing.T, names ...string) *release {
	t.Helper()
	r := &release{out: t.TempDir(), unpublished: ".new"}
	for _, name := range names {
		file := filepath.Join(r.out, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return r
}

// laid are the files there are but for the lock.
func laid(t *testing.T, r *release) []string {
	t.Helper()
	var names []string
	err := fs.WalkDir(os.DirFS(r.out), ".", func(name string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && name != "release.lock" {
			names = append(names, name)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(names)
	return names
}

// TestPublish puts a release in the place of another.
func TestPublish(t *testing.T) {
	images, tars := []string{"release-images/old", "release-images.new/new"}, []string{"release-tars/old", "release-tars.new/new"}
	for _, c := range []struct {
		what         string
		before, want []string
		fails        bool
	}{
		{"both", slices.Concat(images, tars), []string{"release-images/new", "release-tars/new"}, false},
		{"the first", []string{images[1], tars[1]}, []string{"release-images/new", "release-tars/new"}, false},
		{"no images before", slices.Concat(images[1:], tars), []string{"release-images/new", "release-tars/new"}, false},
		{"no images now", slices.Concat(images[:1], tars), []string{"release-tars/new"}, false},
		{"images of no release", []string{images[0], tars[1]}, []string{"release-tars/new"}, false},
		{"new archives that are gone", slices.Concat(images, tars[:1]), []string{"release-images/old", "release-tars/old"}, true},
		{"new archives that are gone, and no images before", []string{images[1], tars[0]}, []string{"release-tars/old"}, true},
		{"nothing before, and new archives that are gone", images[1:], nil, true},
	} {
		r := lay(t, c.before...)
		if err := r.publish(); (err != nil) != c.fails {
			t.Errorf("%s: %v", c.what, err)
		}
		if diff := gocmp.Diff(c.want, laid(t, r)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.what, diff)
		}
	}
}

// TestCrashBetweenPublishSteps begins a release after a process has ended while it put one in its
// place, at each of its steps.
func TestCrashBetweenPublishSteps(t *testing.T) {
	old := []string{"release-images/old", "release-tars/old"}
	for _, c := range []struct {
		what         string
		before, want []string
	}{
		{"images are aside", []string{"release-replaced/release-images/old", "release-tars/old", "release-images.new/new", "release-tars.new/new"},
			append(slices.Clone(old), "release-images.new/new", "release-tars.new/new")},
		{"both are aside", []string{"release-replaced/release-images/old", "release-replaced/release-tars/old", "release-images.new/new"}, append(slices.Clone(old), "release-images.new/new")},
		{"new images are in the place", []string{"release-replaced/release-images/old", "release-replaced/release-tars/old", "release-images/new", "release-tars.new/new"},
			append(slices.Clone(old), "release-tars.new/new")},
		{"all new is in the place", []string{"release-replaced/release-images/old", "release-replaced/release-tars/old", "release-images/new", "release-tars/new"}, old},
		{"the first release, of which images are in the place", []string{"release-replaced/x", "release-images/new"}, nil},
		{"the old one is being removed", []string{"release-replaced.done/release-tars/old", "release-images/new", "release-tars/new"}, []string{"release-images/new", "release-tars/new"}},
	} {
		r := lay(t, c.before...)
		end, err := r.begin()
		if err != nil {
			t.Fatal(err)
		}
		got, want := laid(t, r), slices.Sorted(slices.Values(c.want))
		if diff := gocmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.what, diff)
		}
		if err := end(); err != nil {
			t.Error(err)
		}
	}
}

// TestTwoReleasesAtOnce makes one in the folder where another is being made.
func TestTwoReleasesAtOnce(t *testing.T) {
	r := lay(t, "release-tars/old", "release-stage/bin/linux/amd64/kubectl")
	end, err := r.begin()
	if err != nil {
		t.Fatal(err)
	}
	second := &release{out: r.out}
	if err := second.make(t.Context(), []targets.Platform{amd64}); err == nil || !strings.Contains(err.Error(), "another release is being made in "+r.out) {
		t.Errorf("a second release: %v", err)
	}
	if got := laid(t, r); len(got) != 2 {
		t.Errorf("the second release has touched what the first makes: %v", got)
	}
	if err := end(); err != nil {
		t.Error(err)
	}
}
