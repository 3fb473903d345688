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

package gatefiles

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	yaml "go.yaml.in/yaml/v3"
)

// maxFile is the size of the largest file that is read. A manifest of etcd's largest object has 1.5 MiB.
const maxFile = 16 << 20

// maxNodes and maxDepth bound what a document may be with its aliases written out.
const (
	maxNodes = 4 << 20
	maxDepth = 500
)

// Reader reads files.
type Reader struct {
	// In is what the file - stands for.
	In io.Reader
	// Paths are the places of gates in documents of no known format.
	Paths []ValuePath

	result Result
	// found has the paths that a document had.
	found map[ValuePath]bool
}

// Read reads files, and directories with all that is below them. Hidden directories and files are left out, and so are
// files that are neither YAML nor JSON. What is wrong with one file does not keep others from being read.
func (r *Reader) Read(names []string) Result {
	r.result, r.found = Result{}, map[ValuePath]bool{}
	for i, name := range names {
		switch {
		case name == "":
			r.problem(Source{File: "-f"}, "it has no name", "name a file, a directory, or - for the standard input")
		case slices.Contains(names[:i], name):
		case name == Stdin:
			r.stdin()
		default:
			r.walk(name)
		}
	}
	for _, p := range r.Paths {
		if !r.found[p] {
			r.problem(Source{File: "--path"}, fmt.Sprintf("no document has %s", p.Text), "write the keys as the document has them, separated by dots")
		}
	}
	return r.result
}

func (r *Reader) problem(at Source, message, next string) {
	r.result.Problems = append(r.result.Problems, Problem{Source: at, Message: message, Next: next})
}

func (r *Reader) stdin() {
	if r.In == nil {
		r.problem(Source{File: Stdin}, "there is no standard input", "")
		return
	}
	data, err := io.ReadAll(io.LimitReader(r.In, maxFile+1))
	r.content(Stdin, data, err, true)
}

// walk reads a file, or all files below a directory.
func (r *Reader) walk(root string) {
	before := r.result.Files + len(r.result.Problems)
	err := filepath.WalkDir(root, func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			r.problem(Source{File: name}, cause(err), "")
			if entry != nil && entry.IsDir() {
				return fs.SkipDir
			}
			return nil
		}
		given := name == root
		hidden := strings.HasPrefix(entry.Name(), ".") && !given
		switch {
		case entry.IsDir() && hidden:
			return fs.SkipDir
		case entry.IsDir(), hidden:
			return nil
		case given:
			// A link that was named is followed.
			if info, err := os.Stat(name); err == nil && info.IsDir() {
				r.walk(name + string(filepath.Separator))
				return nil
			}
			r.file(name, true)
		case manifest(name) && regular(name, entry):
			r.file(name, false)
		}
		return nil
	})
	if err != nil {
		r.problem(Source{File: root}, cause(err), "")
	}
	if r.result.Files+len(r.result.Problems) == before {
		r.result.Unread = append(r.result.Unread, Unread{
			Source: Source{File: root}, Matters: true,
			Why: "it has no file that ends in .yaml, .yml or .json", Next: "name the directory that has the manifests",
		})
	}
}

// regular is true for a file, and for a link to one, as volumes of ConfigMaps and directories of static pods have. A link
// that leads nowhere counts as well, so that it is named. Links to directories, which may lead back, are not followed.
func regular(name string, entry fs.DirEntry) bool {
	if entry.Type()&fs.ModeSymlink == 0 {
		return entry.Type().IsRegular()
	}
	info, err := os.Stat(name)
	return err != nil || info.Mode().IsRegular()
}

// cause is an error without the name of the file, which is in the source.
func cause(err error) string {
	var at *fs.PathError
	if errors.As(err, &at) {
		return at.Err.Error()
	}
	return err.Error()
}

// manifest is true for the names of files that a directory is searched for. A kubelet's drop-ins end in .conf.
func manifest(name string) bool {
	return slices.Contains([]string{".yaml", ".yml", ".json", ".conf"}, strings.ToLower(filepath.Ext(name)))
}

func (r *Reader) file(name string, given bool) {
	f, err := os.Open(name)
	if err != nil {
		r.problem(Source{File: name}, cause(err), "")
		return
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if filepath.Ext(name) == ".conf" && !given && !bytes.Contains(data, []byte("KubeletConfiguration")) {
		return
	}
	r.content(name, data, err, given)
}

// content reads all documents of a file.
func (r *Reader) content(name string, data []byte, err error, given bool) {
	whole := Source{File: name}
	switch {
	case err != nil:
		r.problem(whole, cause(err), "")
		return
	case len(data) > maxFile:
		r.problem(whole, fmt.Sprintf("it is larger than %d MiB", maxFile>>20), "name the files that have gates")
		return
	}
	r.result.Files++
	f := &file{reader: r, name: name, lines: strings.Split(string(data), "\n"), processes: map[string]*Process{}, configured: map[string]bool{}, given: given}
	f.documents(data, f.name, func(line, column int) (int, int) { return line, column }, false)
	if f.seen == 0 && given && !f.failed {
		r.result.Unread = append(r.result.Unread, Unread{Source: whole, Matters: true, Why: "it has no document", Next: "name a file that has settings"})
	}
}

// file is one that is read.
type file struct {
	reader *Reader
	name   string
	// lines are those of the whole file.
	lines []string
	// processes are those that several documents describe, by component and scope.
	processes map[string]*Process
	// configured has the components of which the file had a configuration.
	configured map[string]bool
	// given is true for a file that was named, and false for one that a directory has.
	given bool
	// seen counts documents that are not empty.
	seen int
	// failed is true when a document could not be parsed.
	failed bool
}

// documents reads those of the file, or of a text in it, in which a line and column have another place.
func (f *file) documents(data []byte, name string, place func(line, column int) (int, int), embedded bool) {
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	for {
		var n yaml.Node
		err := decoder.Decode(&n)
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			f.failed = true
			message, line := syntax(err)
			at := Source{File: f.name}
			at.Line, _ = place(line, 1)
			next := "what follows is not read"
			if bytes.Contains(data, []byte("{{")) {
				next = "a template has to be rendered first, such as by helm template"
			}
			f.reader.problem(at, message, next)
			return
		}
		if len(n.Content) == 0 || n.Content[0].Tag == "!!null" {
			continue
		}
		d := &document{file: f, name: name, place: place, embedded: embedded, lines: strings.Split(string(data), "\n")}
		f.seen++
		budget := maxNodes
		if !bounded(n.Content[0], &budget, 0) {
			f.failed = true
			d.problem(node{Node: n.Content[0]}, "write out what they stand for", "its aliases are endless, or stand for too much")
			continue
		}
		d.read(node{Node: n.Content[0]})
	}
}

// bounded is false for a document with too many nodes, or too many levels, once aliases are written out.
func bounded(n *yaml.Node, budget *int, depth int) bool {
	if *budget--; *budget < 0 || depth > maxDepth {
		return false
	}
	if n.Kind == yaml.AliasNode {
		return bounded(n.Alias, budget, depth+1)
	}
	for _, child := range n.Content {
		if !bounded(child, budget, depth+1) {
			return false
		}
	}
	return true
}

var syntaxLine = regexp.MustCompile(`^yaml: line (\d+): `)

// syntax returns a parser's message and line.
func syntax(err error) (string, int) {
	text := err.Error()
	if match := syntaxLine.FindStringSubmatch(text); match != nil {
		line, _ := strconv.Atoi(match[1])
		return "this is no YAML: " + text[len(match[0]):], line
	}
	return "this is no YAML: " + strings.TrimPrefix(text, "yaml: "), 1
}
