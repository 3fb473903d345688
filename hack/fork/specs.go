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
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"k8s.io/kubernetes-features/hack/apispec"
)

// specEdits are the files of api/ that landing writes: upstream's OpenAPI v3
// documents of other groups name only their own, and stay as they are.
//
// They are the files of api/ that upstream has for all groups together, and
// those that only our group has.
var specEdits = append(ownSpecs(),
	edit{"api/" + apispec.Aggregated, editSpec(apispec.Aggregated, func(theirs, ours apispec.Document) error { return theirs.AppendList("items", ours) })},
	edit{"api/" + apispec.Groups, editSpec(apispec.Groups, func(theirs, ours apispec.Document) error { return theirs.AppendList("groups", ours) })},
	edit{"api/" + apispec.Swagger, editSpec(apispec.Swagger, apispec.Document.MergeSwagger)},
)

func ownSpecs() []edit {
	var edits []edit
	for _, name := range slices.Sorted(maps.Keys(apispec.Own)) {
		edits = append(edits, edit{"api/" + name, func(_ context.Context, p *plan, _ []byte) ([]byte, error) { return p.spec(name) }})
	}
	return edits
}

// spec is a file of this repository's api/.
func (p *plan) spec(name string) ([]byte, error) {
	data, err := os.ReadFile(filepath.Join(p.source, "api", filepath.FromSlash(name)))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w; write it with hack/update-openapi-spec.sh", err)
	}
	return data, err
}

// ourSpec is a decoded file of this repository's api/.
func (p *plan) ourSpec(name string) (apispec.Document, error) {
	data, err := p.spec(name)
	if err != nil {
		return nil, err
	}
	d, err := apispec.Decode(data)
	if err != nil {
		return nil, fmt.Errorf("api/%s: %w", name, err)
	}
	return d, nil
}

// editSpec merges our file of a name into upstream's.
func editSpec(name string, merge func(theirs, ours apispec.Document) error) func(context.Context, *plan, []byte) ([]byte, error) {
	return func(_ context.Context, p *plan, base []byte) ([]byte, error) {
		ours, err := p.ourSpec(name)
		if err != nil {
			return nil, err
		}
		theirs, err := apispec.Decode(base)
		if err != nil {
			return nil, fmt.Errorf("upstream's: %w", err)
		}
		if err := merge(theirs, ours); err != nil {
			return nil, err
		}
		return theirs.Encode()
	}
}
