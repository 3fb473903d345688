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
	"net/http"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
)

// howToClean is the next step in the condition Clean of a feature when something is left
// of it that tasks can remove.
const howToClean = "POST to /features/clean?feature=NAME of a replica, as the operator's README.md shows, or turn the feature on and off again,"

// cleaner is what a clean-up takes of the server flow; operator.Replica is one.
type cleaner interface {
	Clean(ctx context.Context, feature string) (*v1alpha1.FeatureCleanupStatus, error)
}

// cleanHandler starts the removal of what a feature that is off has left behind, as
// kubectl feature clean does for the features of Kubernetes:
//
//	POST /features/clean?feature=WidgetColor
//
// Each replica can start it, and the one that looks after the feature continues it. It
// removes no more than turning the feature on and off again would. Requests are not
// authenticated, so it is for the loopback alone (README.md). Requests of other sites' pages
// in a browser there are refused.
type cleanHandler struct {
	namespace string
	flow      cleaner
}

// clean makes the handler for an operator in a namespace.
func clean(namespace string, flow cleaner) http.Handler {
	return http.NewCrossOriginProtection().Handler(cleanHandler{namespace: namespace, flow: flow})
}

// ServeHTTP implements http.Handler.
func (h cleanHandler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !allows(http.MethodPost, w, r, "clean-ups are begun") {
		return
	}
	feature := r.URL.Query().Get("feature")
	if feature == "" {
		http.Error(w, "say which feature, for example ?feature=WidgetColor", http.StatusBadRequest)
		return
	}
	status, err := h.flow.Clean(r.Context(), feature)
	if err != nil {
		http.Error(w, err.Error(), codeOf(err))
		return
	}
	answer(w, &v1alpha1.FeatureCleanup{
		TypeMeta:   metav1.TypeMeta{APIVersion: v1alpha1.SchemeGroupVersion.String(), Kind: "FeatureCleanup"},
		ObjectMeta: metav1.ObjectMeta{Namespace: h.namespace, Name: feature},
		Status:     *status,
	})
}
