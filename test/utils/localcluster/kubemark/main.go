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

// Package main runs a hollow node: a kubelet or kube-proxy of upstream's without
// containers and network, with the reporting layer. It is composed like
// upstream's cmd/kubemark, takes --feature-gates like the real components, and
// listens on loopback only.
package main

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"

	utilfeature "k8s.io/apiserver/pkg/util/feature"
	_ "k8s.io/component-base/metrics/prometheus/clientgo" // client metrics
	_ "k8s.io/component-base/metrics/prometheus/version"  // version metric
	"k8s.io/component-base/version/verflag"
	"k8s.io/kubernetes-features/pkg/featurelifecycle/reporting"
)

func main() {
	os.Exit(reporting.Main(reporting.Component{Name: "kubemark", Node: true}, newCommand))
}

// options are the flags of a hollow node.
type options struct {
	kubeconfig  string
	name        string
	morph       string
	kubeletPort int
	maxPods     int
}

func newCommand() *cobra.Command {
	o := &options{}
	gate := utilfeature.DefaultMutableFeatureGate
	cmd := &cobra.Command{
		Use:          "kubemark",
		Short:        "Run a hollow node",
		SilenceUsage: true,
		Args:         cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			verflag.PrintAndExitIfRequested()
			// The values are final, as in the real components.
			gate.AddMetrics()
			switch o.morph {
			case "kubelet":
				return o.runKubelet(cmd.Context())
			case "proxy":
				return o.runProxy(cmd.Context())
			default:
				return fmt.Errorf("--morph must be kubelet or proxy, not %q", o.morph)
			}
		},
	}
	fs := cmd.Flags()
	fs.StringVar(&o.kubeconfig, "kubeconfig", "", "How to reach kube-apiserver.")
	fs.StringVar(&o.name, "name", "", "Name of the node.")
	fs.StringVar(&o.morph, "morph", "", "What to be: kubelet or proxy.")
	fs.IntVar(&o.kubeletPort, "kubelet-port", 0, "Port of the kubelet, on loopback.")
	fs.IntVar(&o.maxPods, "max-pods", 110, "How many pods the node takes.")
	gate.AddFlag(fs)
	verflag.AddFlags(fs)
	return cmd
}
