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

package agent

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/component-base/metrics/legacyregistry"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
)

// requests reads the counter by result. It is one for the process: tests compare
// what they add.
func requests(t *testing.T) map[string]float64 {
	t.Helper()
	families, err := legacyregistry.DefaultGatherer.Gather()
	if err != nil {
		t.Fatal(err)
	}
	counts := map[string]float64{}
	for _, family := range families {
		if family.GetName() != "feature_lifecycle_report_requests_total" {
			continue
		}
		for _, metric := range family.GetMetric() {
			counts[metric.GetLabel()[0].GetValue()] = metric.GetCounter().GetValue()
		}
	}
	return counts
}

func TestRequestsAreCountedByResult(t *testing.T) {
	resource := v1alpha1.Resource("featurereports")
	for result, err := range map[string]error{
		resultMissing:   apierrors.NewNotFound(resource, ""),
		resultForbidden: apierrors.NewForbidden(resource, "comp.i1", errors.New("no")),
		resultFailed:    apierrors.NewInternalError(errors.New("etcd")),
	} {
		t.Run(result, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := prepare(t, nil)
				lift := f.answering(err)
				before := requests(t)
				f.start()
				defer f.end()
				f.pass(10 * time.Second)
				refused := requests(t)
				if n := refused[result] - before[result]; n != float64(f.writes()) || n == 0 {
					t.Errorf("%v requests counted as %s, %d were made", n, result, f.writes())
				}
				if refused[resultDone] != before[resultDone] {
					t.Error("a request that was refused counts as done")
				}
				lift()
				f.pass(16 * time.Minute)
				if requests(t)[resultDone] == refused[resultDone] {
					t.Error("the report that was written is not counted")
				}
			})
		})
	}
}
