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
	"context"
	"fmt"
	"maps"
	"sync"
	"testing"
)

const root = "../.."

// fixture is a plan of this repository that is made once for all tests: reading
// upstream and editing its API specs takes seconds.
type fixture struct {
	once sync.Once
	make func(ctx context.Context, base *upstream) (*plan, error)
	plan *plan
	err  error
}

// get copies the plan, so that a test may change files of its own copy.
func (f *fixture) get(t *testing.T) *plan {
	t.Helper()
	f.once.Do(func() {
		base, err := findUpstream(t.Context(), root)
		if err != nil {
			f.err = err
			return
		}
		f.plan, f.err = f.make(t.Context(), base)
	})
	if f.err != nil {
		t.Fatal(f.err)
	}
	copied := *f.plan
	copied.files = maps.Clone(f.plan.files)
	for name, file := range copied.files {
		own := *file
		copied.files[name] = &own
	}
	return &copied
}

var withoutSpecsFixture = fixture{make: func(ctx context.Context, base *upstream) (*plan, error) {
	p := &plan{source: root, base: base, files: map[string]*target{}}
	if err := p.addAll(ctx); err != nil {
		return nil, err
	}
	for number, edits := range [][]edit{libraryEdits, groupEdits, pluginEdits, testEdits} {
		for _, e := range edits {
			if err := p.edit(ctx, number, e); err != nil {
				return nil, fmt.Errorf("%s: %w", e.file, err)
			}
		}
	}
	return p, nil
}}

// withoutSpecs is a plan of what lands and of what is edited beside, without the API
// specs.
func withoutSpecs(t *testing.T) *plan {
	t.Helper()
	return withoutSpecsFixture.get(t)
}

var wholeFixture = fixture{make: func(ctx context.Context, base *upstream) (*plan, error) { return newPlan(ctx, root, base) }}

// whole has all files that landing writes.
func whole(t *testing.T) *plan {
	t.Helper()
	return wholeFixture.get(t)
}
