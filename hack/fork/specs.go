/*
Copyright 2026 The Kubernetes Authors.

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
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
)

// groupName is the API group.
const groupName = "features.k8s.io"

// groupSpecs are the files of api/ that only our group has.
var groupSpecs = []string{
	"discovery/apis__features.k8s.io.json",
	"discovery/apis__features.k8s.io__v1alpha1.json",
	"openapi-spec/v3/apis__features.k8s.io_openapi.json",
	"openapi-spec/v3/apis__features.k8s.io__v1alpha1_openapi.json",
}

// specEdits are the files of api/: ours, and those that have every group.
var specEdits = append(copySpecs(groupSpecs),
	// The group has the lowest priority of all, so it is the last (a test of
	// pkg/controlplane holds that).
	edit{"api/discovery/aggregated_v2.json", appendSpec("items")},
	edit{"api/discovery/apis.json", appendSpec("groups")},
	edit{"api/openapi-spec/swagger.json", mergeSwagger},
)

func copySpecs(names []string) []edit {
	var edits []edit
	for _, name := range names {
		edits = append(edits, edit{"api/" + name, func(_ context.Context, p *plan, _ []byte) ([]byte, error) {
			return p.spec("api/" + name)
		}})
	}
	return edits
}

// spec is a file of this repository's api/.
func (p *plan) spec(name string) ([]byte, error) {
	data, err := os.ReadFile(filepath.Join(p.source, filepath.FromSlash(name)))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w; write it with hack/update-openapi-spec.sh", err)
	}
	return data, err
}

// document is a JSON object of api/.
type document map[string]any

// decode reads a document; numbers stay as they are written.
func decode(data []byte) (document, error) {
	var d document
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.UseNumber()
	if err := decoder.Decode(&d); err != nil {
		return nil, err
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("there is more than one JSON document")
	}
	return d, nil
}

// encode writes a document as upstream's "jq -S" does.
func (d document) encode() ([]byte, error) {
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	err := encoder.Encode(d)
	return out.Bytes(), err
}

// pair decodes upstream's file and ours of the same name.
func (p *plan) pair(name string, base []byte) (theirs, ours document, err error) {
	data, err := p.spec(name)
	if err != nil {
		return nil, nil, err
	}
	if ours, err = decode(data); err != nil {
		return nil, nil, fmt.Errorf("ours: %w", err)
	}
	if theirs, err = decode(base); err != nil {
		return nil, nil, fmt.Errorf("upstream's: %w", err)
	}
	return theirs, ours, nil
}

// appendSpec adds the elements of our list to upstream's.
func appendSpec(list string) func(context.Context, *plan, []byte) ([]byte, error) {
	name := map[string]string{"items": "api/discovery/aggregated_v2.json", "groups": "api/discovery/apis.json"}[list]
	return func(_ context.Context, p *plan, base []byte) ([]byte, error) {
		theirs, ours, err := p.pair(name, base)
		if err != nil {
			return nil, err
		}
		all, ok := theirs[list].([]any)
		if !ok {
			return nil, fmt.Errorf("upstream's has no list %q", list)
		}
		add, ok := ours[list].([]any)
		if !ok || len(add) == 0 {
			return nil, fmt.Errorf("ours has nothing in the list %q", list)
		}
		theirs[list] = append(all, add...)
		return theirs.encode()
	}
}

// mergeSwagger adds our paths and definitions to upstream's.
func mergeSwagger(_ context.Context, p *plan, base []byte) ([]byte, error) {
	theirs, ours, err := p.pair("api/openapi-spec/swagger.json", base)
	if err != nil {
		return nil, err
	}
	for _, section := range []string{"paths", "definitions"} {
		all, ok := theirs[section].(map[string]any)
		if !ok {
			return nil, fmt.Errorf("upstream's has no %s", section)
		}
		add, ok := ours[section].(map[string]any)
		if !ok || len(add) == 0 {
			return nil, fmt.Errorf("ours has no %s", section)
		}
		for name, value := range add {
			if all[name], err = reconcile(name, all[name], value); err != nil {
				return nil, err
			}
		}
	}
	return theirs.encode()
}

// groupVersionKinds is where the types that every group has (DeleteOptions,
// WatchEvent) list all groups.
const groupVersionKinds = "x-kubernetes-group-version-kind"

// reconcile is what both upstream and we have under a name: the same, or a list
// of groups to which ours adds one. Anything else is a difference that nobody
// meant.
func reconcile(name string, theirs, ours any) (any, error) {
	if theirs == nil || reflect.DeepEqual(theirs, ours) {
		return ours, nil
	}
	definition, ok := ours.(map[string]any)
	if ok {
		definition = maps.Clone(definition)
		kinds, _ := definition[groupVersionKinds].([]any)
		definition[groupVersionKinds] = slices.DeleteFunc(slices.Clone(kinds), func(kind any) bool {
			fields, _ := kind.(map[string]any)
			return fields["group"] == groupName
		})
		if reflect.DeepEqual(theirs, any(definition)) {
			return ours, nil
		}
	}
	return nil, fmt.Errorf("%q is another one upstream; write ours anew with hack/update-openapi-spec.sh", name)
}

// commonTypes adds our group to the types that every group has, in the documents
// of all other groups.
func (p *plan) commonTypes(number int) error {
	data, err := p.spec("api/openapi-spec/v3/apis__features.k8s.io__v1alpha1_openapi.json")
	if err != nil {
		return err
	}
	ours, err := decode(data)
	if err != nil {
		return err
	}
	files, err := filepath.Glob(filepath.Join(p.base.dir, "api", "openapi-spec", "v3", "*.json"))
	if err != nil {
		return err
	}
	for _, file := range files {
		base, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		name := "api/openapi-spec/v3/" + filepath.Base(file)
		data, err := withCommonTypes(base, ours)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		if bytes.Equal(base, data) {
			continue
		}
		if err := p.add(&target{path: name, data: data, part: number, base: base}); err != nil {
			return err
		}
	}
	return nil
}

// schemas are the definitions of an OpenAPI v3 document.
func (d document) schemas() map[string]any {
	components, _ := d["components"].(map[string]any)
	schemas, _ := components["schemas"].(map[string]any)
	return schemas
}

// withCommonTypes is a document of upstream's with our group in the types that
// ours also has.
func withCommonTypes(base []byte, ours document) ([]byte, error) {
	theirs, err := decode(base)
	if err != nil {
		return nil, err
	}
	changed := false
	own, schemas := ours.schemas(), theirs.schemas()
	for name, definition := range schemas {
		mine, ok := own[name]
		if !ok || reflect.DeepEqual(mine, definition) {
			continue
		}
		if schemas[name], err = reconcile(name, definition, mine); err != nil {
			return nil, err
		}
		changed = true
	}
	if !changed {
		return base, nil
	}
	return theirs.encode()
}
