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
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// recordFile says in a fork what landing wrote there, in the form of sha256sum:
// "sha256sum -c" compares. A file that still is as recorded is landing's to change
// or to remove; any other content is the fork's own.
const recordFile = "hack/.feature-lifecycle.sums"

// sums are hashes of contents by the path of a file; a file may have had several.
type sums map[string][]string

func sum(data []byte) string { return fmt.Sprintf("%x", sha256.Sum256(data)) }

// has is true when a landing wrote this content.
func (s sums) has(name string, data []byte) bool {
	return data != nil && slices.Contains(s[name], sum(data))
}

// add reads a record.
func (s sums) add(record []byte) error {
	for line := range strings.Lines(string(record)) {
		hash, name, ok := strings.Cut(strings.TrimSuffix(line, "\n"), "  ")
		if !ok || len(hash) != 2*sha256.Size || name == "" {
			return fmt.Errorf("%s has a line that is not of sha256sum: %q; take the file of the last landing's commit", recordFile, strings.TrimSpace(line))
		}
		// Landing removes and changes what is recorded.
		if !filepath.IsLocal(filepath.FromSlash(name)) || path.Clean(name) != name || slices.ContainsFunc(strings.Split(name, "/"), func(part string) bool { return strings.EqualFold(part, ".git") }) {
			return fmt.Errorf("%s names %q, which is no file of the checkout; take the file of the last landing's commit", recordFile, name)
		}
		s[name] = append(s[name], hash)
	}
	return nil
}

// addRecord adds the record of all other files to a plan.
func (p *plan) addRecord() error {
	var record bytes.Buffer
	for _, name := range slices.Sorted(maps.Keys(p.files)) {
		fmt.Fprintf(&record, "%s  %s\n", sum(p.files[name].data), name)
	}
	return p.add(&target{path: recordFile, data: record.Bytes(), part: len(parts) - 1})
}

// records are the files of a tree's landings: the last one that is committed,
// and one that is not yet.
func (c checkout) records(ctx context.Context) (sums, error) {
	found := sums{}
	here, err := c.read(recordFile)
	if err != nil {
		return nil, err
	}
	committed, err := c.committed(ctx, recordFile)
	if err != nil {
		return nil, err
	}
	for _, record := range [][]byte{here, committed} {
		if err := found.add(record); err != nil {
			return nil, err
		}
	}
	// A record has no hash of itself.
	for _, record := range [][]byte{here, committed} {
		if record != nil {
			found[recordFile] = append(found[recordFile], sum(record))
		}
	}
	return found, nil
}

// retire adds to a plan what becomes of the files of an earlier landing that this
// one does not write: upstream's are as upstream has them, ours go. Files that the
// fork has changed since stay; their names are returned.
func (p *plan) retire(tree checkout, before sums) (stay []string, err error) {
	for _, name := range slices.Sorted(maps.Keys(before)) {
		if p.files[name] != nil {
			continue
		}
		have, err := tree.read(name)
		var other *obstacle
		if errors.As(err, &other) {
			stay = append(stay, name)
			continue
		}
		if err != nil {
			return nil, err
		}
		base, err := p.upstream(name)
		if err != nil {
			return nil, err
		}
		switch {
		case bytes.Equal(have, base) && (have == nil) == (base == nil):
		case !before.has(name, have):
			stay = append(stay, name)
		default:
			if err := p.add(&target{path: name, data: base, base: base, remove: base == nil, part: len(parts) - 1}); err != nil {
				return nil, err
			}
		}
	}
	return stay, nil
}
