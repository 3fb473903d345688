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

package sbom

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"slices"
	"strings"
	"sync"

	classifier "github.com/google/licenseclassifier/v2"
	"github.com/google/licenseclassifier/v2/assets"
	"github.com/spdx/tools-golang/spdx/v2/v2_3"
)

// licenses gathers the licenses of a document. Texts are judged by the classifier
// that sigs.k8s.io/bom, which writes upstream's bills, judges them by. One that it
// does not know is given as it is, under an identifier made of its hash, as SPDX
// 2.3 section 10 has it.
type licenses struct {
	texts map[string]string
	// known are the identifiers of texts that have been judged.
	known map[string][]string
}

func newLicenses() *licenses {
	return &licenses{texts: map[string]string{}, known: map[string][]string{}}
}

// identifiers are those of SPDX's list that are taken from the classifier, which
// has names of its own for other texts.
var identifiers = map[string]bool{
	"Apache-2.0": true, "BSD-2-Clause": true, "BSD-3-Clause": true, "CC0-1.0": true, "ISC": true, "MIT": true, "MPL-2.0": true,
	"Unlicense": true, "Zlib": true,
}

// minConfidence is how much of a license a text has to have. Those of BSD differ
// by the name of who may not be advertised with.
const minConfidence = 0.9

// standard loads the texts that are known, which takes most of a second.
var standard = sync.OnceValues(assets.DefaultClassifier)

// expression returns the SPDX expression of a module with these license files; it
// is empty without any. All of them hold: of the modules in Kubernetes none gives
// a choice, some have parts under another license.
func (l *licenses) expression(texts []string) (string, error) {
	var ids []string
	for _, text := range texts {
		found, err := l.judge(text)
		if err != nil {
			return "", err
		}
		ids = append(ids, found...)
	}
	slices.Sort(ids)
	return strings.Join(slices.Compact(ids), " AND "), nil
}

// judge returns the identifiers of what a text contains.
func (l *licenses) judge(text string) ([]string, error) {
	if strings.TrimSpace(text) == "" {
		return nil, nil
	}
	if found, ok := l.known[text]; ok {
		return found, nil
	}
	c, err := standard()
	if err != nil {
		return nil, err
	}
	var found []string
	for _, m := range c.Match(bytes.TrimSpace([]byte(text))).Matches {
		if isLicense(m) {
			found = append(found, m.Name)
		}
	}
	if len(found) == 0 {
		found = []string{l.own("", text)}
	}
	l.known[text] = found
	return found, nil
}

func isLicense(m *classifier.Match) bool {
	return (m.MatchType == "License" || m.MatchType == "Header") && m.Confidence >= minConfidence && identifiers[m.Name]
}

// own returns the identifier of a text that is in no list. Texts that differ by
// layout only have one identifier. prefix says whose it is, if anybody's.
func (l *licenses) own(prefix, text string) string {
	sum := sha256.Sum256([]byte(strings.Join(strings.Fields(text), " ")))
	id := "LicenseRef-" + prefix + hex.EncodeToString(sum[:8])
	// The same one in any order of modules.
	if old, ok := l.texts[id]; !ok || text < old {
		l.texts[id] = text
	}
	return id
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
