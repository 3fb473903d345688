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

// Package apispec reads, cuts and writes the files of api/ as upstream's
// hack/update-openapi-spec.sh does. hack/openapi-spec writes this repository's,
// which have one group; hack/fork adds them to upstream's, which have all.
package apispec

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"reflect"
	"slices"
	"strings"
)

const (
	// Group is the API group that the files are about.
	Group = "features.k8s.io"
	// Swagger is the OpenAPI v2 document below api/; upstream's has all groups.
	Swagger = "openapi-spec/swagger.json"
	// Aggregated is the discovery of all groups in one document.
	Aggregated = "discovery/aggregated_v2.json"
	// Groups is the list of groups.
	Groups = "discovery/apis.json"
	// V3 is the folder of the OpenAPI v3 documents.
	V3 = "openapi-spec/v3"
	// kinds is the key under which the types that every group has
	// (DeleteOptions, WatchEvent) list all groups.
	kinds = "x-kubernetes-group-version-kind"
)

// Own are the files below api/ that only the group has, with the server's paths
// that they are got from.
var Own = map[string]string{
	"discovery/apis__features.k8s.io.json":           "/apis/features.k8s.io",
	"discovery/apis__features.k8s.io__v1alpha1.json": "/apis/features.k8s.io/v1alpha1",
	V3 + "/apis__features.k8s.io_openapi.json":       "/openapi/v3/apis/features.k8s.io",
	OwnVersion: "/openapi/v3/apis/features.k8s.io/v1alpha1",
}

// OwnVersion is the OpenAPI v3 document of the group's version.
const OwnVersion = V3 + "/apis__features.k8s.io__v1alpha1_openapi.json"

// Document is a JSON object.
type Document map[string]any

// Decode reads a document; numbers stay as they are written.
func Decode(data []byte) (Document, error) {
	var d Document
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

// Encode writes a document as "jq -S" does: sorted, indented, and with a newline.
func (d Document) Encode() ([]byte, error) {
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	err := encoder.Encode(d)
	return out.Bytes(), err
}

// Unversioned replaces the server's version: the files are those of a branch.
func (d Document) Unversioned() {
	if info, ok := d["info"].(map[string]any); ok {
		info["version"] = "unversioned"
	}
}

// CutList leaves the group's elements in a list: "items" of aggregated discovery
// or "groups" of the list of groups.
func (d Document) CutList(list string) error {
	all, _ := d[list].([]any)
	d[list] = slices.DeleteFunc(all, func(element any) bool { return !ofGroup(element) })
	if n := len(d[list].([]any)); n != 1 {
		return fmt.Errorf("the list %q has %s %d times, not once", list, Group, n)
	}
	return nil
}

func ofGroup(element any) bool {
	fields, _ := element.(map[string]any)
	if metadata, ok := fields["metadata"].(map[string]any); ok {
		fields = metadata
	}
	return fields["name"] == Group
}

// CutSwagger leaves the group's paths and what they refer to.
func (d Document) CutSwagger() error {
	paths, _ := d["paths"].(map[string]any)
	maps.DeleteFunc(paths, func(path string, _ any) bool {
		return path != "/apis/"+Group+"/" && !strings.HasPrefix(path, "/apis/"+Group+"/")
	})
	if len(paths) == 0 {
		return fmt.Errorf("the OpenAPI document has no path of %s", Group)
	}
	kept := map[string]map[string]any{"definitions": {}, "parameters": {}}
	for queue := referred(paths); len(queue) > 0; queue = queue[1:] {
		section, name, ok := strings.Cut(strings.TrimPrefix(queue[0], "#/"), "/")
		if !ok || kept[section] == nil {
			return fmt.Errorf("the OpenAPI document refers to %s, in a section that is not cut; see CutSwagger", queue[0])
		}
		if kept[section][name] != nil {
			continue
		}
		all, _ := d[section].(map[string]any)
		value := all[name]
		if value == nil {
			return fmt.Errorf("the OpenAPI document refers to %s and does not define it", queue[0])
		}
		kept[section][name] = value
		queue = append(queue, referred(value)...)
	}
	for section, values := range kept {
		d[section] = values
	}
	return nil
}

// referred are the references in a value: to definitions and to parameters.
func referred(value any) []string {
	var references []string
	switch v := value.(type) {
	case map[string]any:
		for key, field := range v {
			if reference, ok := field.(string); ok && key == "$ref" {
				references = append(references, reference)
				continue
			}
			references = append(references, referred(field)...)
		}
	case []any:
		for _, element := range v {
			references = append(references, referred(element)...)
		}
	}
	return references
}

// AppendList adds the group's elements to upstream's list. The group has the
// lowest priority of all (a test of cmd/kube-apiserver/controlplane holds that), so it is last.
func (d Document) AppendList(list string, ours Document) error {
	all, _ := d[list].([]any)
	add, _ := ours[list].([]any)
	if len(all) == 0 || len(add) == 0 {
		return fmt.Errorf("the list %q is empty in upstream's or in our file", list)
	}
	d[list] = append(all, add...)
	return nil
}

// MergeSwagger adds the group's paths, definitions and parameters to upstream's.
func (d Document) MergeSwagger(ours Document) error {
	for _, section := range []string{"paths", "definitions", "parameters"} {
		all, _ := d[section].(map[string]any)
		add, _ := ours[section].(map[string]any)
		if len(all) == 0 || len(add) == 0 {
			return fmt.Errorf("%s are missing in upstream's or in our file", section)
		}
		for name, value := range add {
			if existing, ok := all[name]; ok && !agree(existing, value) {
				return fmt.Errorf("%q is another one upstream; rewrite ours with hack/update-openapi-spec.sh", name)
			}
			all[name] = value
		}
	}
	return nil
}

// agree is true for the same value, and for a type whose list of groups is the
// same but for ours.
func agree(theirs, ours any) bool {
	return reflect.DeepEqual(theirs, ours) || reflect.DeepEqual(withoutGroup(theirs), withoutGroup(ours))
}

func withoutGroup(definition any) any {
	fields, ok := definition.(map[string]any)
	if !ok {
		return definition
	}
	fields = maps.Clone(fields)
	list, ok := fields[kinds].([]any)
	if ok {
		fields[kinds] = slices.DeleteFunc(slices.Clone(list), func(kind any) bool {
			of, _ := kind.(map[string]any)
			return of["group"] == Group
		})
	}
	return fields
}
