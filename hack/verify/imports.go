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
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"path"
	"strings"
)

const library = "k8s.io/feature-lifecycle"

// goPackage is the output of go list about a package.
type goPackage struct {
	ImportPath string
	Imports    []string
}

// list asks the go command about the library's packages, without the
// workspace: alone, as third parties build it.
func list() ([]goPackage, error) {
	cmd := exec.Command("go", "list", "-json=ImportPath,Imports", "./...")
	cmd.Dir = "staging/src/" + library
	cmd.Env = append(cmd.Environ(), "GOWORK=off")
	output, err := cmd.Output()
	if err != nil {
		var exit *exec.ExitError
		if errors.As(err, &exit) {
			err = fmt.Errorf("%w: %s", err, exit.Stderr)
		}
		return nil, fmt.Errorf("go list: %w", err)
	}
	var packages []goPackage
	for decoder := json.NewDecoder(bytes.NewReader(output)); ; {
		var p goPackage
		if err := decoder.Decode(&p); errors.Is(err, io.EOF) {
			return packages, nil
		} else if err != nil {
			return nil, err
		}
		packages = append(packages, p)
	}
}

// pure has the packages that decide and do nothing.
var pure = map[string]bool{
	library + "/lifecycle/transition":  true,
	library + "/lifecycle/tracker":     true,
	library + "/lifecycle/versionskew": true,
	library + "/lifecycle/leader":      true,
	library + "/rollout":               true,
}

// floors are the levels of the library: a package imports packages of its own floor and
// of those below it. A key names a package and all packages below it without a key of
// their own.
var floors = map[string]int{
	"apis": 0,

	"client": 1, "featuregate": 1, "intern": 1, "internal": 1, "lifecycle/internal": 1, "rollout": 1,

	// The side of a process.
	"agent": 2, "watchtools": 2,

	// Decisions and tasks.
	"lifecycle/leader": 3, "lifecycle/task": 3, "lifecycle/tracker": 3, "lifecycle/transition": 3, "lifecycle/versionskew": 3,

	// The literal of a feature's author.
	"lifecycle": 4,

	// The side of a server.
	"lifecycle/control": 5, "lifecycle/controller": 5, "lifecycletest": 5,

	"operator": 6,

	"examples": 7,
}

// floorOf returns the floor of a package of the library, and false if it has none.
func floorOf(importPath string) (int, bool) {
	name, below := strings.CutPrefix(importPath, library+"/")
	for below && name != "." {
		if floor, ok := floors[name]; ok {
			return floor, true
		}
		name = path.Dir(name)
	}
	return 0, importPath == library
}

// arrows finds imports of the library that run up, and packages without a floor.
func arrows(packages []goPackage) []string {
	var findings []string
	for _, p := range packages {
		floor, ok := floorOf(p.ImportPath)
		if !ok {
			findings = append(findings, fmt.Sprintf("%s: has no floor; add it to floors in hack/verify/imports.go", p.ImportPath))
			continue
		}
		for _, imported := range p.Imports {
			if other, ok := floorOf(imported); ok && other > floor {
				findings = append(findings, fmt.Sprintf("%s: imports %s, which is on floor %d above its own floor %d", p.ImportPath, imported, other, floor))
			}
		}
	}
	return findings
}

// imports finds forbidden imports of pure packages. Forbidden dependencies of the
// whole library are checked by its own module_test.go.
func imports(packages []goPackage) []string {
	findings := arrows(packages)
	for _, p := range packages {
		if !pure[p.ImportPath] {
			continue
		}
		for _, imported := range p.Imports {
			if strings.HasPrefix(imported, "k8s.io/client-go") || strings.HasPrefix(imported, "k8s.io/klog") {
				findings = append(findings, fmt.Sprintf("%s: imports %s: the package decides, and has no clients and no logs", p.ImportPath, imported))
			}
		}
	}
	return findings
}
