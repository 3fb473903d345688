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

package docs

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// Block is a fenced block of a page that is run, or written to a file.
type Block struct {
	// Line is that of its fence, from 1.
	Line int
	// Text is what the block has.
	Text string
	// Instead is what runs in the place of Text, "" for Text itself.
	Instead string
	// Skip is the reason why it does not run, "" if it does.
	Skip string
	// File is the file that the block is written to, "" for commands.
	File string
	// Output is what the commands have to print, nil if the page does not say.
	Output *string
}

// mark is a comment with options of the next block.
type mark struct {
	line       int
	kind, text string
}

// raw is a fenced block as it is found.
type raw struct {
	line           int
	language, text string
	mark           *mark
	// follows is true when nothing but empty lines is between the block and the
	// one before it.
	follows bool
}

var (
	fence    = regexp.MustCompile("^([ \t]*)(```+|~~~+)[ \t]*([^ \t`]*)")
	comment  = regexp.MustCompile(`^\s*<!-- docs-test: (\w+): (.+) -->\s*$`)
	fileLine = regexp.MustCompile(`^# file: (\S+)\n`)
	sleeps   = regexp.MustCompile(`(?m)(^|[;&|]\s*|\bdo\s+)\s*sleep\b`)
)

// unreadable is what is wrong with a mark of another form.
const unreadable = "is not understood; it is <!-- docs-test: skip: why -->, <!-- docs-test: shown: why --> or <!-- docs-test: instead: command -->"

// Pages are README.md and all pages in docs/ of the repository whose root is given, by
// their names from there, sorted.
func Pages(root string) ([]string, error) {
	found := []string{"README.md"}
	err := filepath.WalkDir(filepath.Join(root, "docs"), func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || filepath.Ext(path) != ".md" {
			return err
		}
		name, err := filepath.Rel(root, path)
		found = append(found, name)
		return err
	})
	slices.Sort(found)
	return found, err
}

// Read returns the blocks of a page of Pages; the error names the page.
func Read(root, name string) ([]Block, error) {
	source, err := os.ReadFile(filepath.Join(root, name))
	if err != nil {
		return nil, err
	}
	blocks, err := Parse(string(source))
	if err != nil {
		return nil, fmt.Errorf("%s:\n%w", name, err)
	}
	return blocks, nil
}

// Parse returns the blocks of a page that are run or written, in order. It fails,
// with all reasons, for a page of which something would be left out silently: a
// block without a language, one whose language cannot be run, output that belongs
// to no command, a mark without a block.
func Parse(source string) ([]Block, error) {
	found, errs := scan(source)
	var blocks []Block
	// last is the index of the block that output right below would belong to;
	// none when that is skipped or no command.
	last := -1
	for i, r := range found {
		if !r.follows || i == 0 {
			last = -1
		}
		block, err := r.block()
		switch {
		case err != nil:
			errs = append(errs, err)
			last = -1
		case r.language == "text" && r.mark == nil:
			if last < 0 {
				errs = append(errs, fmt.Errorf("line %d: a text block is the output of the bash block right above it, and there is none; mark it with <!-- docs-test: shown: why --> if it is no output", r.line))
				continue
			}
			blocks[last].Output = &r.text
			last = -1
		case block != nil:
			blocks = append(blocks, *block)
			last = -1
			if r.language == "bash" {
				last = len(blocks) - 1
			}
		}
	}
	return blocks, errors.Join(errs...)
}

// block is what becomes of one that was found: nil for one that is only read, and
// for output.
func (r raw) block() (*Block, error) {
	b := &Block{Line: r.line, Text: r.text}
	if r.mark != nil {
		switch {
		case r.mark.kind == "skip" && r.language == "bash":
			b.Skip = r.mark.text
		case r.mark.kind == "instead" && r.language == "bash":
			b.Instead = r.mark.text
		case r.mark.kind == "shown" && r.language == "text":
			return nil, nil
		default:
			return nil, fmt.Errorf("line %d: the mark %q is not for a block of language %q: skip and instead are for bash, shown is for text", r.line, r.mark.kind, r.language)
		}
	}
	switch r.language {
	case "bash":
		if sleeps.MatchString(r.text + b.Instead) {
			return nil, fmt.Errorf("line %d: no sleep in commands; wait for what is meant: kubectl wait --for=jsonpath=…", r.line)
		}
		return b, nil
	case "yaml":
		if m := fileLine.FindStringSubmatch(r.text); m != nil {
			b.File = m[1]
			return b, nil
		}
		return nil, nil
	case "text", "go", "json", "mermaid":
		return nil, nil
	case "":
		return nil, fmt.Errorf("line %d: a block needs a language: bash for commands, text for their output", r.line)
	default:
		return nil, fmt.Errorf("line %d: no runner for blocks of language %q; commands are bash, their output is text", r.line, r.language)
	}
}

// scan finds all fenced blocks with their marks.
func scan(source string) (found []raw, errs []error) {
	var open *raw
	var closing, indent string
	var pending *mark
	var text strings.Builder
	follows := false
	orphan := func() {
		if pending != nil {
			errs = append(errs, fmt.Errorf("line %d: the mark %q stands before no block", pending.line, pending.kind))
			pending = nil
		}
	}
	for i, line := range strings.Split(source, "\n") {
		m := fence.FindStringSubmatch(line)
		switch {
		case open != nil && m != nil && m[3] == "" && strings.HasPrefix(m[2], closing):
			open.text = text.String()
			found = append(found, *open)
			open, follows = nil, true
			text.Reset()
		case open != nil:
			text.WriteString(strings.TrimPrefix(line, indent) + "\n")
		case m != nil:
			open = &raw{line: i + 1, language: m[3], mark: pending, follows: follows}
			indent, closing, pending = m[1], m[2], nil
		case strings.TrimSpace(line) == "":
		case strings.HasPrefix(strings.TrimSpace(line), "<!--") && strings.Contains(line, "docs-test:"):
			orphan()
			c := comment.FindStringSubmatch(line)
			if c == nil {
				errs = append(errs, fmt.Errorf("line %d: %q %s", i+1, strings.TrimSpace(line), unreadable))
				continue
			}
			pending = &mark{line: i + 1, kind: c[1], text: c[2]}
		default:
			orphan()
			follows = false
		}
	}
	orphan()
	if open != nil {
		errs = append(errs, fmt.Errorf("line %d: the block has no end", open.line))
	}
	return found, errs
}
