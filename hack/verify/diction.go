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
	"fmt"
	"go/parser"
	"go/scanner"
	"go/token"
	"regexp"
	"strings"
)

// dictionMarker at the end of a line allows what is in that line.
const dictionMarker = "diction:ok"

var (
	// dictionWords have better words in the language of the field.
	dictionWords = regexp.MustCompile(`(?i)\b(nobody|somebody|anew|goes on|looks again)\b`) // diction:ok
	// dictionStart matches the start of a sentence that has no subject.
	dictionStart = regexp.MustCompile(`(?:^|[.!?] )(Who|Of) `)
	// proseMark matches the signs before the text of a list's item or a quotation.
	proseMark = regexp.MustCompile(`^(?:[*+>-]|[0-9]+[.)]) +`)
)

// diction finds words of dictionWords in Markdown, and in comments and strings of Go, and
// sentences of Markdown's prose and of comments that begin with one of dictionStart.
func diction(f file) []string {
	if f.generated() {
		return nil
	}
	lines := strings.Split(string(f.data), "\n")
	var findings []string
	find := func(line int, text, format string, pattern *regexp.Regexp) {
		if match := pattern.FindStringSubmatch(text); match != nil && !strings.Contains(lines[line-1], dictionMarker) {
			findings = append(findings, fmt.Sprintf("%s:%d: "+format, f.path, line, match[1]))
		}
	}
	const (
		word  = "%q has a better word in the language of the field"
		start = "a sentence begins with %q; give it a subject"
	)
	switch {
	case strings.HasSuffix(f.path, ".md"):
		for i, line := range lines {
			find(i+1, line, word, dictionWords)
		}
		eachProseLine(lines, func(line int, text string) { find(line, text, start, dictionStart) })
	case f.isGo():
		eachText(f, func(line int, text string) { find(line, text, word, dictionWords) })
		eachCommentLine(f, func(line int, text string) {
			find(line, text, start, dictionStart)
		})
	}
	return findings
}

// eachText calls visit for each line of the comments and strings of a Go file.
func eachText(f file, visit func(line int, text string)) {
	set := token.NewFileSet()
	source := set.AddFile(f.path, -1, len(f.data))
	var s scanner.Scanner
	// Other checks report files that cannot be parsed.
	s.Init(source, f.data, func(token.Position, string) {}, scanner.ScanComments)
	for {
		pos, kind, literal := s.Scan()
		switch kind {
		case token.EOF:
			return
		case token.COMMENT, token.STRING:
			for i, text := range strings.Split(literal, "\n") {
				visit(source.Line(pos)+i, text)
			}
		}
	}
}

// eachCommentLine calls visit for each line of the comments of a Go file, without the
// comment's signs. A line that continues a sentence begins with a space.
func eachCommentLine(f file, visit func(line int, text string)) {
	set := token.NewFileSet()
	parsed, err := parser.ParseFile(set, f.path, f.data, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return
	}
	lines := strings.Split(string(f.data), "\n")
	for _, group := range parsed.Comments {
		// A comment may begin with the name of what it documents.
		named := declares(lines, set.Position(group.End()).Line, group.Text())
		ended := !named
		for _, comment := range group.List {
			for i, text := range strings.Split(comment.Text, "\n") {
				text = strings.TrimSpace(strings.Trim(text, "/* \t"))
				line := set.Position(comment.Pos()).Line + i
				if ended {
					visit(line, text)
				} else {
					visit(line, " "+text)
				}
				ended = text == "" || strings.ContainsAny(text[len(text)-1:], ".!?:")
			}
		}
	}
}

// eachProseLine calls visit for each line of the prose of a Markdown page, without the
// signs of lists. A line that continues a sentence begins with a space. Headings, tables
// and blocks of code are not prose.
func eachProseLine(lines []string, visit func(line int, text string)) {
	ended, fence := true, ""
	for i, line := range lines {
		text := strings.TrimSpace(line)
		switch {
		case fence != "":
			if strings.HasPrefix(text, fence) {
				fence = ""
			}
			ended = true
			continue
		case strings.HasPrefix(text, "```"), strings.HasPrefix(text, "~~~"):
			fence = text[:3]
			continue
		case text == "", strings.HasPrefix(text, "#"), strings.HasPrefix(text, "|"):
			ended = true
			continue
		}
		if mark := proseMark.FindString(text); mark != "" {
			text, ended = text[len(mark):], true
		}
		if !ended {
			text = " " + text
		}
		visit(i+1, text)
		ended = strings.HasSuffix(text, ".") || strings.HasSuffix(text, "!") || strings.HasSuffix(text, "?") || strings.HasSuffix(text, ":")
	}
}

// declares returns true if the line after a comment declares the comment's first word.
func declares(lines []string, end int, comment string) bool {
	word, _, _ := strings.Cut(comment, " ")
	if word == "" || end >= len(lines) {
		return false
	}
	declared := regexp.MustCompile(`^\s*(func (\([^)]*\) )?|type |var |const )?` + regexp.QuoteMeta(word) + `\b`)
	return declared.MatchString(lines[end])
}
