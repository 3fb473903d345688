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

package programs

import (
	"debug/elf"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// symbolVersion is the prefix of the versions of symbols of glibc.
const symbolVersion = "GLIBC_"

// markers are versions of symbols that are no numbers, with the version of glibc that
// came with them.
var markers = map[string]string{"ABI_DT_RELR": "2.36"}

// NeedsLibc returns the version of glibc that an executable needs at least: the highest
// one of the symbols that it imports. It is empty for one that needs none.
func NeedsLibc(file string) (string, error) {
	f, err := elf.Open(file)
	if err != nil {
		return "", fmt.Errorf("cannot find the C library that %s needs: %w", file, err)
	}
	defer func() { _ = f.Close() }()
	needs, err := f.DynamicVersionNeeds()
	if errors.Is(err, elf.ErrNoSymbols) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("cannot find the C library that %s needs: %w", file, err)
	}
	var versions []string
	for _, library := range needs {
		for _, need := range library.Needs {
			versions = append(versions, need.Dep)
		}
	}
	return highest(versions), nil
}

// highest returns the highest version of glibc among versions of symbols.
func highest(versions []string) (most string) {
	for _, version := range versions {
		version, ok := strings.CutPrefix(version, symbolVersion)
		if marked := markers[version]; marked != "" {
			version = marked
		}
		if _, err := parts(version); ok && err == nil && (most == "" || newer(version, most)) {
			most = version
		}
	}
	return most
}

// RunsWith is an error when an executable needs a newer glibc than one of the version,
// which may be that of a package of Debian.
func RunsWith(file, version string) error {
	needs, err := NeedsLibc(file)
	if err != nil || needs == "" {
		return err
	}
	has, _, _ := strings.Cut(version, "-")
	if _, err := parts(has); err != nil {
		return fmt.Errorf("%q is no version of glibc: %w", version, err)
	}
	if newer(needs, has) {
		return fmt.Errorf("%s was linked with the C library of this machine and needs glibc %s, and nodes have %s", file, needs, version)
	}
	return nil
}

// newer compares two versions of numbers.
func newer(a, b string) bool {
	first, _ := parts(a)
	second, _ := parts(b)
	return first[0] > second[0] || first[0] == second[0] && first[1] > second[1]
}

// parts returns the first two numbers of a version.
func parts(version string) (numbers [2]int, err error) {
	fields := strings.Split(version, ".")
	if len(fields) < len(numbers) {
		return numbers, errors.New("it has no two numbers")
	}
	for i := range numbers {
		if numbers[i], err = strconv.Atoi(fields[i]); err != nil {
			return numbers, err
		}
	}
	return numbers, nil
}
