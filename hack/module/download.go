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

// Package module brings published modules into the module cache, for programs that read their
// sources. It never builds them, and neither needs nor changes this repository's go.mod.
package module

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
)

// Module is a version of a module in the module cache.
type Module struct {
	// Name is <path>@<version>.
	Name string
	// Zip is the archive's file, and Sum its hash, which the go command compared with the
	// checksum database.
	Zip, Sum string
	// dir has its files; refused says why there is none.
	dir, refused string
}

// Dir returns the folder with the module's files. The go command unpacks none that it cannot
// build, for example one of a newer Go.
func (m Module) Dir() (string, error) {
	if m.dir == "" {
		return "", fmt.Errorf("%s is downloaded and not unpacked: %s; see whether it is of a newer Go (GOTOOLCHAIN)", m.Name, m.refused)
	}
	return m.dir, nil
}

// Download has the go command download <path>@<version>, for example k8s.io/api@v0.37.2.
func Download(ctx context.Context, name string) (Module, error) {
	cmd := exec.CommandContext(ctx, "go", "mod", "download", "-json", name)
	// Outside of this module, whose go.mod neither has nor gets what is downloaded.
	cmd.Dir = os.TempDir()
	cmd.Env = append(cmd.Environ(), "GOWORK=off", "GOFLAGS=-mod=mod")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	output, failed := cmd.Output()
	return read(name, output, stderr.String(), failed)
}

// read returns what the go command answered. Its exit status tells less than the answer: a
// module that it refuses to build is downloaded all the same.
func read(name string, output []byte, stderr string, failed error) (Module, error) {
	var answer struct{ Dir, Zip, Sum, Error string }
	if err := json.Unmarshal(output, &answer); err != nil {
		return Module{}, fmt.Errorf("go mod download %s: %w", name, errors.Join(failed, err, errors.New(strings.TrimSpace(stderr))))
	}
	if answer.Zip == "" || answer.Sum == "" {
		return Module{}, fmt.Errorf("go mod download %s: %s; see whether the version is published and the module proxy can be reached", name, answer.Error)
	}
	return Module{Name: name, Zip: answer.Zip, Sum: answer.Sum, dir: answer.Dir, refused: answer.Error}, nil
}
