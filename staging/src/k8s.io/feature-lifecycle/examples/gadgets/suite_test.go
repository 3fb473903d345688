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
	"os/signal"
	"syscall"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/feature-lifecycle/lifecycletest"
)

// patience bounds the whole suite. It is generous, since the machine may be busy,
// and less than what go test gives, so that the cluster is ended in any case.
const patience = 6 * time.Minute

// lamps are a gadget that uses GadgetColours, and one that does not.
const lamps = `
apiVersion: example.com/v1
kind: Gadget
metadata: {name: lamp, namespace: default}
spec: {size: 3, colour: red}
---
apiVersion: example.com/v1
kind: Gadget
metadata: {name: plain-lamp, namespace: default}
spec: {size: 3}
`

// TestGadgetColoursLeaveNothing starts a cluster, and the operator with the
// operator's own permissions, and takes its feature through on, used, off and
// pristine, twice.
func TestGadgetColoursLeaveNothing(t *testing.T) {
	if os.Getenv("KUBE_FEATURES_BIN_DIR") == "" {
		t.Skip("KUBE_FEATURES_BIN_DIR names no folder with the binaries of a cluster; \"make all\" builds them")
	}
	// A signal ends the test, and not the process, which would leave the cluster behind.
	ctx, stop := signal.NotifyContext(t.Context(), os.Interrupt, syscall.SIGTERM)
	t.Cleanup(stop) // after all others, which end the cluster
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	cluster := &lifecycletest.Cluster{}
	// Its processes outlive this one if nobody ends them.
	t.Cleanup(func() {
		if err := cluster.Stop(context.WithoutCancel(ctx)); err != nil {
			t.Error(err)
		}
	})
	if _, err := cluster.Start(ctx); err != nil {
		t.Fatal(err)
	}
	kit, err := cluster.For(namespace)
	if err != nil {
		t.Fatal(err)
	}
	if err := kit.Install(ctx, "namespace.yaml", "gadgets.yaml", "rbac.yaml"); err != nil {
		t.Fatal(err)
	}
	config, err := cluster.As(ctx, namespace, component)
	if err != nil {
		t.Fatal(err)
	}
	operate(ctx, t, config)

	objects, err := lifecycletest.Parse([]byte(lamps))
	if err != nil {
		t.Fatal(err)
	}
	for _, feature := range declared {
		c := &lifecycletest.Case{Feature: feature, Fixture: "lamps", Objects: objects}
		set := func(ctx context.Context, enabled bool) error {
			return kit.Ask(ctx, string(feature.Name), enabled)
		}
		for range 2 {
			problems, err := kit.Cycle(ctx, c, set)
			for _, problem := range problems {
				t.Error(problem)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
	}
}

// operate runs a replica until the context ends, and waits for its end before the
// cluster goes.
func operate(ctx context.Context, t *testing.T, config *rest.Config) {
	t.Helper()
	o, err := parse([]string{"--instance=replica", "--dynamic-features=" + string(GadgetColours)})
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- run(ctx, o, config) }()
	t.Cleanup(func() {
		if err := <-ended; err != nil {
			t.Error(fmt.Errorf("the operator: %w", err))
		}
	})
}
