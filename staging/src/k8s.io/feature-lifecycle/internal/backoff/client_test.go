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
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/feature-lifecycle/client/clientset/versioned"
)

// TestThrottledRequestIsNotRetriedByClient: the header Retry-After does not reach client-go.
func TestThrottledRequestIsNotRetriedByClient(t *testing.T) {
	var requests atomic.Int32
	var accepts atomic.Value
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		requests.Add(1)
		accepts.Store(r.Header.Get("Accept"))
		w.Header().Set("Retry-After", "1")
		http.Error(w, "too many", http.StatusTooManyRequests)
	}))
	defer server.Close()
	config := &rest.Config{Host: server.URL}
	client, err := versioned.NewForConfig(ClientConfig(config))
	if err != nil {
		t.Fatal(err)
	}
	_, err = client.FeaturesV1alpha1().FeatureReports("ns").Get(t.Context(), "r", metav1.GetOptions{})
	if !apierrors.IsTooManyRequests(err) || requests.Load() != 1 {
		t.Errorf("%d requests and %v, want one and that it was throttled", requests.Load(), err)
	}
	if got, want := accepts.Load(), "application/vnd.kubernetes.protobuf,application/json"; got != want {
		t.Errorf("the client accepts %q, want %q", got, want)
	}
	if config.WrapTransport != nil || config.ContentType != "" {
		t.Error("the configuration that was given has changed")
	}
}
