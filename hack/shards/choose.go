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
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

// choice describes which shards are to run.
type choice struct {
	// quick is true for those that "make test" runs.
	quick bool
	// names are names or patterns (path.Match), separated by commas; "" means all.
	names string
	// only is "failed" for those that failed when they last ran.
	only string
}

// choose returns the chosen shards in the order of the table.
func (r *runner) choose(table []Shard, c choice) ([]Shard, error) {
	for _, s := range table {
		if err := s.check(); err != nil {
			return nil, err
		}
	}
	if c.only != "" && c.only != "failed" {
		return nil, fmt.Errorf("ONLY=%s is not known; the only value is ONLY=failed", c.only)
	}
	chosen := slices.Clone(table)
	if c.names != "" {
		var err error
		if chosen, err = named(table, c.names); err != nil {
			return nil, err
		}
	}
	if c.quick {
		chosen = slices.DeleteFunc(chosen, func(s Shard) bool { return !s.Quick })
	}
	if c.only == "failed" {
		return r.chooseFailed(chosen)
	}
	return chosen, nil
}

// named finds shards by name. Names that begin with "!" take shards away.
func named(table []Shard, names string) ([]Shard, error) {
	wanted := map[string]bool{}
	for _, pattern := range strings.Split(names, ",") {
		pattern, without := strings.CutPrefix(strings.TrimSpace(pattern), "!")
		found := false
		for _, s := range table {
			match, err := path.Match(pattern, s.Name)
			if err != nil {
				return nil, fmt.Errorf("name %q of shards: %w", pattern, err)
			}
			if match {
				found, wanted[s.Name] = true, !without
			}
		}
		if !found {
			return nil, fmt.Errorf("no shard is called %q%s; \"make test-all LIST=1\" lists all", pattern, near(table, pattern))
		}
	}
	return slices.DeleteFunc(slices.Clone(table), func(s Shard) bool { return !wanted[s.Name] }), nil
}

// errNothingFailed is returned when there is nothing to repeat, which is well.
var errNothingFailed = errors.New("no shard failed when it last ran, so there is nothing to repeat")

func (r *runner) chooseFailed(shards []Shard) ([]Shard, error) {
	var failed []Shard
	ran := false
	for _, s := range shards {
		rec, err := r.readRecord(s, failedSuffix)
		if err != nil {
			return nil, err
		}
		if rec != nil {
			failed = append(failed, s)
			continue
		}
		if rec, err = r.readRecord(s, passedSuffix); err != nil {
			return nil, err
		}
		ran = ran || rec != nil
	}
	if len(failed) == 0 && !ran {
		return nil, fmt.Errorf("ONLY=failed repeats what failed, and no shard has run in %s yet; run \"make test-all\" first", r.root)
	}
	if len(failed) == 0 {
		return nil, errNothingFailed
	}
	return failed, nil
}

// near suggests names that are like the given one, as cobra suggests subcommands.
func near(table []Shard, name string) string {
	commands := &cobra.Command{SuggestionsMinimumDistance: 2}
	for _, s := range table {
		commands.AddCommand(&cobra.Command{Use: s.Name, Run: func(*cobra.Command, []string) {}})
	}
	names := commands.SuggestionsFor(name)
	if len(names) == 0 {
		return ""
	}
	return ", near it are " + strings.Join(names, ", ")
}
