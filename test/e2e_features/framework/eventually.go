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

package framework

import (
	"context"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

// Eventually asks for what cannot be watched until nothing is wrong with it. Its
// failure describes the latest problem.
func Eventually(t testing.TB, what string, wrong func() error) {
	t.Helper()
	var last error
	err := wait.PollUntilContextTimeout(t.Context(), 100*time.Millisecond, Patience, true, func(context.Context) (bool, error) {
		last = wrong()
		return last == nil, nil
	})
	if err != nil {
		t.Fatalf("waiting for %s: %v; last: %v", what, err, last)
	}
}
