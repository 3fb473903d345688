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
	"fmt"
	"io"
	"regexp"
	"strings"
)

const (
	// maxLines bounds what is printed of one test, maxColumns a line.
	maxLines, maxColumns = 40, 2000
	// ofTheDead limits the part of the log that is kept of a process that ended
	// by itself.
	ofTheDead = 8
)

var (
	// message begins what a test logs.
	message = regexp.MustCompile(`^\s*\w+\.go:\d+: `)
	// logged begins the log of a process (framework.Cluster).
	logged = regexp.MustCompile(`--- \S+ (runs|HAS ENDED), the end of its log:$`)
)

// printCauses prints why tests failed: their own messages, without the logs of
// processes that come with them. gotestsum's summary does not replace it: of a failed
// test it prints the whole output or none, and a test of a cluster ends with the log of
// each process. gotestsum would also run the tests itself or read events that the runner
// reads anyway, for its table, its seeds and its record of each shard.
func printCauses(failures []failure, w io.Writer) {
	for _, failed := range failures {
		fmt.Fprintf(w, "\n=== WHY %s FAILED\n%s\n", failed.name(), strings.Join(failed.causes(), "\n"))
	}
}

// failure is a test, or a package without its tests, that failed.
type failure struct {
	pkg, test string
	output    []string
}

func (f failure) name() string { return strings.TrimSuffix(f.pkg+"."+f.test, ".") }

// causes are the lines that may say why, the last of them.
func (f failure) causes() []string {
	var kept []string
	var dead []string
	inLog, ofDead := false, false
	end := func() {
		kept = append(kept, dead[max(0, len(dead)-ofTheDead):]...)
		dead = nil
	}
	for _, line := range f.output {
		if message.MatchString(line) {
			end()
			match := logged.FindStringSubmatch(line)
			inLog = match != nil
			ofDead = inLog && match[1] != "runs"
			if inLog && !ofDead {
				continue
			}
		} else if inLog {
			if ofDead && !frame(line) {
				dead = append(dead, cut(line))
			}
			continue
		}
		if !frame(line) {
			kept = append(kept, cut(line))
		}
	}
	end()
	return kept[max(0, len(kept)-maxLines):]
}

// frame is true for a line that only says where a test begins or ends.
func frame(line string) bool {
	line = strings.TrimSpace(line)
	for _, prefix := range []string{"=== RUN", "=== PAUSE", "=== CONT", "=== NAME", "--- FAIL", "FAIL", "PASS"} {
		if strings.HasPrefix(line, prefix) {
			return true
		}
	}
	return line == ""
}

func cut(line string) string {
	if len(line) > maxColumns {
		return line[:maxColumns] + " …"
	}
	return line
}
