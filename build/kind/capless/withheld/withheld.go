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

// Package withheld finds the capabilities that a machine withholds from its root,
// as some virtual machines and containers do.
package withheld

import (
	"errors"
	"fmt"
	"io/fs"
	"strconv"
	"strings"

	"github.com/moby/sys/capability"
)

// Command is the argument with which capless is no runtime, but prints what Capabilities
// returns. No runtime has such a command.
const Command = "print-withheld"

// Capabilities returns the capabilities that the kernel has and the bounding set of
// this process lacks, by the names of OCI's configuration. proc is the content of /proc.
func Capabilities(proc fs.FS) ([]string, error) {
	last, err := lastCapability(proc)
	if err != nil {
		return nil, err
	}
	bounding, err := boundingSet(proc)
	if err != nil {
		return nil, err
	}
	var names []string
	for c := capability.Cap(0); c <= last; c++ {
		if bounding&(1<<uint(c)) == 0 {
			names = append(names, "CAP_"+strings.ToUpper(c.String()))
		}
	}
	return names, nil
}

func lastCapability(proc fs.FS) (capability.Cap, error) {
	const file = "sys/kernel/cap_last_cap"
	content, err := fs.ReadFile(proc, file)
	if err != nil {
		return 0, fmt.Errorf("cannot find the last capability of the kernel: %w", err)
	}
	last, err := strconv.ParseUint(strings.TrimSpace(string(content)), 10, 6)
	if err != nil {
		return 0, fmt.Errorf("cannot read the last capability of the kernel in /proc/%s: %w", file, err)
	}
	return capability.Cap(last), nil
}

func boundingSet(proc fs.FS) (uint64, error) {
	const file = "self/status"
	content, err := fs.ReadFile(proc, file)
	if err != nil {
		return 0, fmt.Errorf("cannot find the bounding set of this process: %w", err)
	}
	for line := range strings.Lines(string(content)) {
		if value, ok := strings.CutPrefix(line, "CapBnd:"); ok {
			set, err := strconv.ParseUint(strings.TrimSpace(value), 16, 64)
			if err != nil {
				return 0, fmt.Errorf("cannot read CapBnd in /proc/%s: %w", file, err)
			}
			return set, nil
		}
	}
	return 0, errors.New("/proc/" + file + " has no line CapBnd; is the kernel older than 2.6.26?")
}
