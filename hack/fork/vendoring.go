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
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
)

// vendoringFile records in the checkout's git directory how vendoring went. Without
// it, files that the go command left in vendor/ could not be distinguished from a
// user's work.
const vendoringFile = "feature-lifecycle-vendoring.json"

// vendoring is the progress of the last landing with vendor/ and
// LICENSES/vendor.
type vendoring struct {
	// Due is set from before the first file lands until vendor/ is renewed.
	Due bool `json:"due"`
	// Running is the commit at HEAD while the go command runs. Where it stays, the
	// command was killed, and nothing else is known of what it left: on that commit
	// all changes of vendor/ are taken for its own.
	Running string `json:"running,omitempty"`
	// Left are the hashes of files that differ from the commit as landing left
	// them, empty for those that are gone.
	Left map[string]string `json:"left,omitempty"`
}

// isVendor is true for what vendoring writes.
func isVendor(name string) bool {
	return strings.HasPrefix(name, "vendor/") || strings.HasPrefix(name, vendorLicenses)
}

// left is true for a file that is as vendoring left it.
func (v vendoring) left(c checkout, head, name string) (bool, error) {
	if v.Running != "" {
		return v.Running == head, nil
	}
	hash, ok := v.Left[name]
	if !ok {
		return false, nil
	}
	have, err := c.hash(name)
	return have == hash, err
}

// hash is that of a file, empty where there is none.
func (c checkout) hash(name string) (string, error) {
	data, err := c.read(name)
	var other *obstacle
	if errors.As(err, &other) {
		return other.is, nil
	}
	if err != nil || data == nil {
		return "", err
	}
	return sum(data), nil
}

func (c checkout) head(ctx context.Context) (string, error) {
	head, err := c.git(ctx, "rev-parse", "HEAD")
	return string(bytes.TrimSpace(head)), err
}

// hasVendor is true for trees with vendor/, also when the go command was killed
// after it had removed it.
func (c checkout) hasVendor(ctx context.Context) (bool, error) {
	list, err := c.read(vendorModules)
	if err == nil && list == nil {
		list, err = c.committed(ctx, vendorModules)
	}
	return list != nil, err
}

// vendoring returns the recorded progress, empty without a record.
func (c checkout) vendoring(ctx context.Context) (vendoring, error) {
	var v vendoring
	file, err := c.vendoringFile(ctx)
	if err != nil {
		return v, err
	}
	data, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return v, nil
	}
	if err != nil {
		return v, err
	}
	if err := json.Unmarshal(data, &v); err != nil {
		return v, fmt.Errorf("%s, where landing has how vendoring went, cannot be read (%w); remove it, and see with git status that vendor/ is as it shall be", file, err)
	}
	return v, nil
}

func (c checkout) vendoringFile(ctx context.Context) (string, error) {
	file, err := c.git(ctx, "rev-parse", "--path-format=absolute", "--git-path", vendoringFile)
	return strings.TrimSuffix(string(file), "\n"), err
}

// vendoringDue is noted before the first file lands: from then on vendor/ is not
// what go.mod says.
func (c checkout) vendoringDue(ctx context.Context) error {
	has, err := c.hasVendor(ctx)
	if err != nil || !has {
		return err
	}
	v, err := c.vendoring(ctx)
	if err != nil {
		return err
	}
	v.Due = true
	return c.note(ctx, v)
}

func (c checkout) vendoringBegins(ctx context.Context) error {
	head, err := c.head(ctx)
	if err != nil {
		return err
	}
	return c.note(ctx, vendoring{Due: true, Running: head})
}

// vendoringEnded notes what there is now.
func (c checkout) vendoringEnded(ctx context.Context, failed bool) error {
	entries, err := c.status(ctx)
	if err != nil {
		return err
	}
	v := vendoring{Due: failed, Left: map[string]string{}}
	for _, e := range entries {
		if !isVendor(e.name) {
			continue
		}
		if v.Left[e.name], err = c.hash(e.name); err != nil {
			return err
		}
	}
	return c.note(ctx, v)
}

// note writes the record at once: half a one could not be read.
func (c checkout) note(ctx context.Context, v vendoring) error {
	file, err := c.vendoringFile(ctx)
	if err != nil {
		return err
	}
	data, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return err
	}
	if err := os.WriteFile(file+".new", append(data, '\n'), 0o644); err != nil {
		return err
	}
	return os.Rename(file+".new", file)
}
