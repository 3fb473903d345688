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
	"encoding/json"
	"fmt"
	"os"
	"slices"

	"github.com/google/renameio/v2"
)

// object keeps values that are not looked into as they were written.
type object map[string]json.RawMessage

// strip takes capabilities out of a configuration or of a process' description.
func strip(file string, names []string) error {
	content, err := os.ReadFile(file)
	if err != nil {
		return fmt.Errorf("cannot read what the container asks for: %w", err)
	}
	stripped, err := without(content, names)
	if err != nil {
		return fmt.Errorf("cannot take capabilities out of %s: %w", file, err)
	}
	if bytes.Equal(stripped, content) {
		return nil
	}
	// The mode of a file that exists stays.
	if err := renameio.WriteFile(file, stripped, 0o600); err != nil {
		return fmt.Errorf("cannot write what the container may have: %w", err)
	}
	return nil
}

// without returns the content without capabilities, and the same content where none
// was asked for. A configuration has them below "process", a process' description at
// its top.
func without(content []byte, names []string) ([]byte, error) {
	var top object
	if err := json.Unmarshal(content, &top); err != nil {
		return nil, err
	}
	changed, err := inner(top, "process", func(process object) (bool, error) { return stripProcess(process, names) })
	if err != nil {
		return nil, err
	}
	atTop, err := stripProcess(top, names)
	if err != nil {
		return nil, err
	}
	if !changed && !atTop {
		return content, nil
	}
	return encode(top)
}

func stripProcess(process object, names []string) (bool, error) {
	return inner(process, "capabilities", func(sets object) (bool, error) { return stripSets(sets, names) })
}

// stripSets changes all sets: bounding, effective, inheritable, permitted and ambient.
func stripSets(sets object, names []string) (changed bool, err error) {
	for set, raw := range sets {
		var all []string
		if err := json.Unmarshal(raw, &all); err != nil {
			return false, fmt.Errorf("capabilities.%s: %w", set, err)
		}
		kept := slices.DeleteFunc(slices.Clone(all), func(name string) bool { return slices.Contains(names, name) })
		if len(kept) == len(all) {
			continue
		}
		changed = true
		if sets[set], err = encode(kept); err != nil {
			return false, err
		}
	}
	return changed, nil
}

// inner changes the object that another one has under a key, if there is one.
func inner(outer object, key string, change func(object) (bool, error)) (bool, error) {
	raw, ok := outer[key]
	if !ok {
		return false, nil
	}
	var value object
	if err := json.Unmarshal(raw, &value); err != nil {
		return false, fmt.Errorf("%s: %w", key, err)
	}
	changed, err := change(value)
	if err != nil || !changed {
		return false, err
	}
	outer[key], err = encode(value)
	return true, err
}

// encode differs from json.Marshal in signs of HTML, which stay as they are.
func encode(value any) ([]byte, error) {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		return nil, err
	}
	return bytes.TrimSpace(b.Bytes()), nil
}
