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
	"cmp"
	"flag"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/pflag"
	"sigs.k8s.io/controller-runtime/pkg/client/config"

	"k8s.io/client-go/rest"
	"k8s.io/feature-lifecycle/featuregate"
	"k8s.io/feature-lifecycle/lifecycle/control"
	"k8s.io/feature-lifecycle/operator"
)

const (
	// component is what all replicas report as.
	component = "widget-operator"
	// defaultNamespace is that of config/namespace.yaml.
	defaultNamespace = "widgets"
)

// options are what the command line says.
type options struct {
	// namespace has the operator's own objects, and the Widgets that it looks after.
	namespace string
	// instance is the name of this replica.
	instance string
	// metricsAddress and probeAddress are where it listens; "0" is nowhere.
	metricsAddress, probeAddress string
	leaderElect                  bool
	// ownedByServiceAccount makes Features, reports and Leases go with the service account
	// that the operator runs as.
	ownedByServiceAccount bool

	gate    *featuregate.Gate
	control control.Options
}

// parse reads the command line: --feature-gates as ever, and which features are set in
// one place for all replicas. The error is pflag.ErrHelp for --help. What the authors of
// features do not permit is refused by replica.
func parse(args []string) (*options, error) {
	gate, err := newGate()
	if err != nil {
		return nil, err
	}
	o := &options{gate: gate}
	flags := pflag.NewFlagSet(component, pflag.ContinueOnError)
	// That is --kubeconfig.
	ofController := flag.NewFlagSet(component, flag.ContinueOnError)
	config.RegisterFlags(ofController)
	flags.AddGoFlagSet(ofController)
	flags.StringVar(&o.namespace, "namespace", defaultNamespace, "The namespace of the operator's own objects: Features, FeatureReports, Leases, events. Widgets are looked after in this namespace alone, also by what cleans them when a feature is turned off.")
	flags.StringVar(&o.instance, "instance", "", "The name of this replica, which no other has at the same time: that of its pod. By default the environment variable POD_NAME, else the name of the host.")
	flags.BoolVar(&o.ownedByServiceAccount, "owned-by-service-account", true, "Make Features, FeatureReports and Leases belong to the service account that the operator runs as, so that they go with it. Turn it off for an operator that runs as another user, as on a developer's machine.")
	flags.StringVar(&o.metricsAddress, "metrics-bind-address", "127.0.0.1:8080", "Where /metrics, /metrics/features, /features/plan and /features/clean are served, without authentication, so leave it on the loopback; 0 for nowhere.")
	flags.StringVar(&o.probeAddress, "health-probe-bind-address", ":8081", "Where /healthz and /readyz are served; 0 for nowhere.")
	flags.BoolVar(&o.leaderElect, "leader-elect", true, "Elect the replica that reconciles Widgets. Without it there must be only one replica.")
	o.gate.AddFlag(flags)
	o.control.AddFlags(flags)
	if err := flags.Parse(args); err != nil {
		return nil, err
	}
	if flags.NArg() > 0 {
		return nil, fmt.Errorf("%s takes flags only, and no %s; --help lists them", component, strings.Join(flags.Args(), " "))
	}
	if o.instance == "" {
		host, err := os.Hostname()
		if o.instance = cmp.Or(os.Getenv("POD_NAME"), host); o.instance == "" {
			return nil, fmt.Errorf("this replica has no name: there is no POD_NAME, and the name of the host is not known (%w); use --instance", err)
		}
	}
	return o, nil
}

// replica returns the library's part of this process. The error names all that is wrong
// with the options, features that their authors do not permit to be set so among it.
func (o *options) replica(client *rest.Config) (*operator.Replica, error) {
	return operator.New(operator.Config{
		Namespace: o.namespace, Component: component, Instance: o.instance, Version: version,
		Gate: o.gate, Features: declared(o.namespace), Control: o.control, Client: client,
		OwnedByServiceAccount: o.ownedByServiceAccount,
		Settings:              operator.Settings{HowToClean: howToClean},
	})
}
