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

// Package main draws what benchmarks found: it reads docs/benchmarks/*.json and
// writes a picture for each chart and a page beside them, BENCHMARKS.md at the root,
// and tables into docs/contributors/scale.md. The same results give the same bytes, so that a check can compare.
package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"k8s.io/kubernetes-features/test/benchmark/result"
)

const (
	folder = result.Folder
	page   = result.Page
	larger = result.Larger
)

func main() {
	root := flag.String("root", ".", "the repository's root")
	check := flag.Bool("check", false, "only say whether pictures and pages are what the results give")
	flag.Parse()
	if err := run(os.Stdout, *root, *check); err != nil {
		fmt.Fprintln(os.Stderr, "Error:", err)
		os.Exit(1)
	}
}

func run(out io.Writer, root string, check bool) error {
	results, err := readAll(root)
	if err != nil {
		return err
	}
	files, err := render(results, root)
	if err != nil {
		return err
	}
	stale, err := outdated(root, files)
	if err != nil {
		return err
	}
	if check {
		if len(stale) > 0 {
			return fmt.Errorf("these are not what the results in %s give; run \"make bench-draw\": %s", folder, strings.Join(stale, ", "))
		}
		return nil
	}
	for _, name := range stale {
		file := filepath.Join(root, filepath.FromSlash(name))
		if data, wanted := files[name]; !wanted {
			err = os.Remove(file)
		} else {
			err = os.WriteFile(file, data, 0o644)
		}
		if err != nil {
			return err
		}
		fmt.Fprintln(out, "wrote", name)
	}
	return nil
}

// readAll reads all results, in the order of result.Names and then of their names.
func readAll(root string) ([]*result.Result, error) {
	names, err := filepath.Glob(filepath.Join(root, filepath.FromSlash(folder), "*.json"))
	if err != nil {
		return nil, err
	}
	var results []*result.Result
	for _, file := range names {
		r, err := result.Read(file)
		if err != nil {
			return nil, err
		}
		if want := strings.TrimSuffix(filepath.Base(file), ".json"); r.Name != want {
			return nil, fmt.Errorf("%s has the result of %q; results have the name of their file", file, r.Name)
		}
		if !slices.Contains(result.Names, r.Name) {
			return nil, fmt.Errorf("%s: there is no benchmark of that name", file)
		}
		results = append(results, r)
	}
	slices.SortFunc(results, func(a, b *result.Result) int {
		return slices.Index(result.Names, a.Name) - slices.Index(result.Names, b.Name)
	})
	return results, nil
}

// render makes all files, by their slash-separated paths below the root.
func render(results []*result.Result, root string) (map[string][]byte, error) {
	files := map[string][]byte{}
	for _, r := range results {
		for _, chart := range r.Charts {
			data, err := picture(chart)
			if err != nil {
				return nil, fmt.Errorf("drawing %s of %s: %w", chart.Name, r.Name, err)
			}
			files[pictureFile(r, chart)] = data
		}
		text, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(resultPage(r.Name))))
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return nil, err
		}
		if files[resultPage(r.Name)], err = withResult(string(text), r); err != nil {
			return nil, err
		}
	}
	files[page] = summary(results)
	text, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(larger)))
	if err != nil {
		return nil, err
	}
	files[larger], err = extrapolated(string(text), results)
	return files, err
}

// pictureFile is where a chart's picture is.
func pictureFile(r *result.Result, chart *result.Chart) string {
	return path.Join(folder, r.Name+"-"+chart.Name+".svg")
}

// outdated are the files that are not as they should be, and pictures that nothing
// shows any more, sorted.
func outdated(root string, files map[string][]byte) ([]string, error) {
	stale := map[string]bool{}
	for name, data := range files {
		present, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(name)))
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return nil, err
		}
		if err != nil || !bytes.Equal(present, data) {
			stale[name] = true
		}
	}
	pictures, err := filepath.Glob(filepath.Join(root, filepath.FromSlash(folder), "*.svg"))
	if err != nil {
		return nil, err
	}
	for _, file := range pictures {
		if name := path.Join(folder, filepath.Base(file)); files[name] == nil {
			stale[name] = true
		}
	}
	return slices.Sorted(maps.Keys(stale)), nil
}
