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
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/feature-lifecycle/operator"
)

// cleanups notes what it was asked for, and answers or fails.
type cleanups struct {
	err   error
	asked []string
}

func (c *cleanups) Clean(_ context.Context, feature string) (*v1alpha1.FeatureCleanupStatus, error) {
	c.asked = append(c.asked, feature)
	if c.err != nil {
		return nil, c.err
	}
	return &v1alpha1.FeatureCleanupStatus{TransitionID: "t-1", Tasks: []v1alpha1.FeatureTask{{Name: v1alpha1.TaskWaitForUses}}}, nil
}

func TestCleanUps(t *testing.T) {
	const request = "/features/clean?feature=WidgetColor"
	for sentence, test := range map[string]struct {
		method, url string
		// site is what browsers say of the page that asks, "" for what is no browser.
		site string
		err  error
		code int
		says string
		// asked is true if the server flow is.
		asked bool
	}{
		"a clean-up":                      {method: "POST", url: request, code: 200, says: "t-1", asked: true},
		"a page of another site":          {method: "POST", url: request, site: "cross-site", code: 403, says: "cross-origin"},
		"a look":                          {method: "GET", url: request, code: 405, says: "GET is not allowed"},
		"no feature":                      {method: "POST", url: "/features/clean", code: 400, says: "say which feature"},
		"nothing is left":                 {method: "POST", url: request, err: apierrors.NewConflict(v1alpha1.Resource("features"), "WidgetColor", errors.New("nothing is left of the feature")), code: 409, says: "nothing is left", asked: true},
		"a replica that has just started": {method: "POST", url: request, err: fmt.Errorf("feature WidgetColor in namespace widgets: %w", operator.ErrNotRunning), code: 503, says: "does not run", asked: true},
	} {
		t.Run(sentence, func(t *testing.T) {
			flow := &cleanups{err: test.err}
			answer := httptest.NewRecorder()
			sent := httptest.NewRequestWithContext(t.Context(), test.method, test.url, nil)
			if test.site != "" {
				sent.Header.Set("Sec-Fetch-Site", test.site)
			}
			clean("widgets", flow).ServeHTTP(answer, sent)
			if answer.Code != test.code || !strings.Contains(answer.Body.String(), test.says) {
				t.Errorf("the answer is %d %s, want %d and %q", answer.Code, answer.Body, test.code, test.says)
			}
			if asked := len(flow.asked) > 0; asked != test.asked || asked && flow.asked[0] != "WidgetColor" {
				t.Errorf("the server flow was asked for %v, want that: %t", flow.asked, test.asked)
			}
			if test.code != http.StatusOK {
				return
			}
			var cleanup v1alpha1.FeatureCleanup
			if err := json.Unmarshal(answer.Body.Bytes(), &cleanup); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff([]string{"FeatureCleanup", "features.k8s.io/v1alpha1", "widgets", "WidgetColor", "t-1"},
				[]string{cleanup.Kind, cleanup.APIVersion, cleanup.Namespace, cleanup.Name, cleanup.Status.TransitionID}); diff != "" {
				t.Errorf("the answer (-want +got):\n%s", diff)
			}
		})
	}
}
