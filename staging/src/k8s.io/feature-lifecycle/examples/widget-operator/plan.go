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
	"net/http"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/feature-lifecycle/operator"
)

// planner is what an answer takes of the server flow; operator.Replica is one.
type planner interface {
	Plan(ctx context.Context, feature string, request *v1alpha1.FeaturePlan) (*v1alpha1.FeaturePlanStatus, error)
}

// planHandler answers what a change of a feature would do, as kubectl feature plan does
// for the features of Kubernetes:
//
//	GET /features/plan?feature=WidgetColor&enabled=false
//
// It changes nothing. Each replica can answer. Requests are not authenticated, and the
// answer names objects of its namespace, so it is for the loopback alone (README.md).
type planHandler struct {
	namespace string
	flow      planner
}

// ServeHTTP implements http.Handler.
func (h planHandler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !allows(http.MethodGet, w, r, "plans are read") {
		return
	}
	feature := r.URL.Query().Get("feature")
	enabled, err := strconv.ParseBool(r.URL.Query().Get("enabled"))
	if feature == "" || err != nil {
		http.Error(w, "say which feature and which value, for example ?feature=WidgetColor&enabled=false", http.StatusBadRequest)
		return
	}
	plan := &v1alpha1.FeaturePlan{
		TypeMeta:   metav1.TypeMeta{APIVersion: v1alpha1.SchemeGroupVersion.String(), Kind: "FeaturePlan"},
		ObjectMeta: metav1.ObjectMeta{Namespace: h.namespace, Name: feature},
		Spec:       v1alpha1.FeaturePlanSpec{Enabled: &enabled},
	}
	status, err := h.flow.Plan(r.Context(), feature, plan)
	if err != nil {
		http.Error(w, err.Error(), codeOf(err))
		return
	}
	plan.Status = *status
	answer(w, plan)
}

// allows returns true for a request with the one allowed method. It answers all others.
func allows(method string, w http.ResponseWriter, r *http.Request, done string) bool {
	if r.Method == method {
		return true
	}
	w.Header().Set("Allow", method)
	http.Error(w, r.Method+" is not allowed: "+done+" with "+method, http.StatusMethodNotAllowed)
	return false
}

// answer answers with an object.
func answer(w http.ResponseWriter, object any) {
	body, err := json.MarshalIndent(object, "", "  ")
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	// The client is gone if this fails.
	_, _ = w.Write(append(body, '\n'))
}

// codeOf returns the HTTP status of an error: that of the server, if it returned one.
func codeOf(err error) int {
	var said apierrors.APIStatus
	switch {
	case errors.Is(err, operator.ErrNotRunning):
		return http.StatusServiceUnavailable
	case errors.As(err, &said) && said.Status().Code != 0:
		return int(said.Status().Code)
	default:
		return http.StatusInternalServerError
	}
}
