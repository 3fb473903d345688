/*
Copyright 2026 The Kubernetes Authors.

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
	"strings"
)

const library = "k8s.io/feature-lifecycle"

// goPackage is what go list says of a package.
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

// pure are the packages that decide and do nothing.
var pure = map[string]bool{
	library + "/lifecycle/transition":  true,
	library + "/lifecycle/tracker":     true,
	library + "/lifecycle/versionskew": true,
	library + "/lifecycle/leader":      true,
	library + "/values/rollout":        true,
}

// imports finds what pure packages must not import. What the library must not depend
// on at all is held by the library's own module_test.go.
func imports(packages []goPackage) []string {
	var findings []string
	for _, p := range packages {
		if !pure[p.ImportPath] {
			continue
		}
		for _, imported := range p.Imports {
			if strings.HasPrefix(imported, "k8s.io/client-go") || strings.HasPrefix(imported, "k8s.io/klog") {
				findings = append(findings, fmt.Sprintf("%s: imports %s: the package decides and neither talks to anybody nor logs", p.ImportPath, imported))
			}
		}
	}
	return findings
}
