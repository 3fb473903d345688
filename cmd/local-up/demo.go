//go:build linux

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
	"time"

	"github.com/spf13/cobra"

	"k8s.io/kubernetes-features/cmd/local-up/demo"
	"k8s.io/kubernetes-features/test/utils/examplegates"
	"k8s.io/kubernetes-features/test/utils/localcluster"
)

func newDemoCommand(config *localcluster.Config) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Turn a feature gate on, use it, turn it off, and see that nothing is left",
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return runDemo(cmd.Context(), config) },
	}
	addUpFlags(cmd, config)
	return cmd
}

// runDemo runs the demo on a fresh cluster. An existing cluster is removed: the
// demo needs one on which the feature was never used.
func runDemo(ctx context.Context, config *localcluster.Config) error {
	begun := time.Now()
	if config.Nodes < demo.Nodes {
		return fmt.Errorf("--nodes is %d, and the demonstration needs %d nodes: one that uses the feature, and one that does not", config.Nodes, demo.Nodes)
	}
	if err := with(config, func(c *localcluster.Cluster) error {
		if !c.Exists() {
			return nil
		}
		fmt.Printf("Ending the cluster in %s and removing its data: the demonstration starts with a fresh one\n", c.DataDir())
		if err := c.Down(ctx); err != nil {
			return err
		}
		return c.RemoveData()
	}); err != nil {
		return err
	}
	// The story is about command lines.
	config.Control = localcluster.ControlOptions{}
	config.FeatureGates = examplegates.Cleared + "=true"
	return with(config, func(c *localcluster.Cluster) error {
		fmt.Printf("Starting a cluster with %d nodes and --feature-gates=%s\n", config.Nodes, config.FeatureGates)
		if err := c.Up(ctx); err != nil {
			return howToEnd(c, err)
		}
		if err := demo.Run(ctx, c, os.Stdout); err != nil {
			return fmt.Errorf("the demonstration failed: %w; the cluster is still there, its logs are in %s/logs; end it with \"%s\"", err, c.DataDir(), c.Command("down"))
		}
		fmt.Printf("\nDone after %.0f s. The cluster stays up.\n", time.Since(begun).Seconds())
		greet(c)
		return nil
	})
}
