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

package featuregate

import (
	"bufio"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
)

// key is one thing that is measured.
type key struct{ value, callers, gate string }

// sample has one figure of each repetition.
type sample struct{ ns, allocations []float64 }

type samples map[key]*sample

// name is that of a result line: the sub-benchmarks' names and, if it is not 1, the
// number of cores.
var name = regexp.MustCompile(`^BenchmarkEnabled/value=(\w+)/callers=(\w+)/gate=(\w+?)(-\d+)?$`)

// read reads results as the Go project specifies them ("Go Benchmark Data Format",
// proposal 14313): a name, the number of iterations, and pairs of a value and a unit.
func (s samples) read(from io.Reader) error {
	scanner := bufio.NewScanner(from)
	for scanner.Scan() {
		line := scanner.Text()
		if !strings.HasPrefix(line, "Benchmark") {
			continue
		}
		fields := strings.Fields(line)
		match := name.FindStringSubmatch(fields[0])
		if match == nil || len(fields) < 4 || len(fields)%2 != 0 {
			return fmt.Errorf("the benchmark printed %q, which is no result", line)
		}
		values := map[string]float64{}
		for i := 2; i < len(fields); i += 2 {
			v, err := strconv.ParseFloat(fields[i], 64)
			if err != nil {
				return fmt.Errorf("the benchmark printed %q: %w", line, err)
			}
			values[fields[i+1]] = v
		}
		ns, timed := values["ns/op"]
		allocations, counted := values["allocs/op"]
		if !timed || !counted {
			return fmt.Errorf("the benchmark printed %q without ns/op or allocs/op", line)
		}
		k := key{match[1], match[2], match[3]}
		if s[k] == nil {
			s[k] = &sample{}
		}
		s[k].ns, s[k].allocations = append(s[k].ns, ns), append(s[k].allocations, allocations)
	}
	return scanner.Err()
}

// of are the samples of one thing.
func (s samples) of(value, callers, gate string) (*sample, error) {
	found := s[key{value, callers, gate}]
	if found == nil {
		return nil, fmt.Errorf("the benchmark did not measure gate %s with a %s value and callers %s", gate, value, callers)
	}
	return found, nil
}
