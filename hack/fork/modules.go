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
	"fmt"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/mod/modfile"
	"golang.org/x/mod/semver"
)

// goEdit lets the go command edit a go.mod or go.work.
func goEdit(ctx context.Context, kind string, data []byte, args ...string) ([]byte, error) {
	dir, err := os.MkdirTemp("", "fork")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	file := filepath.Join(dir, "go."+kind)
	if err := os.WriteFile(file, data, 0o644); err != nil {
		return nil, err
	}
	args = append(append([]string{kind, "edit"}, args...), file)
	if _, err := command(ctx, dir, nil, []string{"GOWORK=off"}, "go", args...); err != nil {
		return nil, err
	}
	return os.ReadFile(file)
}

func editWork(ctx context.Context, _ *plan, base []byte) ([]byte, error) {
	return goEdit(ctx, "work", base, "-use=./"+libraryDir)
}

// editRootModule puts the lines where upstream has those of the other staging
// modules; the go command alone would put them at the end of the file, into the
// block of indirect requirements. Imports of landed packages are direct
// requirements, as hack/update-vendor.sh would write them.
func editRootModule(_ context.Context, p *plan, base []byte) ([]byte, error) {
	for _, line := range []string{"\t%s v0.0.0\n", "\t%[1]s => ./staging/src/%[1]s\n"} {
		var err error
		before := fmt.Sprintf(line, "k8s.io/"+predecessor)
		if base, err = insert(base, before, before+fmt.Sprintf(line, libraryPath)); err != nil {
			return nil, err
		}
	}
	file, err := modfile.Parse("go.mod", base, nil)
	if err != nil {
		return nil, err
	}
	direct, err := p.imported(file)
	if err != nil {
		return nil, err
	}
	var requires []*modfile.Require
	for _, line := range file.Require {
		requires = append(requires, &modfile.Require{Mod: line.Mod, Indirect: line.Indirect && !direct[line.Mod.Path]})
	}
	file.SetRequireSeparateIndirect(requires)
	file.Cleanup()
	file.SortBlocks()
	return file.Format()
}

// imported are the modules of a go.mod that landed packages of the root module
// import. Which systems a file is for does not matter to go mod tidy.
func (p *plan) imported(root *modfile.File) (map[string]bool, error) {
	found := map[string]bool{}
	for _, f := range p.files {
		if path.Ext(f.path) != ".go" || strings.HasPrefix(f.path, "staging/") || strings.Contains(f.path, "/testdata/") {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), f.path, f.data, parser.ImportsOnly)
		if err != nil {
			return nil, err
		}
		for _, spec := range parsed.Imports {
			name, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				return nil, err
			}
			if module := moduleOf(root, name); module != "" {
				found[module] = true
			}
		}
	}
	return found, nil
}

// moduleOf is the required module that has a package, the one with the longest
// path; empty for those of the standard library and of the root module.
func moduleOf(root *modfile.File, name string) string {
	longest := ""
	for _, line := range root.Require {
		if below(name, line.Mod.Path) && len(line.Mod.Path) > len(longest) {
			longest = line.Mod.Path
		}
	}
	return longest
}

// editSums adds the sums of what only the library depends on. Upstream's lines
// stay in their order, which is by module and then by semantic version.
func editSums(_ context.Context, p *plan, base []byte) ([]byte, error) {
	missing, err := p.missingSums(base)
	if err != nil {
		return nil, err
	}
	lines := slices.Collect(strings.Lines(string(base)))
	for _, line := range missing {
		module, _ := summed(line)
		at := slices.IndexFunc(lines, func(other string) bool { at, _ := summed(other); return at > module })
		if at < 0 {
			at = len(lines)
		}
		lines = slices.Insert(lines, at, line)
	}
	return []byte(strings.Join(lines, "")), nil
}

// summed are the module and the version of a line of go.sum; of the version of a
// go.mod alone the line says so.
func summed(line string) (module, version string) {
	fields := strings.Fields(line)
	if len(fields) != 3 {
		return "", ""
	}
	return fields[0], fields[1]
}

// missingSums are the lines of the library's go.sum that upstream's has not. The
// library is built with upstream's versions of what upstream has: the fork's
// go.mod would change for all of Kubernetes if it required a newer one.
func (p *plan) missingSums(base []byte) ([]string, error) {
	library, ok := p.files[libraryDir+"/go.sum"]
	if !ok {
		return nil, fmt.Errorf("%s/go.sum is missing", libraryDir)
	}
	newer, err := p.newerThanUpstream()
	if err != nil {
		return nil, err
	}
	if len(newer) > 0 {
		return nil, fmt.Errorf("the library requires newer modules than upstream %s: %s; require upstream's versions in %s/go.mod", p.base.version, strings.Join(newer, ", "), libraryDir)
	}
	brought, err := p.newModules()
	if err != nil {
		return nil, err
	}
	known := map[string]bool{}
	for line := range strings.Lines(string(base)) {
		module, version := summed(line)
		known[module+" "+version] = true
	}
	var missing []string
	for line := range strings.Lines(string(library.data)) {
		// Upstream's go.mod decides about the version of what it requires.
		if module, version := summed(line); brought[module] != "" && !known[module+" "+version] {
			missing = append(missing, line)
		}
	}
	return missing, nil
}

// newerThanUpstream are the modules that the library requires in a newer version
// than upstream's go.mod does.
func (p *plan) newerThanUpstream() ([]string, error) {
	ours, theirs, err := p.required()
	var newer []string
	for module, version := range ours {
		if theirs[module] != "" && semver.Compare(version, theirs[module]) > 0 {
			newer = append(newer, module+" "+version+" (upstream's is "+theirs[module]+")")
		}
	}
	slices.Sort(newer)
	return newer, err
}

// newModules are the modules that the library brings and upstream has not, with
// their versions.
func (p *plan) newModules() (map[string]string, error) {
	ours, theirs, err := p.required()
	maps.DeleteFunc(ours, func(module, _ string) bool { return theirs[module] != "" })
	return ours, err
}

// required are the modules that the library requires, without staging modules,
// and those that upstream does.
func (p *plan) required() (ours, theirs map[string]string, err error) {
	upstreams, err := p.base.read("go.mod")
	if err != nil {
		return nil, nil, err
	}
	if theirs, err = required(upstreams); err != nil {
		return nil, nil, err
	}
	library, ok := p.files[libraryDir+"/go.mod"]
	if !ok {
		return nil, theirs, fmt.Errorf("%s/go.mod is missing", libraryDir)
	}
	if ours, err = required(library.data); err != nil {
		return nil, nil, err
	}
	maps.DeleteFunc(ours, func(module, _ string) bool { _, staging := p.base.staging[module]; return staging })
	return ours, theirs, nil
}

// editLibraryModule is the library's go.mod in the fork, under the line with which
// hack/update-vendor.sh begins those of staging modules.
func editLibraryModule(ctx context.Context, p *plan, base []byte) ([]byte, error) {
	data, err := stagingModule(ctx, p.base, base)
	return append([]byte("// This is a generated file. Do not edit directly.\n\n"), data...), err
}

// stagingModule makes the other staging modules the ones beside a staging
// module, as in each of them: required as v0.0.0 and replaced. Their
// dependencies are replaced, too, since no published version has them.
func stagingModule(ctx context.Context, base *upstream, data []byte) ([]byte, error) {
	direct, err := required(data)
	if err != nil {
		return nil, err
	}
	closure, err := base.closure(direct)
	if err != nil || len(closure) == 0 {
		return data, err
	}
	var args []string
	text := bytes.NewBuffer(bytes.Clone(data))
	text.WriteString("\nreplace (\n")
	for _, module := range closure {
		beside := "../" + strings.TrimPrefix(module, "k8s.io/")
		fmt.Fprintf(text, "\t%s => %s\n", module, beside)
		if direct[module] != "" {
			args = append(args, "-require="+module+"@v0.0.0")
		}
		args = append(args, "-replace="+module+"="+beside)
	}
	text.WriteString(")\n")
	return goEdit(ctx, "mod", text.Bytes(), args...)
}

// required are the versions of the modules that a go.mod requires.
func required(data []byte) (map[string]string, error) {
	file, err := modfile.ParseLax("go.mod", data, nil)
	if err != nil {
		return nil, err
	}
	modules := map[string]string{}
	for _, line := range file.Require {
		modules[line.Mod.Path] = line.Mod.Version
	}
	return modules, nil
}

// closure are the staging modules among some modules, and those that they depend
// on, in order.
func (u *upstream) closure(modules map[string]string) ([]string, error) {
	found := map[string]bool{}
	for queue := slices.Collect(maps.Keys(modules)); len(queue) > 0; queue = queue[1:] {
		dir, staging := u.staging[queue[0]]
		if !staging || found[queue[0]] {
			continue
		}
		found[queue[0]] = true
		data, err := os.ReadFile(filepath.Join(dir, "go.mod"))
		if err != nil {
			return nil, err
		}
		needed, err := required(data)
		if err != nil {
			return nil, err
		}
		queue = slices.AppendSeq(queue, maps.Keys(needed))
	}
	return slices.Sorted(maps.Keys(found)), nil
}
