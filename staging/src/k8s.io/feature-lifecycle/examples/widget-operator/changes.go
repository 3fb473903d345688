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
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"k8s.io/apimachinery/pkg/util/wait"
	widgetsv1 "k8s.io/feature-lifecycle/examples/widget-operator/api/v1"
	"k8s.io/feature-lifecycle/featuregate"
	"k8s.io/klog/v2"
)

// listBackoff are the pauses after Widgets could not be listed.
var listBackoff = wait.Backoff{Duration: 200 * time.Millisecond, Factor: 2, Jitter: 0.2, Steps: 8, Cap: 30 * time.Second}

// changes has all Widgets reconciled when the value of a gate has changed. It runs where
// Widgets are reconciled, on the leader.
type changes struct {
	reader client.Reader
	// widgets gets each Widget after a change.
	widgets chan event.GenericEvent
	// changed has something after a change, also after several.
	changed     chan struct{}
	unsubscribe func()
}

// followGate begins to notice changes. It is called before the manager starts, so that
// none is missed between the first look of a new leader at Widgets and Start.
func followGate(gate *featuregate.Gate, reader client.Reader) *changes {
	c := &changes{reader: reader, widgets: make(chan event.GenericEvent), changed: make(chan struct{}, 1)}
	c.unsubscribe = gate.OnChange(func(featuregate.Snapshot) {
		select {
		case c.changed <- struct{}{}:
		default: // all Widgets are looked at anyhow
		}
	}, WidgetColor, WidgetUppercase)
	return c
}

// Start implements manager.Runnable.
func (c *changes) Start(ctx context.Context) error {
	defer c.unsubscribe()
	for {
		select {
		case <-c.changed:
			c.all(ctx)
		case <-ctx.Done():
			return nil
		}
	}
}

// all sends all Widgets. It lists them until that succeeds, or the context ends: otherwise
// Widgets would keep what was written with the values before.
func (c *changes) all(ctx context.Context) {
	list := &widgetsv1.WidgetList{}
	err := listBackoff.DelayFunc().Until(ctx, true, true, func(ctx context.Context) (bool, error) {
		err := c.reader.List(ctx, list)
		if err != nil && ctx.Err() == nil {
			klog.FromContext(ctx).Error(err, "Feature gates have changed, and Widgets cannot be listed to follow, will retry")
		}
		return err == nil, nil
	})
	if err != nil {
		return // the context has ended
	}
	for i := range list.Items {
		select {
		case c.widgets <- event.GenericEvent{Object: &list.Items[i]}:
		case <-ctx.Done():
			return
		}
	}
}
