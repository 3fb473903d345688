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

// The widget operator is an operator as people write them with controller-runtime, and
// has two features of its own: an alpha field of its kind Widget, which is cleared when
// the feature is turned off, and another behavior. It declares them (features.go), asks
// a gate that reports, follows values that are set through the API, and runs the server
// flow in its own namespace with several replicas, by package operator of the library.
// README.md says how to run it, and what is where.
package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"time"

	"github.com/spf13/pflag"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/component-base/metrics/legacyregistry"
	widgetsv1 "k8s.io/feature-lifecycle/examples/widget-operator/api/v1"
	"k8s.io/feature-lifecycle/operator"
	"k8s.io/klog/v2"
)

// leaderLease is the Lease of the replica that reconciles Widgets. Which replica looks
// after a feature does not depend on it: all replicas compute that without an election.
const leaderLease = "widget-operator-leader"

func main() {
	options, err := parse(os.Args[1:])
	if errors.Is(err, pflag.ErrHelp) {
		return
	}
	exit(err)
	ctrl.SetLogger(klog.Background())
	config, err := ctrl.GetConfig()
	exit(err)
	exit(run(ctrl.SetupSignalHandler(), config, options))
}

// exit ends the process for an error.
func exit(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "Error:", err)
		os.Exit(1)
	}
}

// run runs one replica until the context ends or something fails.
func run(ctx context.Context, config *rest.Config, o *options) error {
	replica, err := o.replica(config)
	if err != nil {
		return err
	}
	mgr, err := newManager(config, o, replica)
	if err != nil {
		return err
	}
	// The values that people asked for are there before the operator's code asks.
	if _, err := replica.Load(ctx); err != nil {
		return err
	}
	// Each replica may have to reconcile at any moment, so a transition has to wait for all
	// of them and not for the leader alone. It waits for processes that queried the gate.
	for name := range gates {
		o.gate.Enabled(name)
	}
	if err := setUp(mgr, o.gate); err != nil {
		return err
	}
	if err := mgr.Add(replica); err != nil {
		return err
	}
	// A replica that fails counts as crashed: its report stays until the replica is
	// restarted, since its work may still be under way. It must not renew its Lease meanwhile.
	if err := mgr.Start(ctx); err != nil {
		return errors.Join(fmt.Errorf("%s %s: %w", component, o.instance, err), replica.Abandon())
	}
	if err := replica.Close(context.WithoutCancel(ctx)); err != nil {
		// All work has ended in order. The one effect is that transitions wait some minutes
		// for this replica, as for one that crashed, unless it is restarted.
		klog.FromContext(ctx).Error(err, "The feature report stays behind", "replica", o.instance)
	}
	return nil
}

// newManager makes what runs the parts of the operator, all but the library's.
func newManager(config *rest.Config, o *options, replica *operator.Replica) (manager.Manager, error) {
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), widgetsv1.AddToScheme(scheme)); err != nil {
		return nil, err
	}
	mgr, err := ctrl.NewManager(config, ctrl.Options{
		Scheme: scheme,
		Cache: cache.Options{
			// Widgets and ConfigMaps of other namespaces are neither read nor kept in memory.
			DefaultNamespaces: map[string]cache.Config{o.namespace: {}},
			DefaultTransform:  cache.TransformStripManagedFields(),
		},
		Metrics: metricsserver.Options{BindAddress: o.metricsAddress, ExtraHandlers: map[string]http.Handler{
			// controller-runtime has a registry of its own, and the library that of Kubernetes.
			"/metrics/features": legacyregistry.Handler(),
			"/features/plan":    planHandler{namespace: o.namespace, flow: replica},
			"/features/clean":   clean(o.namespace, replica),
		}},
		HealthProbeBindAddress:  o.probeAddress,
		LeaderElection:          o.leaderElect,
		LeaderElectionID:        leaderLease,
		LeaderElectionNamespace: o.namespace,
		// A replica that cannot renew its Lease for 20 s ends. controller-runtime's 10 s are
		// few for a server that is restarted or busy.
		LeaseDuration: new(30 * time.Second),
		RenewDeadline: new(20 * time.Second),
		RetryPeriod:   new(5 * time.Second),
		// Nothing reconciles any more when Start of the manager returns, and the process ends.
		LeaderElectionReleaseOnCancel: true,
	})
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", component, o.instance, err)
	}
	if err := errors.Join(mgr.AddHealthzCheck("ping", healthz.Ping), mgr.AddReadyzCheck("ping", healthz.Ping)); err != nil {
		return nil, err
	}
	return mgr, nil
}
