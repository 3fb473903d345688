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

package rootfs

import (
	"bytes"
	"debug/elf"
	"fmt"
	"io"
	"maps"
	"path"
	"slices"
	"strings"
)

// closure gathers files of a tree together with everything that they need to
// run.
type closure struct {
	tree   Tree
	search []string
	found  Tree
}

// Closure returns those files of tree that names lead to, the symbolic links on
// the way, and the program interpreters and shared libraries that they need, in
// turn. A library that is missing is an error here rather than on a user's
// node.
func Closure(tree Tree, arch string, names []string) (Tree, error) {
	c := &closure{tree: tree, found: Tree{}, search: []string{
		path.Join("usr/lib", architectures[arch].triplet), "usr/lib", "usr/lib64",
	}}
	for _, name := range names {
		if err := c.add(name); err != nil {
			return nil, err
		}
	}
	return c.found, nil
}

func (c *closure) add(name string) error {
	file, links, err := c.tree.Resolve(name)
	if err != nil {
		return err
	}
	for _, link := range links {
		c.found[link] = c.tree[link]
	}
	if _, ok := c.found[file]; ok {
		return nil
	}
	c.found[file] = c.tree[file]
	needs, err := needed(c.tree[file].Data)
	if err != nil {
		return fmt.Errorf("cannot read the ELF file %s: %w", file, err)
	}
	for _, need := range needs {
		if err := c.addNeeded(file, need); err != nil {
			return err
		}
	}
	return nil
}

// addNeeded adds the library or interpreter need of file.
func (c *closure) addNeeded(file, need string) error {
	if path.IsAbs(need) {
		return c.add(need)
	}
	for _, dir := range c.search {
		name := path.Join(dir, need)
		if _, _, err := c.tree.Resolve(name); err == nil {
			return c.add(name)
		}
	}
	return fmt.Errorf("%s needs the library %s, which none of the packages has; add the package that has it to Names and run \"make update-release-lock\"", file, need)
}

// needed returns the interpreter and the libraries of an ELF file, and nothing
// for any other file.
func needed(content []byte) ([]string, error) {
	if !bytes.HasPrefix(content, []byte(elf.ELFMAG)) {
		return nil, nil
	}
	f, err := elf.NewFile(bytes.NewReader(content))
	if err != nil {
		return nil, err
	}
	needs, err := f.ImportedLibraries()
	if err != nil {
		return nil, err
	}
	for _, p := range f.Progs {
		if p.Type != elf.PT_INTERP {
			continue
		}
		interpreter, err := io.ReadAll(p.Open())
		if err != nil {
			return nil, err
		}
		needs = append(needs, strings.TrimRight(string(interpreter), "\x00"))
	}
	return needs, nil
}

// below returns the names of tree in a directory, sorted.
func below(tree Tree, dir string) []string {
	var names []string
	for _, name := range slices.Sorted(maps.Keys(tree)) {
		if strings.HasPrefix(name, dir+"/") {
			names = append(names, name)
		}
	}
	return names
}
