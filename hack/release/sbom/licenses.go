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

package sbom

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"slices"
	"strings"

	"github.com/spdx/tools-golang/spdx/v2/v2_3"
)

// licenses gathers the licences of a document. Texts are not judged: a licence
// other than the one that is known by its whole text is given as it is, under an
// identifier made of its hash, as SPDX 2.3 section 10 has it.
type licenses struct {
	apache string
	texts  map[string]string
}

func newLicenses(apache string) *licenses {
	return &licenses{apache: normal(apache), texts: map[string]string{}}
}

// normal is a text without what is only layout.
func normal(text string) string { return strings.Join(strings.Fields(text), " ") }

// expression returns the SPDX expression of a module with these licence files,
// all of which hold; it is empty without any.
func (l *licenses) expression(texts []string) string {
	var ids []string
	for _, text := range texts {
		plain := normal(text)
		if plain == "" {
			continue
		}
		if plain == l.apache {
			ids = append(ids, "Apache-2.0")
			continue
		}
		sum := sha256.Sum256([]byte(plain))
		id := "LicenseRef-" + hex.EncodeToString(sum[:8])
		// Texts that differ by layout only: the same one in any order of modules.
		if old, ok := l.texts[id]; !ok || text < old {
			l.texts[id] = text
		}
		ids = append(ids, id)
	}
	slices.Sort(ids)
	return strings.Join(slices.Compact(ids), " AND ")
}

// others returns the texts that expressions refer to, sorted.
func (l *licenses) others() []*v2_3.OtherLicense {
	var all []*v2_3.OtherLicense
	for _, id := range slices.Sorted(maps.Keys(l.texts)) {
		title, _, _ := strings.Cut(strings.TrimSpace(l.texts[id]), "\n")
		all = append(all, &v2_3.OtherLicense{
			LicenseIdentifier: id, ExtractedText: l.texts[id], LicenseName: cmp.Or(strings.TrimSpace(title), id),
		})
	}
	return all
}
