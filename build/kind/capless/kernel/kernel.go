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

package kernel

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

const (
	// Command has capless read and write settings (Arguments) instead of being a runtime.
	Command = "settings"
	// Dir has the settings of this machine.
	Dir = "/proc/sys"

	bootFile = "kernel/random/boot_id"
)

// Boot returns the identifier of this start of the machine.
func Boot() (string, error) { return boot(Dir) }

func boot(dir string) (string, error) {
	content, err := os.ReadFile(filepath.Join(dir, bootFile))
	if err != nil {
		return "", fmt.Errorf("cannot tell this start of the machine from others: %w", err)
	}
	return strings.TrimSpace(string(content)), nil
}

// Write writes settings of a folder twice, since pairs such as vm/dirty_bytes and
// vm/dirty_ratio change each other. The error is that of the second time.
func Write(dir string, values map[string]string) (err error) {
	for range 2 {
		err = nil
		for _, name := range slices.Sorted(maps.Keys(values)) {
			err = errors.Join(err, os.WriteFile(filepath.Join(dir, name), []byte(values[name]+"\n"), 0o644))
		}
	}
	return err
}

// Arguments are those of the command, which reads the settings named and writes those with
// values, on the machine with this identifier only: a container may be on another one.
func Arguments(boot string, read []string, values map[string]string) []string {
	args := append([]string{Command, boot}, read...)
	for _, name := range slices.Sorted(maps.Keys(values)) {
		args = append(args, name+"="+values[name])
	}
	return args
}

// Answer is what the command prints.
type Answer struct {
	// Boot is the identifier of the machine that answers. On another machine than the
	// one asked for, nothing was read or written.
	Boot string `json:"boot"`
	// Was and Is have values before and after writing.
	Was map[string]string `json:"was,omitempty"`
	Is  map[string]string `json:"is,omitempty"`
	// Error is why values could not be written.
	Error string `json:"error,omitempty"`
}

// Run is the command, with the arguments after its name.
func Run(dir string, args []string, out io.Writer) error {
	if len(args) == 0 {
		return errors.New(Command + " needs the identifier of the machine")
	}
	now, err := boot(dir)
	if err != nil {
		return err
	}
	answer := Answer{Boot: now}
	if now == args[0] {
		if err := answer.settle(dir, args[1:]); err != nil {
			return err
		}
	}
	return json.NewEncoder(out).Encode(answer)
}

// settle reads and writes. Arguments without a value are only read.
func (a *Answer) settle(dir string, args []string) (err error) {
	var names []string
	values := map[string]string{}
	for _, arg := range args {
		name, value, found := strings.Cut(arg, "=")
		if !filepath.IsLocal(name) {
			return fmt.Errorf("%q is no name of a setting", name)
		}
		names = append(names, name)
		if found {
			values[name] = value
		}
	}
	if a.Was, err = read(dir, names); err != nil {
		return err
	}
	if err := Write(dir, values); err != nil {
		a.Error = err.Error()
	}
	a.Is, err = read(dir, names)
	return err
}

func read(dir string, names []string) (map[string]string, error) {
	values := map[string]string{}
	for _, name := range names {
		content, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			return nil, err
		}
		values[name] = strings.TrimSuffix(string(content), "\n")
	}
	return values, nil
}
