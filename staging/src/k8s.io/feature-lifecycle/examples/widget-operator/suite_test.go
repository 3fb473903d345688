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
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"testing"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"

	"k8s.io/client-go/rest"
	"k8s.io/feature-lifecycle/lifecycletest"
	"k8s.io/klog/v2"
)

// patience bounds the whole suite. It is generous, since the machine may be busy,
// and less than what go test gives, so that the cluster is ended in any case.
const patience = 8 * time.Minute

// TestMain gives controller-runtime the log that main gives it.
func TestMain(m *testing.M) {
	ctrl.SetLogger(klog.Background())
	os.Exit(m.Run())
}

// TestFeaturesLeaveNothing starts a cluster, and a replica with the operator's own
// permissions, and takes each feature through on, used, off and pristine, twice.
func TestFeaturesLeaveNothing(t *testing.T) {
	if os.Getenv("KUBE_FEATURES_BIN_DIR") == "" {
		t.Skip("KUBE_FEATURES_BIN_DIR names no folder with the binaries of a cluster; \"make all\" builds them")
	}
	// A signal ends the test, and not the process, which would leave the cluster behind.
	ctx, stop := signal.NotifyContext(t.Context(), os.Interrupt, syscall.SIGTERM)
	t.Cleanup(stop) // after all others, which end the cluster
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	cluster := &lifecycletest.Cluster{}
	t.Cleanup(func() {
		if err := cluster.Stop(context.WithoutCancel(ctx)); err != nil {
			t.Error(err)
		}
	})
	if _, err := cluster.Start(ctx); err != nil {
		t.Fatal(err)
	}
	kit, err := cluster.For(defaultNamespace)
	if err != nil {
		t.Fatal(err)
	}
	if err := kit.Install(ctx, "config/namespace.yaml", "config/crd.yaml", "config/rbac.yaml"); err != nil {
		t.Fatal(err)
	}
	config, err := cluster.As(ctx, defaultNamespace, component)
	if err != nil {
		t.Fatal(err)
	}
	operate(ctx, t, config)

	widgets, err := os.ReadFile("config/samples/widgets.yaml")
	if err != nil {
		t.Fatal(err)
	}
	colored, err := lifecycletest.Parse(widgets)
	if err != nil {
		t.Fatal(err)
	}
	cases := map[string]*lifecycletest.Case{
		string(WidgetColor): {Fixture: "widgets.yaml", Objects: colored},
		// It stores nothing.
		string(WidgetUppercase): {},
	}
	for range 2 {
		for _, feature := range declared(defaultNamespace) {
			c, ok := cases[string(feature.Name)]
			if !ok {
				t.Fatalf("%s has no case; add its fixture", feature.Name)
			}
			c.Feature = feature
			problems, err := kit.Cycle(ctx, c, func(ctx context.Context, enabled bool) error {
				return kit.Ask(ctx, string(feature.Name), enabled)
			})
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
	o, err := parse([]string{"--instance=replica", "--dynamic-features=" + string(WidgetColor) + "," + string(WidgetUppercase), "--leader-elect=false", "--metrics-bind-address=0", "--health-probe-bind-address=0"})
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- run(ctx, config, o) }()
	t.Cleanup(func() {
		if err := <-ended; err != nil {
			t.Error(fmt.Errorf("the operator: %w", err))
		}
	})
}
