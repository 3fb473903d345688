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

package transition

import (
	"strings"
	"testing"
	"time"
)

func TestOptionsThatMeasureNothingAreRefused(t *testing.T) {
	for want, spoil := range map[string]func(*Options){
		"servers":                  func(o *Options) { o.Servers = nil },
		"an even number":           func(o *Options) { o.Repetitions = 3 },
		"has to be even":           func(o *Options) { o.Processes = []int{1} },
		"have to grow":             func(o *Options) { o.Processes = []int{100, 2} },
		"--object-processes=5 is ": func(o *Options) { o.ObjectProcesses = 5 },
	} {
		o := Defaults()
		spoil(&o)
		if err := o.validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("the error is %v, want one with %q", err, want)
		}
	}
	o := Defaults()
	if err := o.validate(); err != nil {
		t.Error(err)
	}
}

// TestARunThatFailedAtOnceIsDescribed: what it failed with has to be seen.
func TestARunThatFailedAtOnceIsDescribed(t *testing.T) {
	if r := describe(Defaults(), nil, nil); len(r.Budgets) > 0 || len(r.Limits) > 0 {
		t.Errorf("nothing was measured, and there are budgets %v and limits %v", r.Budgets, r.Limits)
	}
}

// TestLastReportDelayFollowsProtocol: a 250th of a second and an eighth of it for each
// process, and an eighth more than 35 s at most.
func TestLastReportDelayFollowsProtocol(t *testing.T) {
	if got, want := lastReportDelay(1_000_000), 315*time.Second/8; got != want {
		t.Errorf("all processes have reported after %s, want %s", got, want)
	}
	if got, want := lastReportDelay(1), 4500*time.Microsecond; got != want {
		t.Errorf("one process has reported after %s, want %s", got, want)
	}
}

// TestTheSettlePeriodIsNotOurs: what is left of the time is.
func TestTheSettlePeriodIsNotOurs(t *testing.T) {
	o := outcome{
		setting: setting{settle: time.Second},
		ours:    []ending{{took: 1200 * time.Millisecond, writes: 2}, {took: 1400 * time.Millisecond, writes: 4}, {took: 1300 * time.Millisecond, writes: 3}},
		peer:    []ending{{took: 700 * time.Millisecond, cleaning: 100 * time.Millisecond}},
		write:   5 * time.Millisecond,
	}
	f := o.figures()
	if f.took.Median != 1300 || f.own.Median != 300 || f.own.Low != 200 || f.own.High != 400 {
		t.Errorf("%+v of the time, %+v of it ours", f.took, f.own)
	}
	if f.limit != 2*5+100 {
		t.Errorf("the limit is %v ms, want two writes and the cleaning", f.limit)
	}
	o.objects = none
	if f := o.figures(); f.limit != 5+100 {
		t.Errorf("without objects the limit is %v ms, want one write and what the script took", f.limit)
	}
}
