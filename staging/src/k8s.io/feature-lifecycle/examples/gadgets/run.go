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

package main

import (
	"context"
	"fmt"
	"os"

	"k8s.io/client-go/rest"
	"k8s.io/feature-lifecycle/featuregate"
	"k8s.io/feature-lifecycle/operator"
)

// newReplica is what the library does in this process.
func newReplica(o *options, client *rest.Config) (*operator.Replica, error) {
	return operator.New(operator.Config{
		Namespace: namespace, Component: component, Instance: o.instance, Version: "v1.0.0",
		Gate: o.gate, Features: declared, Control: o.decides, Client: client,
		OwnedByServiceAccount: true,
	})
}

// run is one replica, until the context ends.
func run(ctx context.Context, o *options, client *rest.Config) error {
	replica, err := newReplica(o, client)
	if err != nil {
		return err
	}
	// The values that people asked for are there before the operator's code asks.
	if _, err := replica.Load(ctx); err != nil {
		return err
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	ended := make(chan error, 1)
	go func() {
		// Without the other half nothing works: both end together.
		defer stop()
		ended <- replica.Start(ctx)
	}()
	work(ctx, o.gate)
	err = <-ended
	// Nothing uses a feature any more, so the report may go. If the server does not take
	// it away, transitions wait for this replica some minutes, and nothing else is wrong.
	if err := replica.Close(context.WithoutCancel(ctx)); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	return err
}

// work is what the operator is there for. It asks the gate as ever, and again
// when the value has changed.
func work(ctx context.Context, gate *featuregate.Gate) {
	changed := make(chan struct{}, 1)
	unsubscribe := gate.OnChange(func(featuregate.Snapshot) {
		select {
		case changed <- struct{}{}:
		default: // work looks anyhow
		}
	}, GadgetColours)
	defer unsubscribe()
	for {
		if gate.Enabled(GadgetColours) {
			fmt.Println("gadgets may have colours")
		} else {
			fmt.Println("gadgets have no colours")
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return
		}
	}
}
