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

package backoff

import (
	"errors"
	"fmt"
	"net/http"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestErrorsOfServersAreClassified(t *testing.T) {
	resource := schema.GroupResource{Group: "features.k8s.io", Resource: "features"}
	for name, tc := range map[string]struct {
		err                 error
		notFound, forbidden bool
	}{
		"not found":    {err: apierrors.NewNotFound(resource, "x"), notFound: true},
		"forbidden":    {err: apierrors.NewForbidden(resource, "x", errors.New("no")), forbidden: true},
		"unauthorized": {err: fmt.Errorf("listing: %w", apierrors.NewUnauthorized("who?")), forbidden: true},
		"bad request":  {err: apierrors.NewBadRequest("what?")},
		"unavailable":  {err: apierrors.NewServiceUnavailable("later")},
		"no answer":    {err: errors.New("connection refused")},
		"no failure":   {},
	} {
		if notFound, forbidden := IsNotFound(tc.err), IsForbidden(tc.err); notFound != tc.notFound || forbidden != tc.forbidden {
			t.Errorf("%s: not found %t, forbidden %t; want %t, %t", name, notFound, forbidden, tc.notFound, tc.forbidden)
		}
	}
}

// TestAPINotServedDiffersFromMissingObject: a server with the API answers otherwise.
func TestAPINotServedDiffersFromMissingObject(t *testing.T) {
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
		"no answer":                 {errors.New("connection refused"), false},
		"no error":                  {nil, false},
	} {
		if got := IsAPINotServed(test.err); got != test.want {
			t.Errorf("%s: IsAPINotServed is %t, want %t", name, got, test.want)
		}
	}
}
