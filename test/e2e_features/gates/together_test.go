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

package gates

import (
	"context"
	"slices"
	"testing"

	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/feature-lifecycle/lifecycletest"
	"k8s.io/kubernetes-features/test/e2e_features/framework"
	"k8s.io/kubernetes-features/test/utils/localcluster"
)

// TestTurningOffTogetherWithDependents turns GenericWorkload off and, in the same restart,
// the gates that cannot be on without it. The collections with their fields are
// not served then, so they report that they cannot examine them. They are Off,
// too, soon after the collections are cleared.
func TestTurningOffTogetherWithDependents(t *testing.T) {
	t.Parallel()
	const name = gate("GenericWorkload")
	on, off := together(name)
	var all []*lifecycletest.Case
	for _, entry := range gone(off) {
		all = append(all, newCase(t, entry))
	}
	if len(all) < 2 {
		t.Fatalf("nothing depends on %s any more; choose another gate for this test", name)
	}
	w := start(t, localcluster.Config{Only: []string{localcluster.Etcd, localcluster.APIServer, localcluster.ControllerManager}, ExtraArgs: on.arguments()})
	ctx, cancel := context.WithTimeout(t.Context(), framework.Patience)
	defer cancel()
	if err := w.WaitFor(ctx, v1alpha1.StateOn, nil, all...); err != nil {
		t.Fatal(err)
	}
	w.waitForAccounts(t)
	w.use(t, all, &lifecycletest.Case{})
	before := w.restart(t, off.arguments())
	ctx, cancel = context.WithTimeout(t.Context(), framework.Patience)
	defer cancel()
	outcomes, err := w.WaitUntilOff(ctx, before.View, all...)
	if err != nil {
		t.Error(err)
	}
	couldNotLook := 0
	for _, outcome := range outcomes {
		if slices.ContainsFunc(outcome.Held, notServed) {
			couldNotLook++
		}
	}
	if couldNotLook == 0 {
		t.Error("no feature reported that it cannot examine a collection that is not served")
	}
	after := w.stored(t)
	for _, c := range all {
		if left, problems := c.Left(t.Context(), after); left > 0 || len(problems) > 0 {
			t.Errorf("%d objects are left: %v", left, problems)
		}
	}
}
