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

package tracker

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
)

var (
	start    = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	settings = Settings{Grace: 5 * time.Minute, ReportPeriod: time.Minute}
	on, off  = true, false
)

func user(name string, enabled bool) Instance {
	return Instance{Component: "kubelet", Name: name, Version: "v1.36.3", Reported: true, Enabled: enabled, Alive: true, Expected: true}
}

func lost(i Instance, since time.Time) Instance {
	i.Alive, i.Since = false, since
	return i
}

// potential returns an instance with a value that is set explicitly and was not
// queried.
func potential(i Instance, since time.Time) Instance {
	i.Potential, i.Since = true, since
	return i
}

func missing(name string, since time.Time) Instance {
	return Instance{Component: "kubelet", Name: name, Version: "v1.35.1", Since: since, Expected: true}
}

func TestAggregate(t *testing.T) {
	for name, tc := range map[string]struct {
		instances []Instance
		now       time.Time
		want      []v1alpha1.FeatureUse
	}{
		"no users": {now: start},
		"users with different values are counted apart": {
			instances: []Instance{user("b", true), user("a", true), user("c", false)},
			now:       start,
			want: []v1alpha1.FeatureUse{
				{Component: "kubelet", Version: "v1.36.3", Enabled: &off, Count: 1, Expected: 1, Examples: []string{"c"}},
				{Component: "kubelet", Version: "v1.36.3", Enabled: &on, Count: 2, Expected: 2, Examples: []string{"a", "b"}},
			},
		},
		"a lost user counts until its grace period ends": {
			instances: []Instance{lost(user("a", true), start)},
			now:       start.Add(settings.Grace - 1),
			want:      []v1alpha1.FeatureUse{{Component: "kubelet", Version: "v1.36.3", Enabled: &on, Count: 1, Expected: 1, Examples: []string{"a"}}},
		},
		"and is stale from then on": {
			instances: []Instance{lost(user("a", true), start)},
			now:       start.Add(settings.Grace),
			want:      []v1alpha1.FeatureUse{{Component: "kubelet", Version: "v1.36.3", Enabled: &on, Stale: 1, Examples: []string{"a"}}},
		},
		"a kubelet that never reported is named without a value": {
			instances: []Instance{missing("old", start)},
			now:       start,
			want:      []v1alpha1.FeatureUse{{Component: "kubelet", Version: "v1.35.1", Expected: 1, Examples: []string{"old"}}},
		},
		"a kubelet that may yet be starting is not shown": {instances: []Instance{{Component: "kubelet", Name: "new", Since: start, Starting: true}}, now: start},
		"a process that did not query is no user":         {instances: []Instance{potential(user("a", true), start)}, now: start},
		"at most five are named": {
			instances: []Instance{user("a", true), user("b", true), user("c", true), user("d", true), user("e", true), user("f", true)},
			now:       start,
			want:      []v1alpha1.FeatureUse{{Component: "kubelet", Version: "v1.36.3", Enabled: &on, Count: 6, Expected: 6, Examples: []string{"a", "b", "c", "d", "e"}}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, Aggregate(tc.instances, settings, tc.now)); diff != "" {
				t.Errorf("unexpected uses (-want +got):\n%s", diff)
			}
		})
	}
}

func TestAggregateCountsEveryUserOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		instances := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) Instance {
			return Instance{
				Component: rapid.SampledFrom([]string{"kubelet", "kube-proxy"}).Draw(t, "component"),
				Name:      rapid.StringMatching(`n[0-9]{1,3}`).Draw(t, "name"),
				Version:   rapid.SampledFrom([]string{"v1.35.1", "v1.36.3", ""}).Draw(t, "version"),
				Reported:  rapid.Bool().Draw(t, "reported"),
				Enabled:   rapid.Bool().Draw(t, "enabled"),
				Alive:     rapid.Bool().Draw(t, "alive"),
				Since:     start.Add(time.Duration(rapid.IntRange(-600, 0).Draw(t, "since")) * time.Second),
			}
		}), 0, 30).Draw(t, "instances")
		var got, unknown int
		for _, row := range Aggregate(instances, settings, start) {
			got += int(row.Count + row.Stale)
			if row.Enabled == nil {
				unknown += int(row.Expected)
			}
		}
		if got+unknown != len(instances) {
			t.Fatalf("%d instances counted, want %d", got+unknown, len(instances))
		}
	})
}

func TestWaiting(t *testing.T) {
	grace := settings.Grace
	for name, tc := range map[string]struct {
		instances []Instance
		settings  Settings
		now       time.Time
		want      Wait
	}{
		"no users": {settings: settings, now: start},
		"users with the wanted value do not hold": {
			instances: []Instance{user("a", false)}, settings: settings, now: start,
		},
		"a live user with the old value holds without limit": {
			instances: []Instance{user("a", true)}, settings: settings, now: start.Add(100 * grace),
			want: Wait{Opposing: []string{"kubelet/a"}},
		},
		"a lost user with the old value holds for the grace period": {
			instances: []Instance{lost(user("a", true), start.Add(time.Second))}, settings: settings, now: start.Add(grace),
			want: Wait{Opposing: []string{"kubelet/a"}, Away: []string{"kubelet/a"}, AwayUntil: start.Add(grace + time.Second), Until: start.Add(grace + time.Second)},
		},
		"and no longer": {
			instances: []Instance{lost(user("a", true), start)}, settings: settings, now: start.Add(grace),
		},
		"an instance that never reported holds for the grace period from the start": {
			instances: []Instance{missing("old", start.Add(-time.Hour))}, settings: settings, now: start.Add(grace - 1),
			want: Wait{Missing: []string{"kubelet/old"}, MissingUntil: start.Add(grace), Until: start.Add(grace)},
		},
		"and no longer than that": {
			instances: []Instance{missing("old", start.Add(-time.Hour))}, settings: settings, now: start.Add(grace),
		},
		"one that may yet be starting holds too": {
			instances: []Instance{{Component: "kubelet", Name: "new", Since: start, Starting: true}}, settings: settings, now: start,
			want: Wait{Missing: []string{"kubelet/new"}, MissingUntil: start.Add(grace), Until: start.Add(grace)},
		},
		"unless full coverage is required": {
			instances: []Instance{missing("old", start.Add(-time.Hour))},
			settings:  Settings{Grace: grace, RequireFullCoverage: true}, now: start.Add(100 * grace),
			want: Wait{Missing: []string{"kubelet/old"}},
		},
		"a process that did not query holds while it may yet report that it did": {
			instances: []Instance{potential(user("a", true), start.Add(-time.Hour))}, settings: settings, now: start.Add(settings.ReportPeriod - 1),
			want: Wait{Opposing: []string{"kubelet/a"}, Until: start.Add(settings.ReportPeriod)},
		},
		"counted from when it had the value, if that was later": {
			instances: []Instance{potential(user("a", true), start.Add(time.Hour))}, settings: settings, now: start.Add(time.Hour),
			want: Wait{Opposing: []string{"kubelet/a"}, Until: start.Add(time.Hour + settings.ReportPeriod)},
		},
		"and no longer than a report takes": {
			instances: []Instance{potential(user("a", true), start)}, settings: settings, now: start.Add(settings.ReportPeriod),
		},
		"a process with the wanted value never holds": {
			instances: []Instance{potential(user("a", false), start)}, settings: settings, now: start,
		},
		"the earliest end is returned": {
			instances: []Instance{lost(user("a", true), start.Add(time.Minute)), missing("old", start)}, settings: settings, now: start.Add(time.Minute),
			want: Wait{
				Opposing: []string{"kubelet/a"}, Missing: []string{"kubelet/old"}, Until: start.Add(grace), MissingUntil: start.Add(grace),
				Away: []string{"kubelet/a"}, AwayUntil: start.Add(grace + time.Minute),
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := Waiting(tc.instances, false, start, tc.settings, tc.now)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("unexpected wait (-want +got):\n%s", diff)
			}
			if over := len(tc.want.Opposing)+len(tc.want.Missing) == 0; got.Over() != over {
				t.Errorf("Over() = %t, want %t", got.Over(), over)
			}
		})
	}
}

func TestDifferingNamesOnlyLiveReporters(t *testing.T) {
	instances := []Instance{user("b", true), user("a", true), user("c", false), lost(user("d", true), start), missing("e", start)}
	if diff := cmp.Diff([]string{"kubelet/a", "kubelet/b"}, Differing(instances, false)); diff != "" {
		t.Errorf("unexpected names (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"kubelet/e"}, Missing(instances)); diff != "" {
		t.Errorf("unexpected names (-want +got):\n%s", diff)
	}
}

// TestUnconfirmedNamesThoseThatDoNotSwitch at the moment.
func TestUnconfirmedNamesThoseThatDoNotSwitch(t *testing.T) {
	const moment = "2026-11-30T12:00:00Z"
	user := func(name string, change func(*Instance)) Instance {
		i := Instance{Component: "kubelet", Name: name, Reported: true, Alive: true}
		change(&i)
		return i
	}
	instances := []Instance{
		user("waits", func(i *Instance) { i.SwitchTime = moment }),
		user("for-another", func(i *Instance) { i.SwitchTime = "2026-11-30T13:00:00Z" }),
		user("not", func(*Instance) {}),
		user("has-it", func(i *Instance) { i.Enabled = true }),
		user("explicit", func(i *Instance) { i.Explicit = true }),
		user("away", func(i *Instance) { i.Alive = false }),
		user("missing", func(i *Instance) { i.Reported = false }),
		user("potential", func(i *Instance) { i.Potential = true }),
	}
	if diff := cmp.Diff([]string{"kubelet/for-another", "kubelet/not"}, Unconfirmed(instances, true, moment)); diff != "" {
		t.Errorf("unexpected instances (-want +got):\n%s", diff)
	}
}
