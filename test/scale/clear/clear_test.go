//go:build linux

/*
Copyright 2026 The Kubernetes Authors.

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

package clear

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"k8s.io/kubernetes-features/test/scale/measure"
	"k8s.io/kubernetes-features/test/scale/result"
)

func TestObjectsAreReadAsTheyWereStored(t *testing.T) {
	for _, k := range kinds {
		object := k.template()
		data, err := encode(oldVersion, object)
		if err != nil {
			t.Fatal(err)
		}
		version, got, err := decode(data)
		if err != nil {
			t.Fatal(err)
		}
		if version != oldVersion {
			t.Errorf("%s are stored as %s", k.name, version)
		}
		if diff := cmp.Diff(object, got); diff != "" {
			t.Errorf("%s: %s", k.name, diff)
		}
		if !hasField(got) {
			t.Errorf("%s do not have the field", k.name)
		}
		got.Spec.UpdateStrategy.RollingUpdate.MaxUnavailable = nil
		got.Spec.UpdateStrategy.RollingUpdate.Partition = ptr.To[int32](1)
		if hasField(got) {
			t.Errorf("%s have the field after it was removed", k.name)
		}
	}
	if _, _, err := decode([]byte(`{"kind":"StatefulSet"}`)); err == nil {
		t.Error("JSON was read as protobuf")
	}
	if got := intstr.FromInt32(2); !cmp.Equal(&got, kinds[0].template().Spec.UpdateStrategy.RollingUpdate.MaxUnavailable) {
		t.Error("the field has another value than 2")
	}
}

func TestWhatIsLeftIsAnError(t *testing.T) {
	for _, tc := range []struct {
		stored            stored
		cleared, migrated bool
	}{
		{stored{objects: 3}, true, false},
		{stored{objects: 3, withField: 1}, false, false},
		{stored{objects: 3, withField: 3}, false, true},
		{stored{objects: 3, withField: 3, old: 1}, false, false},
	} {
		if got := tc.stored.cleared() == nil; got != tc.cleared {
			t.Errorf("%+v: cleared is %t", tc.stored, got)
		}
		if got := tc.stored.migrated() == nil; got != tc.migrated {
			t.Errorf("%+v: migrated is %t", tc.stored, got)
		}
	}
}

// took makes a run of so many seconds of writing and seconds in all.
func took(m method, objects int, writing, total float64, p99 time.Duration, rss int64) run {
	begun := time.Unix(0, 0)
	var latencies measure.Latencies
	latencies.Record(p99)
	d := latencies.Take()
	return run{
		method: m, kind: kinds[0], objects: objects, bytes: 1000, total: time.Duration(total * float64(time.Second)),
		curve: &curve{from: begun, to: begun.Add(time.Duration(writing * float64(time.Second)))},
		rest:  measure.ForegroundStats{All: d}, during: measure.ForegroundStats{All: d}, apiserver: measure.Usage{RSSPeak: rss},
	}
}

func TestBudgetsCompareRunsOfOneSize(t *testing.T) {
	all := methods()
	runs := []run{
		took(all[2], 1000, 1, 1, 5*time.Millisecond, 100), took(all[0], 1000, 1.25, 2, 10*time.Millisecond, 110), took(all[1], 1000, 5, 20, 20*time.Millisecond, 100),
		took(all[1], 9000, 18, 45, 8*time.Millisecond, 300), took(all[2], 9000, 9, 9, 5*time.Millisecond, 300), took(all[0], 9000, 9, 15, 10*time.Millisecond, 300),
		took(patchMethod(4), 1000, 2, 2, time.Millisecond, 100),
	}
	r := report(runs, Options{Sizes: []int{1000, 9000}, Workers: []int{4, 16}})
	r.Name = "clear"
	if err := r.Validate(); err != nil {
		t.Fatal(err)
	}
	var got []float64
	for _, b := range r.Budgets {
		got = append(got, float64(int(b.Measured*1000+0.5))/1000)
	}
	if diff := cmp.Diff([]float64{0.8, 4, 10, 0.5, 1, 2, 3, 1.25, 0.909}, got); diff != "" {
		t.Errorf("rate of patches, rate of the migrator, from the request, p99, for 1,000 and 9,000 objects, and memory: %s", diff)
	}
	if diff := cmp.Diff([]result.Limit{
		{Text: "patches of a client that does nothing else, 1,000 small StatefulSets", Limit: 960, Ours: 768, Unit: "objects/s"},
		{Text: "patches of a client that does nothing else, 9,000 small StatefulSets", Limit: 960, Ours: 960, Unit: "objects/s"},
	}, r.Limits); diff != "" {
		t.Error(diff)
	}
	workers := r.Tables[len(r.Tables)-1]
	if first, _ := workers.Rows[0][0].Value(); len(workers.Rows) != 2 || first != 4 {
		t.Errorf("the table of workers has %v", workers.Rows)
	}
}
