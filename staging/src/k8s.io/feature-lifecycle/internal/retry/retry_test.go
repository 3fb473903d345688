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

package retry

import (
	"errors"
	"fmt"
	"net/http"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"pgregory.net/rapid"
)

func TestBackoff(t *testing.T) {
	for failures, want := range map[int]time.Duration{1: time.Second, 2: 2 * time.Second, 3: 4 * time.Second, 7: time.Minute, 8: time.Minute, 1 << 40: time.Minute} {
		for range 100 {
			if got := Backoff(failures, time.Second, time.Minute); got <= want/2 || got > want {
				t.Fatalf("after %d failures the pause is %v, want more than %v and at most %v", failures, got, want/2, want)
			}
		}
	}
	if got := Backoff(1, time.Minute, time.Second); got > time.Second {
		t.Errorf("the first pause is longer than the longest: %v", got)
	}
}

// TestACrowdIsSpread: who is turned away together does not come back together.
func TestACrowdIsSpread(t *testing.T) {
	turnedAway, unavailable := apierrors.NewTooManyRequestsError("later"), apierrors.NewServiceUnavailable("later")
	for failures, want := range map[int][2]time.Duration{1: {leastCrowd, CrowdBackoff}, 2: {leastCrowd, 2 * CrowdBackoff}, 3: {crowdMost / 2, crowdMost}, 1 << 40: {crowdMost / 2, crowdMost}} {
		early, late, width := 0, 0, want[1]-want[0]
		for range 1000 {
			got := After(turnedAway, failures, time.Millisecond, time.Hour)
			if got < want[0] || got >= want[1] {
				t.Fatalf("after %d failures the pause is %v, want at least %v and less than %v", failures, got, want[0], want[1])
			}
			if got < want[0]+width/4 {
				early++
			}
			if got > want[1]-width/4 {
				late++
			}
		}
		// 250 of them are expected in each quarter.
		if early < 150 || late < 150 {
			t.Errorf("after %d failures %d of 1,000 come back in the first quarter of %v and %d in the last", failures, early, want, late)
		}
	}
	if got := After(unavailable, 1, time.Millisecond, time.Hour); got > time.Millisecond {
		t.Errorf("a server in trouble is asked again after %v, as if it had too many requests", got)
	}
}

func TestJitter(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		most := time.Duration(rapid.Int64Range(-10, int64(time.Hour)).Draw(t, "most"))
		if got := Jitter(most); got < 0 || got > max(0, most-1) {
			t.Fatalf("%v of %v", got, most)
		}
	})
}

func TestWhatFailuresMean(t *testing.T) {
	resource := schema.GroupResource{Group: "features.k8s.io", Resource: "features"}
	for name, tc := range map[string]struct {
		err              error
		missing, refused bool
	}{
		"not found":    {err: apierrors.NewNotFound(resource, "x"), missing: true},
		"forbidden":    {err: apierrors.NewForbidden(resource, "x", errors.New("no")), refused: true},
		"unauthorized": {err: fmt.Errorf("listing: %w", apierrors.NewUnauthorized("who?")), refused: true},
		"bad request":  {err: apierrors.NewBadRequest("what?")},
		"unavailable":  {err: apierrors.NewServiceUnavailable("later")},
		"no answer":    {err: errors.New("connection refused")},
		"no failure":   {},
	} {
		if missing, refused := Missing(tc.err), Refused(tc.err); missing != tc.missing || refused != tc.refused {
			t.Errorf("%s: missing %t, refused %t; want %t, %t", name, missing, refused, tc.missing, tc.refused)
		}
	}
}

// TestNoAPI: what a server without the API answers is told from what one says that has it.
func TestNoAPI(t *testing.T) {
	resource := schema.GroupResource{Group: "features.k8s.io", Resource: "features"}
	lacks := apierrors.NewGenericServerResponse(http.StatusNotFound, "list", resource, "", "404 page not found", 0, true)
	for name, test := range map[string]struct {
		err  error
		want bool
	}{
		"a server without the API":  {lacks, true},
		"the same from an informer": {fmt.Errorf("failed to list: %w", lacks), true},
		"an object that is missing": {apierrors.NewNotFound(resource, "F"), false},
		"a proxy that fails":        {apierrors.NewGenericServerResponse(http.StatusBadGateway, "list", resource, "", "bad gateway", 0, true), false},
		"nobody answers":            {errors.New("connection refused"), false},
		"no error":                  {nil, false},
	} {
		if got := NoAPI(test.err); got != test.want {
			t.Errorf("%s: NoAPI is %t, want %t", name, got, test.want)
		}
	}
}
