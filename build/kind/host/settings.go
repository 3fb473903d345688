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

package host

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"
)

// unstable are settings that the kernel changes by itself, that belong to the process
// which reads them, or that do something when they are read or written.
var unstable = map[string]bool{
	"kernel/cad_pid":                    true,
	"kernel/hung_task_warnings":         true,
	"kernel/ns_last_pid":                true,
	"kernel/perf_cpu_time_max_percent":  true,
	"kernel/perf_event_max_sample_rate": true,
	"kernel/tainted":                    true,
	"vm/stat_refresh":                   true,
	"fs/binfmt_misc":                    true,
	"kernel/random":                     true,
	"kernel/sched_domain":               true,
	"net":                               true,
}

// byNodes are settings that nodes change: kubelet, and systemd of the node image, which
// also applies what files in its sysctl.d have.
var byNodes = map[string]bool{
	"fs/file-max":               true,
	"fs/nr_open":                true,
	"kernel/core_uses_pid":      true,
	"kernel/keys/root_maxbytes": true,
	"kernel/keys/root_maxkeys":  true,
	"kernel/panic":              true,
	"kernel/panic_on_oops":      true,
	"kernel/pid_max":            true,
	"kernel/sysrq":              true,
	"vm/overcommit_memory":      true,
	"vm/panic_on_oom":           true,
}

// changedByNodes is true for settings that nodes change. fs.protected_* are several.
func changedByNodes(name string) bool {
	return byNodes[name] || strings.HasPrefix(name, "fs/protected_")
}

// settings returns the values of the kernel's settings of one line that can be read
// and written, except those of networks, which a namespace has for itself.
func settings(dir fs.FS) (map[string]string, error) {
	values := map[string]string{}
	err := fs.WalkDir(dir, ".", func(name string, entry fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrNotExist), errors.Is(err, fs.ErrPermission):
			// Modules come and go with theirs; some are for root only.
			return nil
		case err != nil:
			return err
		case unstable[name] && entry.IsDir():
			return fs.SkipDir
		case unstable[name] || !entry.Type().IsRegular():
			return nil
		}
		if value, ok := setting(dir, name, entry); ok {
			values[name] = value
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("cannot note the kernel's settings: %w", err)
	}
	return values, nil
}

// setting returns a value of one line. Settings that root itself may not read, or not
// on this machine, are no value.
func setting(dir fs.FS, name string, entry fs.DirEntry) (string, bool) {
	const readAndWrite = 0o600
	info, err := entry.Info()
	if err != nil || info.Mode().Perm()&readAndWrite != readAndWrite {
		return "", false
	}
	content, err := fs.ReadFile(dir, name)
	if err != nil {
		return "", false
	}
	value := strings.TrimSuffix(string(content), "\n")
	return value, !strings.Contains(value, "\n")
}

// changed returns the names of settings that have another value now.
func changed(before, now map[string]string) (names []string) {
	for _, name := range slices.Sorted(maps.Keys(before)) {
		if value, ok := now[name]; ok && value != before[name] {
			names = append(names, name)
		}
	}
	return names
}
