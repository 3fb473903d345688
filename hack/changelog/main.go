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

// changelog moves CHANGELOG.md to another patch release of Kubernetes, for
// hack/update-upstream.sh. A newest version that is not published yet becomes the
// first one on that release; one that is published keeps its section, and a new
// one comes above it. The table of contents is not written here: mdtoc does that
// (hack/update-toc.sh). mdtoc replaces what is between its tags and nothing else. It
// neither renames a version in headings, downloads and images nor adds a section.
package main

import (
	"fmt"
	"os"
	"regexp"
	"strings"
)

const file = "CHANGELOG.md"

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "changelog:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) != 1 {
		return fmt.Errorf("usage: changelog v1.37.3, in the root of the repository")
	}
	old, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	moved, err := move(string(old), args[0])
	if err != nil || moved == string(old) {
		return err
	}
	return os.WriteFile(file, []byte(moved), 0o644)
}

const (
	notPublished = "This version is not published yet."
	howToMake    = notPublished + " [`make quick-release`](docs/contributors/release.md) makes its files from a checkout, the same bytes for everybody; `SHA512SUMS` and\n" +
		"`SHA256SUMS` have their hashes, and `kubernetes.spdx.json` is the bill of materials.\n"
	// later stands for a hash.
	later = "with the release"
)

var (
	// newest is the heading of the first version, which has the release of
	// Kubernetes that it is on.
	newest = regexp.MustCompile(`(?m)^# ((v[0-9]+\.[0-9]+\.[0-9]+)\+feature\.[0-9]+)$`)
	// section begins the next version.
	section = regexp.MustCompile(`(?m)^# `)
	// downloads are a version's files, as far as its next chapter.
	downloads = regexp.MustCompile(`(?ms)^## Downloads for .*?^## `)
	// published is the text between the heading of the downloads and the first of
	// their lists.
	published = regexp.MustCompile(`(?ms)\A(## Downloads for [^\n]*\n).*?^(### )`)
	hash      = regexp.MustCompile(`(?m)^(\S+\.(?:tar\.gz|yaml|zip) \| ).*$`)
)

// move is a changelog whose newest version is the first on a release of
// Kubernetes.
func move(text, release string) (string, error) {
	at := newest.FindStringSubmatchIndex(text)
	if at == nil {
		return "", fmt.Errorf("%s has no heading such as \"# %s+feature.1\"", file, release)
	}
	version, on := text[at[2]:at[3]], text[at[4]:at[5]]
	if on == release {
		return text, nil
	}
	before, body := text[:at[0]], text[at[1]:]
	rest := ""
	if next := section.FindStringIndex(body); next != nil {
		body, rest = body[:next[0]], body[next[0]:]
	}
	body = text[at[0]:at[1]] + body
	to := mover{version: version, on: on, release: release}
	if strings.Contains(body, notPublished) {
		body = to.all(body)
	} else {
		body = to.section(body) + body
	}
	return before + body + rest, nil
}

// mover names the first version on a release where another version was named.
type mover struct{ version, on, release string }

// all replaces the version, also in names of images, and the release that it is
// on; earlier versions on that release stay.
func (m mover) all(text string) string {
	named := regexp.MustCompile(`\b` + regexp.QuoteMeta(m.on) + `(?:([+_])(feature\.[0-9]+)|\b)`)
	return named.ReplaceAllStringFunc(text, func(name string) string {
		match := named.FindStringSubmatch(name)
		switch match[2] {
		case "":
			return m.release
		case strings.TrimPrefix(m.version, m.on+"+"):
			return m.release + match[1] + "feature.1"
		}
		return name
	})
}

// section is a new one, with the downloads of the version before.
func (m mover) section(before string) string {
	text := "# " + m.release + "+feature.1\n\n"
	if files := downloads.FindString(before); files != "" {
		files = published.ReplaceAllString(strings.TrimSuffix(files, "## "), "${1}\n"+strings.ReplaceAll(howToMake, "$", "$$")+"\n${2}")
		text += hash.ReplaceAllString(m.all(files), "${1}"+later)
	} else {
		text += notPublished + "\n\n"
	}
	return text + "## Changelog since " + m.version + "\n\n"
}
