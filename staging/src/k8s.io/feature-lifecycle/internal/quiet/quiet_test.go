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

package quiet

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/cache"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/ktesting"
)

// TestAServerWithoutTheAPIIsToldOnce: informers ask it again and again. All else that they
// hear is told as ever.
func TestAServerWithoutTheAPIIsToldOnce(t *testing.T) {
	logger := ktesting.NewLogger(t, ktesting.NewConfig(ktesting.BufferLogs(true)))
	logs, ok := logger.GetSink().(ktesting.Underlier)
	if !ok {
		t.Fatal("the logger does not keep what is logged")
	}
	ctx := klog.NewContext(t.Context(), logger)
	watches := &Watches{Purpose: "the server flow", Namespace: "widgets"}
	reflector := cache.NewReflector(&cache.ListWatch{}, &v1alpha1.Feature{}, cache.NewStore(cache.MetaNamespaceKeyFunc), 0)
	gone := apierrors.NewGenericServerResponse(http.StatusNotFound, "list", v1alpha1.Resource("features"), "", "404 page not found", 0, true)
	for range 3 {
		watches.Failed(ctx, reflector, fmt.Errorf("failed to list: %w", gone))
	}
	said := logs.GetBuffer().String()
	if strings.Count(said, "does not have the API features.k8s.io/v1alpha1") != 1 || strings.Count(said, "\n") > 1 {
		t.Errorf("of a server without the API it says %q, want one line", said)
	}
	if !strings.Contains(said, "the server flow") || !strings.Contains(said, "widgets") {
		t.Errorf("it says %q, want what does not happen and where", said)
	}
	watches.Failed(ctx, reflector, errors.New("connection refused"))
	if said := logs.GetBuffer().String(); !strings.Contains(said, "connection refused") {
		t.Errorf("of a server that does not answer it says nothing: %q", said)
	}
}
