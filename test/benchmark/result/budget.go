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

package result

import (
	"encoding/json"
	"fmt"
)

// The comparisons of budgets.
const (
	AtMost  = "≤"
	AtLeast = "≥"
	Below   = "<"
	Above   = ">"
)

// Budget is what was promised and what was measured. Whether it is met is always
// computed.
type Budget struct {
	// Text describes what is bounded.
	Text string `json:"text"`
	// Compare is how Measured has to stand to Target.
	Compare  string  `json:"compare"`
	Target   float64 `json:"target"`
	Measured float64 `json:"measured"`
	// Low and High are what repetitions say of Measured: it lies between them with a
	// probability of 95 % if there are six or more, and with less if these are the lowest
	// and the highest of fewer. Both are 0 for what was measured once.
	Low  float64 `json:"low,omitempty"`
	High float64 `json:"high,omitempty"`
	Unit string  `json:"unit,omitempty"`
	// Once is true for what was measured once: another run may come to another verdict, and
	// nothing says how likely that is.
	Once bool `json:"once,omitempty"`
	// How says of what Measured was computed.
	How string `json:"how,omitempty"`
}

// Met is true when the budget is kept.
func (b Budget) Met() bool {
	switch b.Compare {
	case AtMost:
		return b.Measured <= b.Target
	case AtLeast:
		return b.Measured >= b.Target
	case Below:
		return b.Measured < b.Target
	case Above:
		return b.Measured > b.Target
	default:
		return false
	}
}

// Noisy is true when the target is within what repetitions say: another run may come
// to the other verdict.
func (b Budget) Noisy() bool { return b.Low < b.Target && b.Target < b.High }

// Verdict is whether the budget is met: met, missed, or inconclusive when repetitions of the run
// lie on both sides of the target. What was measured once says so.
func (b Budget) Verdict() string {
	verdict := "missed"
	switch {
	case b.Noisy():
		return "inconclusive"
	case b.Met():
		verdict = "met"
	}
	if b.Once {
		verdict += " once"
	}
	return verdict
}

// MarshalJSON adds whether the budget is met, for those who read the file. It is
// not read back.
func (b Budget) MarshalJSON() ([]byte, error) {
	type plain Budget
	return json.Marshal(struct {
		plain
		Met bool `json:"met"`
	}{plain(b), b.Met()})
}

func (b Budget) validate() error {
	switch {
	case b.Text == "":
		return fmt.Errorf("a budget has no text")
	case b.Compare != AtMost && b.Compare != AtLeast && b.Compare != Below && b.Compare != Above:
		return fmt.Errorf("budget %q compares with %q, which is no comparison", b.Text, b.Compare)
	case b.Once && b.Low < b.High:
		return fmt.Errorf("budget %q was measured once and has repetitions", b.Text)
	case !finite(b.Target) || !finite(b.Measured) || !finite(b.Low) || !finite(b.High) || b.Low > b.High:
		return fmt.Errorf("budget %q: %v of %v", b.Text, b.Measured, b.Target)
	}
	return nil
}

// Limit is what physics, or the layers below, allow at best on the same machine in
// the same run, beside what ours reached.
type Limit struct {
	// Text describes what the limit is and how it was got.
	Text  string  `json:"text"`
	Limit float64 `json:"limit"`
	Ours  float64 `json:"ours"`
	Unit  string  `json:"unit"`
	// Cost is true when less is better: a time, or memory.
	Cost bool `json:"cost,omitempty"`
}

// Distance returns how far off ours is.
func (l Limit) Distance() string {
	if l.Cost {
		return Format(l.Ours/l.Limit) + " × the limit"
	}
	return Format(100*l.Ours/l.Limit) + " % of the limit"
}
