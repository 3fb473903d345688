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
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
)

// odd are texts that reporters may send, and that Aggregate might take for its own.
var odd = []string{"", others, "OTHERS", "c1", "c1 ", "c10", "v1.10", "v1.9.0-rc.1+build", "a/b", "é", "\xff", "\x00", strings.Repeat("x", 253)}

// text is one of them for high bytes, and what format makes of the others.
func text(format string, b byte) string {
	if high := int(b) - 256 + len(odd); high >= 0 {
		return odd[high]
	}
	return fmt.Sprintf(format, b)
}

// instancesOf reads instances out of any bytes: seven for each.
func instancesOf(data []byte) []Instance {
	var instances []Instance
	for len(data) >= 7 {
		b := data[:7]
		data = data[7:]
		instances = append(instances, Instance{
			Component: text("c%d", b[0]),
			Name:      fmt.Sprintf("n%d", b[1]),
			Version:   strings.TrimSuffix(text("v1.%d", b[2]), "v1.0"),
			Reported:  b[3]&1 != 0,
			Enabled:   b[3]&2 != 0,
			Potential: b[3]&4 != 0,
			Alive:     b[3]&8 != 0,
			Starting:  b[3]&16 != 0,
			Expected:  b[3]&32 != 0,
			Explicit:  b[3]&64 != 0,
			Failed:    b[3]&128 != 0,
			Since:     start.Add(time.Duration(int(b[4])<<8+int(b[5])-1<<15) * time.Second / 16),
		})
		if b[6]&1 != 0 {
			instances[len(instances)-1].Since = time.Time{}
		}
	}
	return instances
}

// manyOf are instances of many components with many versions.
func manyOf(components, versions int) []byte {
	var data []byte
	for c := range components {
		for v := range versions {
			data = append(data, byte(c), byte(v), byte(v), 0b101011, 0x80, 0, 0)
		}
	}
	return data
}

// grouped are instances with those in one that are alike but for their names.
func grouped(instances []Instance) []Instance {
	var kinds []string
	of := map[string][]Instance{}
	for _, i := range instances {
		kind := i
		kind.Name = ""
		key := fmt.Sprintf("%+v", kind)
		if of[key] == nil {
			kinds = append(kinds, key)
		}
		of[key] = append(of[key], i)
	}
	var groups []Instance
	for _, key := range kinds {
		var names []string
		for _, i := range of[key] {
			names = append(names, i.Name)
		}
		slices.Sort(names)
		groups = append(groups, GroupOf(of[key][0], names))
	}
	return groups
}

// checkGroups holds instances that stand for several processes against these.
func checkGroups(t *testing.T, instances []Instance, wanted bool, s Settings, now time.Time) {
	t.Helper()
	groups := grouped(instances)
	flat := slices.Collect(Each(groups))
	described := func(instances []Instance) []string {
		var all []string
		for _, i := range instances {
			all = append(all, fmt.Sprintf("%+v", i))
		}
		slices.Sort(all)
		return all
	}
	if want, got := described(instances), described(flat); !slices.Equal(want, got) {
		t.Fatalf("the groups stand for others: %s", gocmp.Diff(want, got))
	}
	count := 0
	for _, g := range groups {
		count += g.Count()
		for name := range g.Names() {
			if !g.Has(name) {
				t.Fatalf("%s is not in its group %+v", name, g)
			}
		}
		if g.Has("") || g.Has("~") {
			t.Fatalf("others are in the group %+v", g)
		}
	}
	if count != len(instances) {
		t.Fatalf("the groups have %d instances, want %d", count, len(instances))
	}
	for what, diff := range map[string]string{
		"rows":         gocmp.Diff(Aggregate(flat, s, now), Aggregate(groups, s, now)),
		"waited for":   gocmp.Diff(Waiting(flat, wanted, start, s, now), Waiting(groups, wanted, start, s, now)),
		"differing":    gocmp.Diff(Differing(flat, wanted), Differing(groups, wanted)),
		"not reported": gocmp.Diff(Missing(flat), Missing(groups)),
	} {
		if diff != "" {
			t.Fatalf("%s: groups give others (-one by one +groups):\n%s", what, diff)
		}
	}
}

// kubelets are many of one kind and some of others.
func kubelets() []byte {
	var data []byte
	for n := range 40 {
		data = append(data, 1, byte(n), byte(n/30), 0b101001|byte(n%7/6)<<1, 0x80, 0, 1)
	}
	return data
}

// FuzzUses compares with counting and asking one instance after the other, and each
// one by itself with groups.
func FuzzUses(f *testing.F) {
	foundUses(f)
	f.Add([]byte{}, uint16(300), uint16(60), uint16(0), false, false)
	f.Add(kubelets(), uint16(300), uint16(60), uint16(0), true, false)
	f.Add(kubelets(), uint16(1), uint16(60), uint16(40), false, false)
	f.Add(manyOf(2, 3), uint16(300), uint16(60), uint16(10), true, false)
	f.Add(manyOf(3, 250), uint16(0), uint16(0), uint16(400), true, true)
	f.Add(manyOf(20, 20), uint16(1), uint16(1), uint16(1), false, true)
	f.Add(manyOf(250, 2), uint16(9), uint16(9), uint16(9), false, false)
	f.Add(manyOf(256, 2), uint16(9), uint16(9), uint16(9), true, false)
	f.Add(manyOf(2, 256), uint16(9), uint16(9), uint16(9), true, false)
	f.Add([]byte("c\x01\x02\x03\x80\x00\x00c\x01\x02\x01\x7f\xff\x00c\x02\x02\x0f\x80\x01\x01"), uint16(5), uint16(5), uint16(5), true, true)
	f.Fuzz(func(t *testing.T, data []byte, grace, period, after uint16, wanted, full bool) {
		instances := instancesOf(data)
		before := slices.Clone(instances)
		s := Settings{Grace: time.Duration(grace) * time.Second, ReportPeriod: time.Duration(period) * time.Second, RequireFullCoverage: full}
		now := start.Add(time.Duration(after) * time.Second)
		rows := Aggregate(instances, s, now)
		checkRows(t, instances, rows, s, now)
		wait := Waiting(instances, wanted, start, s, now)
		if diff := gocmp.Diff(naiveWait(instances, wanted, s, now), wait); diff != "" {
			t.Fatalf("opposing (-want +got):\n%s", diff)
		}
		if diff := gocmp.Diff(before, instances); diff != "" {
			t.Fatalf("what was given has changed:\n%s", diff)
		}
		checkGroups(t, instances, wanted, s, now)
		slices.Reverse(instances)
		if diff := gocmp.Diff(rows, Aggregate(instances, s, now)); diff != "" {
			t.Fatalf("in another order it counts otherwise:\n%s", diff)
		}
		if diff := gocmp.Diff(wait, Waiting(instances, wanted, start, s, now)); diff != "" {
			t.Fatalf("in another order others are waited for:\n%s", diff)
		}
	})
}

// checkRows holds the rows against the instances that they count.
func checkRows(t *testing.T, instances []Instance, rows []v1alpha1.FeatureUse, s Settings, now time.Time) {
	t.Helper()
	order := func(u v1alpha1.FeatureUse) []string {
		value := "unknown"
		if u.Enabled != nil {
			value = map[bool]string{true: "on", false: "off"}[*u.Enabled]
		}
		return []string{u.Component, u.Version, value}
	}
	if len(rows) > MaxRows {
		t.Fatalf("%d rows", len(rows))
	}
	for i := range rows[min(1, len(rows)):] {
		if slices.Compare(order(rows[i]), order(rows[i+1])) >= 0 {
			t.Fatalf("%v comes before %v", order(rows[i]), order(rows[i+1]))
		}
	}
	var count, expected, stale, members int
	for _, i := range instances {
		switch expired := !i.Alive && now.Sub(i.Since) >= s.Grace; {
		case i.Potential || i.Starting:
			continue
		case !i.Reported:
			expected++
		case expired:
			stale++
		default:
			count++
			if i.Expected {
				expected++
			}
		}
		members++
	}
	for _, row := range rows {
		count, expected, stale = count-int(row.Count), expected-int(row.Expected), stale-int(row.Stale)
		var of []string
		for _, i := range instances {
			inRow := !i.Potential && !i.Starting && i.Reported == (row.Enabled != nil) && (!i.Reported || *row.Enabled == i.Enabled) &&
				(row.Component == i.Component || row.Component == others) && (row.Version == i.Version || row.Version == "")
			if inRow {
				of = append(of, i.Name)
			}
		}
		if len(row.Examples) > MaxExamples || len(row.Examples) == 0 {
			t.Fatalf("the row %v has %d examples", order(row), len(row.Examples))
		}
		for _, example := range row.Examples {
			if !slices.Contains(of, example) {
				t.Fatalf("the row %v names %s, which is not of it", order(row), example)
			}
		}
		members -= int(row.Count + row.Stale)
		if row.Enabled == nil {
			members -= int(row.Expected)
		}
	}
	if count != 0 || expected != 0 || stale != 0 || members != 0 {
		t.Fatalf("counted are too few (or, below 0, too many): %d live, %d expected, %d stale, %d in all", count, expected, stale, members)
	}
}

// naiveWait evaluates each instance.
func naiveWait(instances []Instance, wanted bool, s Settings, now time.Time) Wait {
	var wait Wait
	for _, i := range slices.SortedStableFunc(slices.Values(instances), func(a, b Instance) int {
		return cmp.Or(cmp.Compare(a.Component, b.Component), cmp.Compare(a.Name, b.Name))
	}) {
		from := i.Since
		if from.Before(start) && (!i.Reported || i.Potential) {
			from = start
		}
		var period time.Duration
		limited := true
		switch {
		case !i.Reported:
			period, limited = s.Grace, !s.RequireFullCoverage
		case i.Enabled == wanted, i.Potential && !i.Alive:
			continue
		case i.Potential:
			period = s.ReportPeriod
		case i.Alive:
			limited = false
		default:
			period = s.Grace
		}
		end := from.Add(period)
		if limited && !now.Before(end) {
			continue
		}
		if limited && (wait.Until.IsZero() || end.Before(wait.Until)) {
			wait.Until = end
		}
		list := &wait.Opposing
		if !i.Reported {
			list = &wait.Missing
		}
		*list = append(*list, i.Component+"/"+i.Name)
	}
	return wait
}

func TestAggregateRowsBounded(t *testing.T) {
	for name, tc := range map[string]struct {
		components, versions, rows int
		first                      v1alpha1.FeatureUse
	}{
		"as many as there may be": {components: 10, versions: 20, rows: 200, first: v1alpha1.FeatureUse{Component: "c0", Enabled: &on, Count: 1, Expected: 1, Examples: []string{"n0"}}},
		"a component that says ever new versions": {components: 1, versions: 201, rows: 1,
			first: v1alpha1.FeatureUse{Component: "c0", Enabled: &on, Count: 201, Expected: 201, Examples: []string{"n0", "n1", "n10", "n100", "n101"}}},
		"many components with some versions": {components: 20, versions: 11, rows: 20,
			first: v1alpha1.FeatureUse{Component: "c0", Enabled: &on, Count: 11, Expected: 11, Examples: []string{"n0", "n1", "n10", "n2", "n3"}}},
		"too many components": {components: 201, versions: 1, rows: 1,
			first: v1alpha1.FeatureUse{Component: others, Enabled: &on, Count: 201, Expected: 201, Examples: []string{"n0", "n0", "n0", "n0", "n0"}}},
	} {
		t.Run(name, func(t *testing.T) {
			rows := Aggregate(instancesOf(manyOf(tc.components, tc.versions)), settings, start)
			if len(rows) != tc.rows {
				t.Fatalf("%d rows, want %d", len(rows), tc.rows)
			}
			if diff := gocmp.Diff(tc.first, rows[0]); diff != "" {
				t.Errorf("the first row (-want +got):\n%s", diff)
			}
		})
	}
}
