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

package watchtools

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

// TestWatchErrorHandlerLogsMissingAPIOnce: informers retry again and again. The handler
// logs all other errors as client-go does.
func TestWatchErrorHandlerLogsMissingAPIOnce(t *testing.T) {
	logger := ktesting.NewLogger(t, ktesting.NewConfig(ktesting.BufferLogs(true)))
	logs, ok := logger.GetSink().(ktesting.Underlier)
	if !ok {
		t.Fatal("the logger does not buffer")
	}
	ctx := klog.NewContext(t.Context(), logger)
	handle := NewWatchErrorHandler("the server flow", "widgets")
	reflector := cache.NewReflector(&cache.ListWatch{}, &v1alpha1.Feature{}, cache.NewStore(cache.MetaNamespaceKeyFunc), 0)
	notServed := apierrors.NewGenericServerResponse(http.StatusNotFound, "list", v1alpha1.Resource("features"), "", "404 page not found", 0, true)
	for range 3 {
		handle(ctx, reflector, fmt.Errorf("failed to list: %w", notServed))
	}
	logged := logs.GetBuffer().String()
	if strings.Count(logged, "does not have the API features.k8s.io/v1alpha1") != 1 || strings.Count(logged, "\n") > 1 {
		t.Errorf("the log of a server without the API is %q, want one line", logged)
	}
	if !strings.Contains(logged, "the server flow") || !strings.Contains(logged, "widgets") {
		t.Errorf("the log is %q, want the purpose and the namespace", logged)
	}
	handle(ctx, reflector, errors.New("connection refused"))
	if logged := logs.GetBuffer().String(); !strings.Contains(logged, "connection refused") {
		t.Errorf("the log of a server that does not answer is %q", logged)
	}
}
