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

package clear

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"path"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/client-go/applyconfigurations"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"

	"k8s.io/kubernetes-features/test/benchmark/measure"
	"k8s.io/kubernetes-features/test/benchmark/result"
)

func TestObjectsAreReadAsTheyWereStored(t *testing.T) {
	for _, k := range []kind{small, large} {
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
	if got := intstr.FromInt32(2); !cmp.Equal(&got, small.template().Spec.UpdateStrategy.RollingUpdate.MaxUnavailable) {
		t.Error("the field has another value than 2")
	}
}

func TestRemainingObjectsFail(t *testing.T) {
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

// TestLargeObjectsHaveNamedSize adds the managed fields that a server stores.
// What it fills in itself is not there; the benchmark looks at the size again.
func TestLargeObjectsHaveNamedSize(t *testing.T) {
	object := large.template()
	object.UID = uuid.NewUUID()
	object.TypeMeta = metav1.TypeMeta{APIVersion: "apps/v1", Kind: "StatefulSet"}
	typed, err := applyconfigurations.NewTypeConverter(scheme.Scheme).ObjectToTyped(object)
	if err != nil {
		t.Fatal(err)
	}
	fields, err := typed.ToFieldSet()
	if err != nil {
		t.Fatal(err)
	}
	raw, err := fields.ToJSON()
	if err != nil {
		t.Fatal(err)
	}
	object.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "scale", Operation: metav1.ManagedFieldsOperationUpdate, APIVersion: "apps/v1", FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(string(raw))}}
	data, err := encode(oldVersion, object)
	if err != nil {
		t.Fatal(err)
	}
	if err := large.fits(len(data)); err != nil {
		t.Error(err)
	}
}

// TestEachObjectIsCountedOnce feeds writes of 10 objects, of which the first is written
// again and again.
func TestEachObjectIsCountedOnce(t *testing.T) {
	const objects = 10
	for name, last := range map[string]int{"all": objects, "all but one": objects - 1} {
		events := make(chan clientv3.WatchResponse, 100)
		write := func(version int64) {
			events <- clientv3.WatchResponse{Events: []*clientv3.Event{{Kv: &mvccpb.KeyValue{Version: version}}}}
		}
		for range objects {
			write(3)
		}
		for range last {
			write(2)
		}
		close(events)
		var marks []string
		c := &curve{done: make(chan error, 1)}
		c.done <- c.follow(events, objects, func() { marks = append(marks, "first") }, func() { marks = append(marks, "last") })
		whole := c.wait(func() {}) == nil
		if want := last == objects; whole != want || len(marks) == 2 != want || marks[0] != "first" {
			t.Errorf("%s: it is whole: %t, with the marks %v", name, whole, marks)
		}
	}
}

func TestOversizedRunRefused(t *testing.T) {
	for _, n := range LargeDefaults().Sizes {
		if err := room(n, large.bytes, 16<<30); err != nil {
			t.Error(err)
		}
	}
	if err := room(100_000, large.bytes, 24<<30); err == nil || !strings.Contains(err.Error(), "24.0 GiB") {
		t.Errorf("100,000 large objects on 24 GiB: %v", err)
	}
	if err := room(100_000, large.bytes, 64<<30); err != nil {
		t.Errorf("100,000 large objects on 64 GiB: %v", err)
	}
	if got, want := quota(100_000*large.bytes), 5*100_000*large.bytes/2; got != want {
		t.Errorf("etcd's quota for them is %d bytes, want %d", got, want)
	}
	for _, o := range []Options{{kind: large, Sizes: []int{1 << 30}, Workers: []int{1}, Repetitions: 1}, {Sizes: []int{1}, Repetitions: 1}, {Sizes: []int{1}, Workers: []int{1}}} {
		if _, err := Run(t.Context(), nil, o); err == nil {
			t.Errorf("%+v can be run", o)
		}
	}
}

// TestPatienceIsEnoughForTheMigrator holds it against the migrator's slowest rate that
// was seen, after its wait.
func TestPatienceIsEnoughForTheMigrator(t *testing.T) {
	const waits = 90 * time.Second
	for slowest, sizes := range map[int][]int{50: Defaults().Sizes, 36: LargeDefaults().Sizes} {
		for _, n := range sizes {
			if took := waits + time.Duration(n)*time.Second/time.Duration(slowest); patience(n) < 3*took/2 {
				t.Errorf("%d objects may take %s, and the migrator takes %s", n, patience(n), took)
			}
		}
	}
}

// took makes a run with a rate while writing, which took so many seconds in all.
func took(m method, k kind, objects int, rate, total float64, p99 time.Duration, alive int64) run {
	begun := time.Unix(0, 0)
	var latencies measure.Latencies
	latencies.Record(p99)
	d := latencies.Take()
	return run{
		method: m, kind: k, objects: objects, bytes: 1000, total: time.Duration(total * float64(time.Second)),
		curve: &curve{from: begun, to: begun.Add(time.Duration(float64(objects) * (to - from) / rate * float64(time.Second)))},
		rest:  measure.ForegroundStats{All: d}, during: measure.ForegroundStats{All: d}, apiserver: measure.Usage{HeapPeak: alive << 20}, rested: 50 << 20, cpu: time.Second,
	}
}

// example are two repetitions with 1,000 objects and one with 9,000.
// The second repetition is half as fast as the first, and the other plain client is the
// fastest.
func example() *found {
	ms := time.Millisecond
	return &found{
		rounds: []round{
			{
				took(ours, small, 1000, 800, 2, 10*ms, 110), took(migrator, small, 1000, 200, 20, 20*ms, 100),
				took(patches(4), small, 1000, 500, 3, 5*ms, 100), took(patches(16), small, 1000, 1000, 2, 9*ms, 104),
			},
			{
				took(migrator, small, 1000, 100, 40, 40*ms, 100), took(patches(4), small, 1000, 400, 3, 5*ms, 100),
				took(patches(16), small, 1000, 350, 2, 9*ms, 100), took(ours, small, 1000, 480, 5, 30*ms, 120),
			},
			{
				took(patches(16), small, 9000, 800, 12, 9*ms, 300), took(ours, small, 9000, 800, 15, 16*ms, 330), took(migrator, small, 9000, 100, 180, 8*ms, 290),
				took(oneKey, small, 9000, 1600, 6, ms, 290), took(manyKeys, small, 9000, 3200, 3, ms, 290), took(throughAPI, small, 9000, 400, 30, ms, 290),
			},
		},
		sweep:  []run{took(patches(1), small, 1000, 100, 10, ms, 100)},
		counts: []count{{"Pods", 9000, 20 * time.Second, time.Second}},
	}
}

func TestBudgetsCompareRunsOfOneRepetition(t *testing.T) {
	r := report(example(), Options{kind: small, Sizes: []int{1000, 9000}, Workers: []int{4, 16}, Repetitions: 2})
	r.Name = "clear"
	if err := r.Validate(); err != nil {
		t.Fatal(err)
	}
	got := map[string]float64{}
	for _, b := range r.Budgets {
		got[b.Text] = float64(int(b.Measured*1000+0.5)) / 1000
	}
	if diff := cmp.Diff(map[string]float64{
		"rate of the plain patch client, 1,000 small StatefulSets":                                                      1,     // of 0.8 and 1.2
		"rate of the migrator, 1,000 small StatefulSets":                                                                4.4,   // of 4 and 4.8
		"rate of the migrator from the request, 1,000 small StatefulSets":                                               9,     // of 10 and 8
		"p99 of other clients, of that beside the migrator, 1,000 small StatefulSets":                                   0.625, // of 0.5 and 0.75
		"rate of the plain patch client, 9,000 small StatefulSets":                                                      1,
		"rate of the migrator, 9,000 small StatefulSets":                                                                8,
		"rate of the migrator from the request, 9,000 small StatefulSets":                                               12,
		"p99 of other clients, of that beside the migrator, 9,000 small StatefulSets":                                   2,
		"rate of guarded etcd writes, one key per transaction, 9,000 small StatefulSets":                                0.5,
		"kube-apiserver's processor time for an object, of that under the plain patch client, 1,000 small StatefulSets": 1,
		"kube-apiserver's processor time for an object, of that under the plain patch client, 9,000 small StatefulSets": 1,
		"processor time of counting in storage, of that through the API, 9,000 Pods":                                    0.05,
		"live heap above that at rest flat from 1,000 to 9,000 small StatefulSets":                                      215, // 280 more, 65 (of 60 and 70) before
		"live heap flat from 1,000 to 9,000 small StatefulSets":                                                         17,  // 30 more, 13 (of 6 and 20) before
		"resident memory flat from 1,000 to 9,000 small StatefulSets":                                                   0,
	}, got); diff != "" {
		t.Error(diff)
	}
	for text, want := range map[string]string{
		"rate of the plain patch client, 1,000 small StatefulSets": "median, lowest and highest of the ratios of 2 repetitions",
		"rate of the plain patch client, 9,000 small StatefulSets": "one run of each",
	} {
		for _, b := range r.Budgets {
			if b.Text != text {
				continue
			}
			if !strings.Contains(b.How, want) {
				t.Errorf("%s: %q does not say %q", text, b.How, want)
			}
			if repeated := strings.Contains(want, "2 repetitions"); repeated != (b.Low < b.Measured && b.Measured < b.High) || repeated == b.Once {
				t.Errorf("%s: %v is between %v and %v, once: %t", text, b.Measured, b.Low, b.High, b.Once)
			}
		}
	}
	if diff := cmp.Diff([]result.Limit{
		{Text: "patches of a client that does nothing else, 1,000 small StatefulSets, medians of both", Limit: 700, Ours: 640, Unit: "objects/s"},
		{Text: "patches of a client that does nothing else, 9,000 small StatefulSets", Limit: 800, Ours: 800, Unit: "objects/s"},
		{Text: "guarded writes of etcd alone, one key per transaction, 9,000 small StatefulSets", Limit: 1600, Ours: 800, Unit: "objects/s"},
		{Text: "guarded writes of etcd alone, many keys per transaction, 9,000 small StatefulSets", Limit: 3200, Ours: 800, Unit: "objects/s"},
	}, r.Limits, cmpopts.EquateApprox(0, 0.001)); diff != "" {
		t.Error(diff)
	}
	workers := r.Tables[len(r.Tables)-1]
	var of []float64
	for _, row := range workers.Rows {
		n, _ := row[0].Value()
		of = append(of, n)
	}
	if diff := cmp.Diff([]float64{1, 4, 16}, of); diff != "" {
		t.Errorf("the table of workers has others: %s", diff)
	}
}

// TestMemoryThatGrowsWithObjectsIsFound: a ratio of ours and the plain client's would stay
// the same, and between the fewest and the most objects memory may be higher than with either.
func TestMemoryThatGrowsWithObjectsIsFound(t *testing.T) {
	for alive, met := range map[int64]bool{300 + 13 + heapAllowed: true, 300 + 13 + heapAllowed + 1: false, 100: true} {
		f := example()
		f.rounds[2][1].apiserver.HeapPeak = alive << 20
		f.rounds = append(f.rounds, round{took(ours, small, 27000, 800, 15, time.Millisecond, 500), took(patches(16), small, 27000, 800, 12, time.Millisecond, 600)})
		r := &result.Result{}
		growth(r, &result.Table{}, collections(f.rounds))
		if got := r.Budgets[1]; got.Met() != met {
			t.Errorf("with %d MiB of the plain client's 300 it is met: %t; %+v", alive, got.Met(), got)
		}
	}
	f := example()
	f.rounds[2][1].apiserver.RSSPeak = (residentAllowed + 1) << 20
	r := &result.Result{}
	growth(r, &result.Table{}, collections(f.rounds))
	if got := r.Budgets[2]; got.Met() {
		t.Errorf("resident memory grew, and the budget is met: %+v", got)
	}
}

// TestTargetsShowMissedOnes has rows that are met, missed and only shown.
func TestTargetsShowMissedOnes(t *testing.T) {
	r := report(example(), Options{kind: small, Sizes: []int{1000, 9000}, Workers: []int{4, 16}, Repetitions: 2, Counted: 9000})
	got := map[string]string{}
	for _, row := range r.Tables[0].Rows {
		if row[1].String() == "9,000" {
			got[row[0].String()] = fmt.Sprintf("%s beside %s %s: %s, wanted %s, %s", row[2], row[3], row[4], row[5], row[6], row[7])
		}
	}
	for what, want := range map[string]string{
		"rate of the plain patch client":                                           "800 beside 800 objects/s: 1, wanted ≥ 8 ×, missed once",
		"rate of guarded etcd writes, one key per transaction":                     "800 beside 1,600 objects/s: 0.5, wanted ≥ 0.3 ×, met once",
		"rate of guarded etcd writes, many keys per transaction":                   "800 beside 3,200 objects/s: 0.25, wanted , ",
		"rate of clearing through the API":                                         "800 beside 400 objects/s: 2, wanted , ",
		"rate of the migrator from the request":                                    "600 beside 50 objects/s: 12, wanted ≥ 10 ×, met once",
		heapRow:                                                                    "330 beside 50 MiB: 6.60, wanted , ",
		"processor time of counting Pods, of that through the API":                 "1 beside 20 s: 0.05, wanted ≤ 0.1 ×, met once",
		"live heap above that at rest flat from 1,000 to 9,000 small StatefulSets": "280 beside 65 MiB: 4.31, wanted ≤ 50 MiB more, missed",
	} {
		if got[what] != want {
			t.Errorf("%s: %q, want %q", what, got[what], want)
		}
	}
}

func TestTransactionsFitIntoRequests(t *testing.T) {
	for name, tc := range map[string]struct{ objects, bytes, most, want int }{
		"as many as are wanted":                 {500, 1600, 120, 120},
		"those that are left":                   {7, 1600, 120, 7},
		"fewer when they are large":             {500, 20 << 10, 120, 69},
		"one that is too large on its own":      {2, 2 << 20, 120, 1},
		"one where one is wanted, large or not": {2, 20 << 10, 1, 1},
	} {
		var objects []*mvccpb.KeyValue
		for range tc.objects {
			objects = append(objects, &mvccpb.KeyValue{Key: []byte("/registry/a/b"), Value: make([]byte, tc.bytes)})
		}
		if got := fitting(objects, tc.most); got != tc.want {
			t.Errorf("%s: %d, want %d", name, got, tc.want)
		}
	}
}

func TestWorkersEndWithTheFirstError(t *testing.T) {
	wrong := errors.New("wrong")
	handled := 0
	err := spread(t.Context(), 1, 0, func(_ context.Context, n int) error {
		if handled++; n == 2 {
			return wrong
		}
		return nil
	}, func(_ context.Context, give func(int) error) error {
		for n := 0; ; n++ {
			if err := give(n); err != nil {
				return err
			}
		}
	})
	if !errors.Is(err, wrong) || handled != 3 {
		t.Errorf("the error is %v after %d", err, handled)
	}
}

func TestCountingIsBeyondAStartThatCountsNothing(t *testing.T) {
	fewest := starts{idle: 5 * time.Second, api: 7 * time.Second, storage: 6 * time.Second}
	many := starts{idle: 9 * time.Second, api: 21 * time.Second, storage: 10 * time.Second}
	api, storage := func(s starts) time.Duration { return s.api }, func(s starts) time.Duration { return s.storage }
	if got, want := many.beyond(fewest, api), 10*time.Second; got != want {
		t.Errorf("the API takes %s, want %s", got, want)
	}
	if got, want := many.beyond(fewest, storage), measure.Tick; got != want {
		t.Errorf("what is lost in noise is %s, want %s", got, want)
	}
}

// TestPodsAreCopies: each has its own name and uid, and the field.
func TestPodsAreCopies(t *testing.T) {
	template := &corev1.Pod{Status: corev1.PodStatus{AllocatedResources: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("100m")}}}
	next := podsLike(template).next()
	seen := map[string]bool{}
	for i := range 2 {
		name, data, err := next(i)
		if err != nil {
			t.Fatal(err)
		}
		unknown, err := unwrap(data)
		if err != nil {
			t.Fatal(err)
		}
		got := &corev1.Pod{}
		if err := got.Unmarshal(unknown.Raw); err != nil {
			t.Fatal(err)
		}
		if unknown.Kind != "Pod" || got.Name != name || len(got.Status.AllocatedResources) != 1 {
			t.Errorf("%s is stored as a %s %+v", name, unknown.Kind, got)
		}
		seen[got.Name+string(got.UID)] = true
	}
	if len(seen) != 2 {
		t.Errorf("copies are alike: %v", seen)
	}
}

// TestIdleTimeNotCountedAsWriting has a server that uses half a core at rest.
func TestIdleTimeNotCountedAsWriting(t *testing.T) {
	r := took(ours, small, 1000, 96, 20, time.Millisecond, 100)
	r.cpu, r.allCPU, r.atRest = 9*time.Second, 15*time.Second, 0.5
	// 960 objects were written in 10 s.
	if got, want := r.perObject(), 4000.0/960; math.Abs(got-want) > 1e-9 {
		t.Errorf("an object costs %v ms, want %v", got, want)
	}
	if got, want := r.wholePerObject(), 5.0; math.Abs(got-want) > 1e-9 {
		t.Errorf("an object costs %v ms from the request to done, want %v", got, want)
	}
}

func TestChartsShowOursAndPeersTogether(t *testing.T) {
	r := report(example(), Options{kind: small, Sizes: []int{1000, 9000}, Workers: []int{4, 16}, Repetitions: 2})
	got := map[string]string{}
	for _, c := range r.Charts {
		var series []string
		for _, s := range c.Series {
			series = append(series, fmt.Sprintf("%s %d", s.Role, len(s.Points)))
		}
		got[c.Name] = strings.Join(series, ", ")
	}
	const all = "ours 2, peer 2, limit 2"
	if diff := cmp.Diff(map[string]string{
		"rate": all, "whole": all, "others": all, "memory": all, "workers": "limit 3, ours 1",
	}, got); diff != "" {
		t.Error(diff)
	}
	// Clearing is drawn where the plain client was the fastest in the median.
	workers := r.Charts[slices.IndexFunc(r.Charts, func(c *result.Chart) bool { return c.Name == "workers" })]
	if p := workers.Series[1].Points[0]; p.X != 16 {
		t.Errorf("the fastest client has %v workers", p.X)
	}
	if p := r.Charts[0].Series[0].Points; p[0].Low >= p[0].Y || p[0].High <= p[0].Y || p[1].Low != 0 {
		t.Errorf("the points are %+v", p)
	}
}

// TestThePlainClientContinuesWhenThePastIsForgotten compacts after the first page and after the
// second.
func TestThePlainClientContinuesWhenThePastIsForgotten(t *testing.T) {
	pages := map[string]struct{ name, next string }{
		"": {"one", "old"}, "present": {"two", "old again"}, "present again": {"three", ""},
	}
	expired := map[string]string{"old": "present", "old again": "present again"}
	var mu sync.Mutex
	var patched []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var answer any
		code := http.StatusOK
		switch token := r.URL.Query().Get("continue"); {
		case r.Method == http.MethodPatch:
			mu.Lock()
			patched = append(patched, path.Base(r.URL.Path))
			mu.Unlock()
			answer = metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: "meta.k8s.io/v1", Kind: "PartialObjectMetadata"}}
		case expired[token] != "":
			err := apierrors.NewResourceExpired("the token is too old")
			err.ErrStatus.TypeMeta, err.ErrStatus.Continue = metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, expired[token]
			answer, code = err.ErrStatus, http.StatusGone
		default:
			page := pages[token]
			answer = metav1.PartialObjectMetadataList{
				TypeMeta: metav1.TypeMeta{APIVersion: "meta.k8s.io/v1", Kind: "PartialObjectMetadataList"}, ListMeta: metav1.ListMeta{Continue: page.next},
				Items: []metav1.PartialObjectMetadata{{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: page.name}}},
			}
		}
		w.Header().Set("Content-Type", runtime.ContentTypeJSON)
		w.WriteHeader(code)
		if err := json.NewEncoder(w).Encode(answer); err != nil {
			t.Error(err)
		}
	}))
	defer server.Close()
	client, err := metadata.NewForConfig(&rest.Config{Host: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	if err := patchAll(t.Context(), &world{plain: client}, 2); err != nil {
		t.Fatal(err)
	}
	slices.Sort(patched)
	if diff := cmp.Diff([]string{"one", "three", "two"}, patched); diff != "" {
		t.Error(diff)
	}
	for err, want := range map[error]string{nil: "", errors.New("no status"): "", apierrors.NewBadRequest("bad"): "", apierrors.NewResourceExpired("no token"): ""} {
		if got := present(err); got != want {
			t.Errorf("%v is gone on after with %q", err, got)
		}
	}
}
