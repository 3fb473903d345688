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

package stored

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/kubernetes-features/test/e2e_features/framework"
)

// owned is an entry of managed fields.
func owned(manager, fields string) metav1.ManagedFieldsEntry {
	return metav1.ManagedFieldsEntry{Manager: manager, Operation: metav1.ManagedFieldsOperationUpdate, APIVersion: "apps/v1", FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(fields)}
}

const (
	onlyField  = `{"f:spec":{"f:updateStrategy":{"f:rollingUpdate":{"f:maxUnavailable":{}}}}}`
	alsoField  = `{"f:spec":{"f:replicas":{},"f:updateStrategy":{"f:rollingUpdate":{".":{},"f:maxUnavailable":{}}}}}`
	otherField = `{"f:spec":{"f:replicas":{},"f:updateStrategy":{"f:rollingUpdate":{}}}}`
)

// example is an object with the field, which two managers own.
func example() *appsv1.StatefulSet {
	set := framework.StatefulSet("a", intstr.FromInt32(2))
	set.Generation = 4
	set.ManagedFields = []metav1.ManagedFieldsEntry{owned("tuner", onlyField), owned("creator", alsoField)}
	return set
}

// done is the example without the field.
func done() *appsv1.StatefulSet {
	set := example()
	set.Spec.UpdateStrategy.RollingUpdate.MaxUnavailable = nil
	set.Generation = 5
	set.ManagedFields = []metav1.ManagedFieldsEntry{owned("creator", otherField)}
	return set
}

// TestDifferences: what the fault run judges by finds every mistake.
func TestDifferences(t *testing.T) {
	stored := func(set *appsv1.StatefulSet, revision int64) map[string]object {
		return map[string]object{"a": {encode(t, set), revision}}
	}
	changed := func(change func(*appsv1.StatefulSet)) map[string]object {
		set := done()
		change(set)
		return stored(set, 2)
	}
	rivals := func(set *appsv1.StatefulSet) {
		set.Annotations = map[string]string{rivalName: "7"}
		set.ManagedFields = append(set.ManagedFields, owned(rivalName, `{"f:metadata":{"f:annotations":{"f:rival":{}}}}`))
	}
	longer := stored(done(), 2)
	// A field that no version has, after all others.
	longer["a"] = object{append(longer["a"].data, 0xa0, 0x06, 1), 2}
	for name, tc := range map[string]struct {
		before, after map[string]object
		wrote         map[string]string
		want          string
	}{
		"the field is gone and nothing else":           {after: stored(done(), 2)},
		"it is gone, and another client wrote":         {after: changed(rivals), wrote: map[string]string{"a": "7"}},
		"another client's write is lost":               {after: stored(done(), 2), wrote: map[string]string{"a": "7"}, want: "lost a write"},
		"an older write of another client is stored":   {after: changed(rivals), wrote: map[string]string{"a": "8"}, want: "lost a write"},
		"the object is gone":                           {after: map[string]object{}, want: "is gone"},
		"there is a new one":                           {before: map[string]object{}, after: stored(done(), 2), want: "was not there before"},
		"the field is there":                           {after: stored(example(), 1), want: "is not what it was"},
		"a label is gone":                              {after: changed(func(s *appsv1.StatefulSet) { s.Spec.Template.Labels = nil }), want: "is not what it was"},
		"the generation is that of before":             {after: changed(func(s *appsv1.StatefulSet) { s.Generation-- }), want: "is not what it was"},
		"a manager owns the field still":               {after: changed(func(s *appsv1.StatefulSet) { s.ManagedFields = example().ManagedFields }), want: "is not what it was"},
		"a manager gained a field":                     {after: changed(func(s *appsv1.StatefulSet) { s.ManagedFields = append(s.ManagedFields, owned("x", onlyField)) }), want: "is not what it was"},
		"bytes were added that no version knows":       {after: longer, want: "in other bytes"},
		"an object without the field was not written":  {before: stored(bystander("a"), 1), after: stored(bystander("a"), 1)},
		"an object without the field was written only": {before: stored(bystander("a"), 1), after: stored(bystander("a"), 2), want: "was written"},
	} {
		t.Run(name, func(t *testing.T) {
			if tc.before == nil {
				tc.before = stored(example(), 1)
			}
			got := strings.Join(differences(t, tc.before, tc.after, tc.wrote), "; ")
			if tc.want == "" && got != "" || !strings.Contains(got, tc.want) {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

// TestWatchTakesEventsInOrder, each once, and the same ones when it began earlier.
func TestWatchTakesEventsInOrder(t *testing.T) {
	event := func(name, revision string) watch.Event {
		return watch.Event{Type: watch.Modified, Object: &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Name: name, ResourceVersion: revision}}}
	}
	for name, tc := range map[string]struct {
		event watch.Event
		place int
		ended bool
		wrong string
	}{
		"a new one":                     {event: event("c", "9"), place: 2},
		"the last one":                  {event: event("marker-1", "9"), place: 2, ended: true},
		"one that came before":          {event: event("b", "5"), place: 1},
		"another one instead":           {event: event("c", "5"), place: 1, wrong: "began again"},
		"one was left out":              {event: event("b", "5"), place: 0, wrong: "began again"},
		"one that is older":             {event: event("c", "4"), place: 2, wrong: "after"},
		"one of an unknown revision":    {event: event("c", "x"), place: 2, wrong: "resourceVersion"},
		"something that is not watched": {event: watch.Event{Type: watch.Error, Object: &metav1.Status{}}, place: 2, wrong: "Status"},
	} {
		t.Run(name, func(t *testing.T) {
			c := &watcher{marked: "marker-1", state: map[string]int64{}, events: []seen{{"a", watch.Modified, 4}, {"b", watch.Modified, 5}}}
			ended, err := c.take(tc.event, tc.place)
			if ended != tc.ended || (err == nil) != (tc.wrong == "") || err != nil && !strings.Contains(err.Error(), tc.wrong) {
				t.Errorf("ended is %t, the error %v", ended, err)
			}
		})
	}
}

// TestProgressCountsObjectsOnce, and neither bystanders nor objects that have the field.
func TestProgressCountsObjectsOnce(t *testing.T) {
	p := &progress{cleared: map[string]bool{}, news: make(chan struct{})}
	put := func(key string, set *appsv1.StatefulSet) {
		p.add(clientv3.WatchResponse{Events: []*clientv3.Event{{Type: clientv3.EventTypePut, Kv: &mvccpb.KeyValue{Key: []byte(key), Value: encode(t, set)}}}})
	}
	put("a", done())
	put("a", done())
	put("b", example())
	put("c", bystander("c"))
	if got := p.wait(t, 1); got != 1 {
		t.Errorf("%d objects are cleared, want 1", got)
	}
}

// TestCounterCountsLists and watches that begin with everything.
func TestCounterCountsLists(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	defer server.Close()
	for query, want := range map[string]int64{"": 1, "watch=true&resourceVersion=7": 0, "watch=1": 0, "watch=true&sendInitialEvents=true": 1, "limit=500": 1} {
		var lists atomic.Int64
		transport := &http.Transport{}
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL+"?"+query, nil)
		if err != nil {
			t.Fatal(err)
		}
		response, err := counter{transport, &lists}.RoundTrip(request)
		if err != nil {
			t.Fatal(err)
		}
		_ = response.Body.Close()
		transport.CloseIdleConnections()
		if diff := cmp.Diff(want, lists.Load()); diff != "" {
			t.Errorf("%q (-want +got):\n%s", query, diff)
		}
	}
}
