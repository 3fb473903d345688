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
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// markVariable is in the environment of all processes of a shard, so those that left
// its process group, as clusters of local-up do, are found after its end.
const markVariable = "SHARDS_RUN"

// mark distinguishes one run of a shard from all others.
func mark(s Shard) string {
	return fmt.Sprintf("%s=%s-%d-%d", markVariable, s.Name, os.Getpid(), time.Now().UnixNano())
}

// endLeft kills the processes with a mark and returns what they are, sorted. A process
// may start another meanwhile, so it looks until there is none.
func endLeft(mark string) []string {
	var left []string
	for range 100 {
		pids := marked(mark)
		if len(pids) == 0 {
			break
		}
		for _, pid := range pids {
			name := nameOf(pid)
			if syscall.Kill(pid, syscall.SIGKILL) == nil && !slices.Contains(left, name) {
				left = append(left, name)
			}
		}
	}
	slices.Sort(left)
	return left
}

// marked are the processes that have the mark and live. One that was killed has no
// environment any more.
func marked(mark string) []int {
	files, _ := filepath.Glob("/proc/[0-9]*/environ")
	var pids []int
	for _, file := range files {
		// A process that cannot be read has ended, or belongs to another user.
		data, err := os.ReadFile(file)
		if err != nil || !slices.ContainsFunc(bytes.Split(data, []byte{0}), func(entry []byte) bool { return string(entry) == mark }) {
			continue
		}
		if pid, err := strconv.Atoi(filepath.Base(filepath.Dir(file))); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids
}

// nameOf is the name of a process's program.
func nameOf(pid int) string {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid))
	if err != nil {
		return "?"
	}
	return strings.TrimSpace(string(data))
}
