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

// plans answers with what it was asked, or with an error.
type plans struct{ err error }

func (p plans) Plan(_ context.Context, feature string, request *v1alpha1.FeaturePlan) (*v1alpha1.FeaturePlanStatus, error) {
	if p.err != nil {
		return nil, p.err
	}
	return &v1alpha1.FeaturePlanStatus{Blockers: []string{fmt.Sprintf("%s=%t", feature, *request.Spec.Enabled)}}, nil
}

func TestPlans(t *testing.T) {
	const question = "/features/plan?feature=WidgetColor&enabled=false"
	for sentence, test := range map[string]struct {
		method, url string
		err         error
		code        int
		says        string
	}{
		"a plan":                             {"GET", question, nil, 200, "WidgetColor=false"},
		"the other value":                    {"GET", "/features/plan?feature=WidgetColor&enabled=true", nil, 200, "WidgetColor=true"},
		"a request that would change things": {"POST", question, nil, 405, "POST is not allowed"},
		"no feature":                         {"GET", "/features/plan?enabled=false", nil, 400, "say which feature and which value"},
		"no value":                           {"GET", "/features/plan?feature=WidgetColor", nil, 400, "say which feature and which value"},
		"a value that is none":               {"GET", "/features/plan?feature=WidgetColor&enabled=perhaps", nil, 400, "say which feature and which value"},
		"a replica that has just started":    {"GET", question, fmt.Errorf("feature WidgetColor in namespace widgets: %w", operator.ErrNotRunning), 503, "does not run"},
		"a feature that there is not":        {"GET", "/features/plan?feature=Gadgets&enabled=true", apierrors.NewNotFound(v1alpha1.Resource("features"), "Gadgets"), 404, `"Gadgets" not found`},
		"a server that cannot be reached":    {"GET", question, errors.New("connection refused"), 500, "connection refused"},
	} {
		t.Run(sentence, func(t *testing.T) {
			answer := httptest.NewRecorder()
			planHandler{namespace: "widgets", flow: plans{test.err}}.ServeHTTP(answer, httptest.NewRequestWithContext(t.Context(), test.method, test.url, nil))
			if answer.Code != test.code || !strings.Contains(answer.Body.String(), test.says) {
				t.Errorf("the answer is %d %s, want %d and %q", answer.Code, answer.Body, test.code, test.says)
			}
			if test.code != http.StatusOK {
				return
			}
			var plan v1alpha1.FeaturePlan
			if err := json.Unmarshal(answer.Body.Bytes(), &plan); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff([]string{"FeaturePlan", "features.k8s.io/v1alpha1", "widgets", "WidgetColor", test.says},
				[]string{plan.Kind, plan.APIVersion, plan.Namespace, plan.Name, strings.Join(plan.Status.Blockers, " ")}); diff != "" {
				t.Errorf("the plan (-want +got):\n%s", diff)
			}
		})
	}
}
