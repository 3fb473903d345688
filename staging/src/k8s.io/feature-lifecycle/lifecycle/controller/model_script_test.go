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

package controller

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// schedulesDir has schedules of the model, each of which finds a bug that the product does
// not have: it is in hack/mutations, under the name of the file.
const schedulesDir = "testdata/schedules"

// script returns a schedule as a file has it: a line for each server's clock, for what else
// it begins and ends with, and for each step.
func (s schedule) script() string {
	var b strings.Builder
	for _, skew := range s.Skews {
		fmt.Fprintf(&b, "server clock=%s\n", skew)
	}
	fmt.Fprintf(&b, "users %d\nbegin %s\nend %s %s\n", s.Users, s.Begin.script(), s.End.script(), s.Version)
	if s.Crowded {
		b.WriteString("crowded\n")
	}
	for _, step := range s.Steps {
		fmt.Fprintf(&b, "%s\n", step)
	}
	return b.String()
}

func (v values) script() string { return onOff(v[0]) + " " + onOff(v[1]) }

// parseSchedule reads what script returns. Lines that begin with # are comments.
func parseSchedule(text string) (schedule, error) {
	var s schedule
	for number, line := range strings.Split(text, "\n") {
		words := strings.Fields(line)
		if len(words) == 0 || strings.HasPrefix(line, "#") {
			continue
		}
		if err := s.parse(words); err != nil {
			return s, fmt.Errorf("line %d, %q: %w", number+1, line, err)
		}
	}
	return s, nil
}

func (s *schedule) parse(words []string) (err error) {
	switch words[0] {
	case "server":
		var skew time.Duration
		skew, err = time.ParseDuration(strings.TrimPrefix(words[len(words)-1], "clock="))
		s.Skews = append(s.Skews, skew)
	case "users":
		s.Users, err = strconv.Atoi(words[len(words)-1])
	case "begin":
		s.Begin, err = parseValues(words[1:])
	case "end":
		s.Version = words[len(words)-1]
		s.End, err = parseValues(words[1 : len(words)-1])
	case "crowded":
		s.Crowded = true
	default:
		var step step
		step, err = parseStep(words)
		s.Steps = append(s.Steps, step)
	}
	return err
}

func parseValues(words []string) (v values, err error) {
	if len(words) != len(v) {
		return v, fmt.Errorf("%d values, want %d", len(words), len(v))
	}
	for i, word := range words {
		v[i] = word == "on"
	}
	return v, nil
}

// parseStep reads, for example, "300ms roll out 1 17".
func parseStep(words []string) (s step, err error) {
	if len(words) < 4 {
		return s, fmt.Errorf("a step is a time, what is done, and two numbers")
	}
	if s.After, err = time.ParseDuration(words[0]); err != nil {
		return s, err
	}
	numbers := words[len(words)-2:]
	name := strings.Join(words[1:len(words)-2], " ")
	for s.Do = toWait; s.Do.String() != name; s.Do++ {
		if s.Do == toMove {
			return s, fmt.Errorf("nothing is called %q", name)
		}
	}
	if s.Who, err = strconv.Atoi(numbers[0]); err == nil {
		s.What, err = strconv.Atoi(numbers[1])
	}
	return s, err
}

// invariant is what a violation is one of: "S1" of "at 3s: S1: A is Off".
func invariant(violation string) string {
	_, text, _ := strings.Cut(violation, ": ")
	name, _, _ := strings.Cut(text, ":")
	return name
}

// shortest takes away from a schedule what it does not need to violate the same invariant.
// It is the last of those that rapid found, which have ten steps at least.
func shortest(ctx context.Context, s schedule) schedule {
	want := invariant(runSchedule(ctx, s, false).violation)
	try := func(change func(*schedule)) {
		shorter := s
		shorter.Skews, shorter.Steps = slices.Clone(s.Skews), slices.Clone(s.Steps)
		change(&shorter)
		if invariant(runSchedule(ctx, shorter, false).violation) == want {
			s = shorter
		}
	}
	for i := len(s.Steps) - 1; i >= 0; i-- {
		try(func(s *schedule) { s.Steps = slices.Delete(s.Steps, i, i+1) })
	}
	for i := range s.Steps {
		try(func(s *schedule) { s.Steps[i].After = 0 })
	}
	for i := range s.Skews {
		try(func(s *schedule) { s.Skews[i] = 0 })
	}
	for s.Users > 0 {
		before := s.Users
		if try(func(s *schedule) { s.Users-- }); s.Users == before {
			break
		}
	}
	try(func(s *schedule) { s.Crowded = false })
	return s
}

// TestSchedules runs the schedules of files. Each has found a bug.
func TestSchedules(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(schedulesDir, "*.txt"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no schedules: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			s, err := parseSchedule(string(text))
			if err != nil {
				t.Fatal(err)
			}
			if c := runSchedule(t.Context(), s, true); c.violation != "" {
				t.Errorf("%s\n%s", strings.Join(c.trace, "\n"), c.violation)
			}
		})
	}
}

// TestScriptsOfSchedules: what is printed of a schedule is that schedule.
func TestScriptsOfSchedules(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		s := drawSchedule(rt)
		if parsed, err := parseSchedule(s.script()); err != nil || !reflect.DeepEqual(s, parsed) {
			rt.Fatalf("%v\n%s", err, s.script())
		}
	})
	for _, wrong := range []string{"server clock=x", "users x", "begin on", "1s wait", "1s dance 0 0", "x wait 0 0", "1s wait x 0"} {
		if _, err := parseSchedule(wrong); err == nil {
			t.Errorf("%q is taken", wrong)
		}
	}
}
