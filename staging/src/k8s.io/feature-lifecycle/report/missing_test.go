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

package report

import (
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/feature-lifecycle/internal/retry"
)

// TestAReportThatIsMissingBeforeItsNodeIsThere is written again soon: a process looks
// often for its Node, so a check was made a moment ago, and the next is far.
func TestAReportThatIsMissingBeforeItsNodeIsThere(t *testing.T) {
	remove := func(f *fixture) {
		f.t.Helper()
		if err := f.server.Tracker().Delete(v1alpha1.SchemeGroupVersion.WithResource("featurereports"), "ns", "comp.i1"); err != nil {
			f.t.Fatal(err)
		}
	}
	for name, failure := range map[string]error{
		"the server takes it":                       nil,
		"the server has too many requests at first": apierrors.NewTooManyRequests("later", 1),
		"the server is in trouble at first":         apierrors.NewInternalError(errors.New("etcd")),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := prepare(t, func(c *Config) { c.NodeName = "n1" })
				var broken atomic.Bool
				f.server.PrependReactor("create", "featurereports", func(clienttesting.Action) (bool, runtime.Object, error) {
					return broken.Load() && failure != nil, nil, failure
				})
				f.start()
				defer f.end()
				f.pass(2*time.Second + 4*ownerPeriod)
				remove(f)
				broken.Store(true)
				f.pass(3 * ownerPeriod)
				broken.Store(false)
				// The second pause after a crowd is the longest one that can come here.
				f.pass(4 * retry.CrowdBackoff)
				f.report()
				if err := f.kube.Tracker().Add(node("n1")); err != nil {
					t.Fatal(err)
				}
				f.pass(checkPeriod + checkPeriod/5)
				if owners := f.report().OwnerReferences; len(owners) != 1 || owners[0].UID != "uid-n1" {
					t.Errorf("owners %+v after the Node appeared", owners)
				}
			})
		})
	}
}
