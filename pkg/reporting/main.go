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

package reporting

import (
	"context"
	"os"

	"github.com/spf13/cobra"

	"k8s.io/component-base/cli"
)

// Component says what a binary is.
type Component struct {
	// Name is the component's name in reports. Hollow nodes derive it from
	// --morph.
	Name string
	// Node is true for components of which each node has one.
	Node bool
}

// Main installs the layer, builds the command and runs it with a reporter
// beside it. It returns the exit code.
func Main(component Component, build func() *cobra.Command) int {
	gate := Install()
	command := build()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	process := &process{component: component, gate: gate, arguments: parseArguments(os.Args[1:])}
	// Every binary calls AddMetrics on its gate once command line and
	// configuration have been read; values are final then.
	gate.OnFinal(func() { process.start(ctx) })
	defer process.end()
	return cli.Run(command)
}
