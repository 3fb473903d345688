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
	"errors"
	"fmt"
	"go/ast"
	gobuild "go/build"
	"go/doc"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const checkout = "../.."

// test is a test function of the repository.
type test struct{ module, dir, name string }

// testFile is a file of tests, parsed.
type testFile struct {
	module, dir string
	*ast.File
}

// testFiles parses all files of tests that are built here.
func testFiles(t *testing.T) []testFile {
	t.Helper()
	var files []testFile
	err := filepath.WalkDir(checkout, func(file string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		base := entry.Name()
		if entry.IsDir() {
			if file != checkout && (strings.HasPrefix(base, ".") || strings.HasPrefix(base, "_") || base == "testdata") {
				return fs.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(base, "_test.go") {
			return nil
		}
		if match, err := gobuild.Default.MatchFile(filepath.Dir(file), base); err != nil || !match {
			return err
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ParseComments)
		if err != nil {
			return err
		}
		module, dir := moduleOf(t, filepath.Dir(file))
		files = append(files, testFile{module: module, dir: dir, File: parsed})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// moduleOf splits a directory into that of its module, "" for the root, and the rest.
func moduleOf(t *testing.T, dir string) (module, rest string) {
	t.Helper()
	for at := dir; ; at = filepath.Dir(at) {
		_, err := os.Stat(filepath.Join(at, "go.mod"))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		rel := func(base, target string) string {
			r, err := filepath.Rel(base, target)
			if err != nil {
				t.Fatal(err)
			}
			return filepath.ToSlash(r)
		}
		if module = rel(checkout, at); module == "." {
			module = ""
		}
		return module, rel(at, dir)
	}
}

// tests are the functions that "go test" would run.
func tests(t *testing.T) []test {
	t.Helper()
	var all []test
	add := func(f testFile, name string) { all = append(all, test{f.module, f.dir, name}) }
	named := regexp.MustCompile(`^(Test|Fuzz)($|[^a-z])`)
	for _, f := range testFiles(t) {
		for _, declared := range f.Decls {
			function, ok := declared.(*ast.FuncDecl)
			if ok && function.Recv == nil && named.MatchString(function.Name.Name) && function.Name.Name != "TestMain" {
				add(f, function.Name.Name)
			}
		}
		for _, example := range doc.Examples(f.File) {
			if example.Output != "" || example.EmptyOutput {
				add(f, "Example"+example.Name)
			}
		}
	}
	return all
}

// of returns the shards that run a test.
func of(tc test) []Shard {
	return slices.DeleteFunc(slices.Clone(shards), func(s Shard) bool {
		selected, _ := s.selects(tc.name)
		return s.Dir != tc.module || !s.covers(tc.dir) || !selected
	})
}

func names(of []Shard) string {
	var all []string
	for _, s := range of {
		all = append(all, s.Name)
	}
	return strings.Join(all, ", ")
}

func TestEveryTestBelongsToOneShard(t *testing.T) {
	ran, parted := map[string]bool{}, map[string]bool{}
	all := tests(t)
	for _, tc := range all {
		in := of(tc)
		where := fmt.Sprintf("%s of %s", tc.name, path.Join(tc.module, tc.dir))
		if len(in) == 0 {
			t.Errorf("no shard runs %s; add it to a row of hack/shards/table.go", where)
		}
		parts := map[string]string{}
		for _, s := range in {
			ran[s.Name] = true
			_, partly := s.selects(tc.name)
			part := s.Parts[tc.dir+"."+tc.name]
			if part != "" {
				parted[s.Name+" "+tc.dir+"."+tc.name] = true
			}
			switch {
			case len(in) > 1 && part == "":
				t.Errorf("%s is in shards %s, and Parts of %s does not tell which part of it is", where, names(in), s.Name)
			case len(in) == 1 && (partly || part != ""):
				t.Errorf("shard %s has a part of %s, and no shard has the rest", s.Name, where)
			case parts[part] != "" && part != "":
				t.Errorf("shards %s and %s have the same part %q of %s", s.Name, parts[part], part, where)
			}
			parts[part] = s.Name
		}
	}
	for _, s := range shards {
		if !ran[s.Name] {
			t.Errorf("shard %s runs no test", s.Name)
		}
		for name := range s.Parts {
			if !parted[s.Name+" "+name] {
				t.Errorf("shard %s has a part of %s and does not run it", s.Name, name)
			}
		}
	}
	if len(all) < 1000 {
		t.Errorf("%d tests were found in the whole repository; there are more", len(all))
	}
}

// TestPatternsNameTestsThatAreThere: a test that gets another name would leave its shard
// for that of all others, from the quick ones to the long ones, without a failure.
func TestPatternsNameTestsThatAreThere(t *testing.T) {
	all, word := tests(t), regexp.MustCompile(`Test\w+`)
	for _, s := range shards {
		for _, pattern := range []string{s.Run, s.Skip} {
			for _, at := range word.FindAllStringIndex(pattern, -1) {
				name, rest := pattern[at[0]:at[1]], pattern[at[1]:]
				whole := rest != "" && strings.ContainsAny(rest[:1], "$|)")
				if !slices.ContainsFunc(all, func(tc test) bool {
					return s.Dir == tc.module && s.covers(tc.dir) && (tc.name == name || !whole && strings.HasPrefix(tc.name, name))
				}) {
					t.Errorf("shard %s: pattern %s names %s, which its packages do not have", s.Name, pattern, name)
				}
			}
		}
	}
}

func TestRowsOfTheTable(t *testing.T) {
	makefile, err := os.ReadFile(filepath.Join(checkout, "Makefile"))
	if err != nil {
		t.Fatal(err)
	}
	text := strings.NewReplacer("$(TOOLS)", "_output/tools", "$(OUT)", "_output").Replace(string(makefile))
	seen, long, alone := map[string]bool{}, "", ""
	for _, s := range shards {
		if err := s.check(); err != nil {
			t.Error(err)
		}
		if seen[s.Name] {
			t.Errorf("there are two shards %s", s.Name)
		}
		seen[s.Name] = true
		for _, need := range s.Needs {
			if !regexp.MustCompile(`(?m)^` + regexp.QuoteMeta(need) + `:`).MatchString(text) {
				t.Errorf("shard %s needs %s, which is no target of the Makefile", s.Name, need)
			}
		}
		for _, file := range s.Inputs {
			if _, err := os.Stat(filepath.Join(checkout, file)); err != nil {
				t.Errorf("input of shard %s: %v", s.Name, err)
			}
		}
		if s.Quick && long != "" {
			t.Errorf("quick shard %s is below %s, which is not", s.Name, long)
		}
		if !s.Alone && alone != "" {
			t.Errorf("shard %s is below %s, which runs alone, at the end", s.Name, alone)
		}
		if !s.Quick {
			long = s.Name
		}
		if s.Alone {
			alone = s.Name
		}
	}
}

// TestInputsIncludeFilesThatTestsRead finds paths that lead out of a package. They have to
// be inputs of the shards that run tests of the package, so that these run when
// they change.
func TestInputsIncludeFilesThatTestsRead(t *testing.T) {
	found := 0
	for _, f := range testFiles(t) {
		home := path.Join(f.module, f.dir)
		for _, read := range outside(f.File) {
			file := path.Join(home, read)
			if _, err := os.Stat(filepath.Join(checkout, file)); err != nil || strings.HasPrefix(file, "..") {
				continue
			}
			found++
			for _, s := range shards {
				if s.Dir == f.module && s.covers(f.dir) && !s.reads(file) {
					t.Errorf("a test in %s reads %s, which shard %s does not have among its Inputs", home, file, s.Name)
				}
			}
		}
	}
	if found < 5 {
		t.Errorf("%d paths were found; there are more", found)
	}
}

// reads is true when a file is below one of the inputs.
func (s Shard) reads(file string) bool {
	in := inputs{whole: map[string]bool{}}
	in.addFiles(s.Inputs...)
	return in.has(file)
}

// outside are the paths in a file that begin with "..".
func outside(f *ast.File) []string {
	var paths []string
	ast.Inspect(f, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if ok && joins(call) {
			var parts []string
			for _, arg := range call.Args {
				part, ok := text(arg)
				if !ok {
					break
				}
				parts = append(parts, part)
			}
			if len(parts) > 0 && parts[0] == ".." {
				paths = append(paths, path.Join(parts...))
				return false
			}
		}
		if expr, ok := n.(ast.Expr); ok {
			if value, ok := text(expr); ok && strings.HasPrefix(value, "../") {
				paths = append(paths, value)
			}
		}
		return true
	})
	return paths
}

// joins is true for a call of path.Join or filepath.Join.
func joins(call *ast.CallExpr) bool {
	function, ok := call.Fun.(*ast.SelectorExpr)
	return ok && function.Sel.Name == "Join"
}

// text is the value of a literal.
func text(expr ast.Expr) (string, bool) {
	literal, ok := expr.(*ast.BasicLit)
	if !ok || literal.Kind != token.STRING {
		return "", false
	}
	value, err := strconv.Unquote(literal.Value)
	return value, err == nil
}

// TestPageNamesEachShard: the page has what each shard costs.
func TestPageNamesEachShard(t *testing.T) {
	const name = "docs/contributors/tests.md"
	page, err := os.ReadFile(checkout + "/" + name)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range shards {
		if text := string(page); !strings.Contains(text, "| "+s.Name+" |") && !strings.Contains(text, "`"+s.Name+"`") {
			t.Errorf("%s does not name the shard %s; add what it takes to one of its tables", name, s.Name)
		}
	}
}

// TestPackagesAreBuiltAsAWhole: tests that need Linux say so in each of their files, or
// upstream's checks of other platforms, which a fork runs, fail for what is missing.
func TestPackagesAreBuiltAsAWhole(t *testing.T) {
	const linux = "//go:build linux"
	with, without := map[string]string{}, map[string]string{}
	var files []string
	err := filepath.WalkDir(checkout+"/test/e2e_features", func(file string, _ fs.DirEntry, err error) error {
		if strings.HasSuffix(file, "_test.go") {
			files = append(files, file)
		}
		return err
	})
	if err != nil || len(files) == 0 {
		t.Fatalf("found %d files: %v", len(files), err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasPrefix(string(text), linux) {
			with[filepath.Dir(file)] = file
		} else {
			without[filepath.Dir(file)] = file
		}
	}
	for dir, file := range without {
		if other := with[dir]; other != "" {
			t.Errorf("%s begins with %q and %s does not; let both", other, linux, file)
		}
	}
}
