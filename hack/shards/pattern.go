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
	"regexp"
)

// alternative is one of the patterns between "|" of -run and -skip, cut at "/".
type alternative []*regexp.Regexp

// splitPattern understands a pattern as package testing does: "|" separates
// alternatives and "/" levels, unless they are in brackets or parentheses.
func splitPattern(pattern string) ([]alternative, error) {
	if pattern == "" {
		return nil, nil
	}
	var all []alternative
	var levels alternative
	begin, depth, class := 0, 0, false
	end := func(i int) error {
		level, err := regexp.Compile(pattern[begin:i])
		if err != nil {
			return fmt.Errorf("pattern %q: %w", pattern, err)
		}
		levels, begin = append(levels, level), i+1
		return nil
	}
	for i := 0; i < len(pattern); i++ {
		switch c := pattern[i]; {
		case c == '\\':
			i++
		case c == '[' && !class:
			class = true
		case c == ']':
			class = false
		case class:
		case c == '(':
			depth++
		case c == ')':
			depth--
		case depth == 0 && (c == '/' || c == '|'):
			if err := end(i); err != nil {
				return nil, err
			}
			if c == '|' {
				all, levels = append(all, levels), nil
			}
		}
	}
	if err := end(len(pattern)); err != nil {
		return nil, err
	}
	return append(all, levels), nil
}

// selects returns whether the shard runs a top-level test, and whether only some of
// its subtests. Patterns have been checked.
func (s Shard) selects(test string) (selected, partly bool) {
	match := func(pattern string) (whole, some bool) {
		all, err := splitPattern(pattern)
		if err != nil {
			return false, false
		}
		for _, levels := range all {
			if levels[0].MatchString(test) {
				whole = whole || len(levels) == 1
				some = true
			}
		}
		return whole, some
	}
	whole, some := match(s.Run)
	if s.Run == "" {
		whole, some = true, true
	}
	skipped, skippedSome := match(s.Skip)
	return some && !skipped, !whole || skippedSome
}
