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
	"errors"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

// TestAllWidgetsAreReconciledAfterAChange: those of all namespaces, once for changes that
// come together, also for one that came before Start, and also if they cannot be listed
// at first.
func TestAllWidgetsAreReconciledAfterAChange(t *testing.T) {
	door := lamp()
	door.Namespace, door.Name, door.UID = "other", "door", "uid-of-door"
	synctest.Test(t, func(t *testing.T) {
		gate, failures, lists := gateOf(t), 0, 0
		w := newWorld(t, gate, interceptor.Funcs{
			List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
				if lists++; failures > 0 {
					failures--
					return errors.New("connection refused")
				}
				return c.List(ctx, list, options...)
			},
		}, lamp(), door)
		changes := followGate(gate, w)
		turn(t, gate, WidgetUppercase, true)
		turn(t, gate, WidgetColor, true)
		synctest.Wait()

		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- changes.Start(ctx) }()
		next := func(about string, wantLists int) {
			t.Helper()
			var names []string
			for range 2 {
				widget := (<-changes.widgets).Object
				names = append(names, widget.GetNamespace()+"/"+widget.GetName())
			}
			synctest.Wait()
			slices.Sort(names)
			if diff := cmp.Diff([]string{"default/lamp", "other/door"}, names); diff != "" {
				t.Errorf("%s (-want +got):\n%s", about, diff)
			}
			if lists != wantLists {
				t.Errorf("%s: Widgets were listed %d times, want %d", about, lists, wantLists)
			}
			lists = 0
			select {
			case more := <-changes.widgets:
				t.Errorf("%s: one Widget more, %s", about, more.Object.GetName())
			default:
			}
		}
		next("after two changes before Start", 1)
		failures = 3
		turn(t, gate, WidgetUppercase, false)
		next("after a change when three lists fail", 4)

		// The Widgets of this change are not received: the process ends.
		turn(t, gate, WidgetUppercase, true)
		synctest.Wait()
		stop()
		if err := <-ended; err != nil {
			t.Errorf("Start ended with %v", err)
		}
		lists = 0
		turn(t, gate, WidgetUppercase, false)
		synctest.Wait()
		if len(changes.changed) > 0 {
			t.Error("a change is noticed after the end")
		}
	})
}
