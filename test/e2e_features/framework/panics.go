//go:build linux

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

package framework

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"k8s.io/kubernetes-features/test/utils/localcluster/process"
)

// harmless are upstream's words for a request that was given up and did not panic.
var harmless = strings.NewReplacer("panicked: false", "", "panic-reason: <nil>", "")

// Panics returns the lines of a process's log that tell of a panic, caught or not, or
// of a fatal error of Go's runtime.
func Panics(p process.Process) ([]string, error) {
	log, err := os.Open(p.LogFile)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	var lines []string
	for reader, read := bufio.NewReader(log), 0; ; {
		line, err := reader.ReadString('\n')
		read += len(line)
		lower := harmless.Replace(strings.ToLower(line))
		for _, word := range []string{"panic", "fatal error:", "goroutine "} {
			if strings.Contains(lower, word) {
				lines = append(lines, strings.TrimSpace(line))
				break
			}
		}
		switch {
		case errors.Is(err, io.EOF) && read == 0:
			return nil, fmt.Errorf("%s has an empty log; what it would say of a panic is somewhere else", p.Name)
		case errors.Is(err, io.EOF):
			return lines, nil
		case err != nil:
			return lines, err
		}
	}
}
