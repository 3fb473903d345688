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

package reporting

import (
	"context"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"k8s.io/component-base/cli"
	"k8s.io/component-base/version/verflag"
	"k8s.io/feature-lifecycle/featuregate"
	"k8s.io/kubernetes-features/pkg/features"
)

// Component describes a binary.
type Component struct {
	// Name is the component's name in reports. Hollow nodes derive it from --morph.
	Name string
	// Node is true for components that run on each node.
	Node bool
	// AsksBeforeFinal is true for a command that queries features before it calls
	// AddMetrics on its gate, and has read its command line when it runs.
	AsksBeforeFinal bool
}

// Main installs the layer, builds the command and runs it with an agent. The agent takes the
// values that are set centrally before the command queries them. Main returns the exit code.
func Main(component Component, build func() *cobra.Command) int {
	gate := Install()
	// This gate decides whether there are central values at all.
	gate.KeepLocal(features.FeatureLifecycle)
	command := build()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	process := &process{component: component, gate: gate, arguments: parseArguments(os.Args[1:]), flags: newValueFlags(component)}
	if err := process.flags.addTo(command, os.Args[1:]); err != nil {
		fmt.Fprintf(os.Stderr, "Error: %v\n", err)
		return 1
	}
	process.attach(ctx, command)
	defer process.end()
	return cli.Run(command)
}

// attach makes the process take values before they are final, and report once the command
// calls AddMetrics on its gate. Every binary does that right before it starts its work: it
// has read its command line and configuration and set up its logs.
func (p *process) attach(ctx context.Context, command *cobra.Command) {
	p.gate.BeforeFinal(func() { p.resolve(ctx) })
	p.gate.OnAddMetrics(func() { p.start(ctx) })
	if p.component.AsksBeforeFinal {
		finalizeFirst(command, p.gate)
	}
}

// finalizeFirst makes the gate's values final when the command starts to run, and not only
// when it calls AddMetrics. Before that, kube-scheduler builds its plugins, which query some
// forty features (cmd/kube-scheduler/app/server.go, runCommand), and kube-controller-manager
// validates its versions, which queries every alpha feature
// (component-base/compatibility/registry.go, Validate). Log lines of this time do not have
// the command's log format yet.
func finalizeFirst(command *cobra.Command, gate *featuregate.Gate) {
	run := command.RunE
	command.RunE = func(command *cobra.Command, args []string) error {
		verflag.PrintAndExitIfRequested()
		gate.Finalize()
		return run(command, args)
	}
}
