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
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// tocEnd ends the table of contents, which mdtoc writes.
const tocEnd = "<!-- /toc -->\n"

func real(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("../../" + file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func moved(t *testing.T, text, release string) string {
	t.Helper()
	got, err := move(text, release)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// asPublished is the changelog with its newest version published, and that version
// and its release of Kubernetes.
func asPublished(t *testing.T) (text, version, release string) {
	t.Helper()
	text = real(t)
	if begin := strings.Index(text, notPublished); begin >= 0 {
		text = text[:begin] + "On the page of releases." + text[begin+strings.Index(text[begin:], "\n\n"):]
	}
	found := newest.FindStringSubmatch(text)
	return strings.ReplaceAll(text, "| "+later, "| 0123456789abcdef"), found[1], found[2]
}

// TestNotPublished: the version moves along, and nothing else.
func TestNotPublished(t *testing.T) {
	before := moved(t, real(t), "v1.36.98")
	text := moved(t, before, "v1.36.99")
	if strings.Contains(text, "v1.36.98") || !strings.Contains(text, "\n# v1.36.99+feature.1\n") || !strings.Contains(text, "kube-proxy:v1.36.99_feature.1 |") {
		t.Errorf("it became\n%.4000s", text)
	}
	if got := moved(t, text, "v1.36.99"); got != text {
		t.Errorf("the same release again:\n%s", cmp.Diff(text, got))
	}
	if diff := cmp.Diff(before, moved(t, text, "v1.36.98")); diff != "" {
		t.Errorf("there and back:\n%s", diff)
	}
}

// TestPublished: the version stays as it is below a new one, which has the same
// files.
func TestPublished(t *testing.T) {
	before, version, release := asPublished(t)
	after := moved(t, before, "v1.36.98")
	_, old, _ := strings.Cut(before, tocEnd)
	old = strings.TrimPrefix(old, "\n")
	_, now, _ := strings.Cut(after, tocEnd)
	added, ok := strings.CutSuffix(now, old)
	if !ok {
		t.Fatalf("the published version has changed:\n%s", cmp.Diff(old, now))
	}
	for _, want := range []string{
		"\n# v1.36.98+feature.1\n\n## Downloads for v1.36.98+feature.1\n\n" + howToMake + "\n### ", "kubernetes-node-linux-arm64.tar.gz | with the release\n",
		"registry.k8s.io/kube-proxy:v1.36.98_feature.1 | amd64, arm64\n", "\n\n## Changelog since " + version + "\n\n",
	} {
		if !strings.Contains(added, want) {
			t.Errorf("the new section has no %q:\n%s", want, added)
		}
	}
	if strings.Contains(added, "0123456789abcdef") {
		t.Errorf("the new section has hashes of the published version:\n%s", added)
	}
	if got := moved(t, before, release); got != before {
		t.Errorf("the release that is there:\n%s", cmp.Diff(before, got))
	}
	// The new one is not published, and moves along alone.
	last := moved(t, after, "v1.36.99")
	if !strings.HasSuffix(last, old) || strings.Contains(last, "v1.36.98") || !strings.Contains(last, "## Changelog since "+version+"\n") {
		t.Errorf("the published version has changed, or the other one has not:\n%.4000s", last)
	}
}

// TestASecondVersion of the same release becomes the first one of the next.
func TestASecondVersion(t *testing.T) {
	const contents = "<!-- toc -->\n- [v1.36.3+feature.2](#v1363feature2)\n" + tocEnd
	const page = contents + "\n# v1.36.3+feature.2\n\n" + notPublished + " On v1.36.3, not v1.36.30.\n\n## Changelog since v1.36.3+feature.1\n\n# v1.36.3+feature.1\n"
	const want = contents + "\n# v1.36.4+feature.1\n\n" + notPublished + " On v1.36.4, not v1.36.30.\n\n## Changelog since v1.36.3+feature.1\n\n# v1.36.3+feature.1\n"
	if diff := cmp.Diff(want, moved(t, page, "v1.36.4")); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if _, err := move("no version\n", "v1.36.4"); err == nil || !strings.Contains(err.Error(), "has no heading") {
		t.Errorf("without a version: %v", err)
	}
}
