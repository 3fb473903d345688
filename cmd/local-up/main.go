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

// Package main runs a local cluster with which feature gates can be tried: a
// real control plane and hollow nodes, as processes on loopback.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"k8s.io/kubernetes-features/test/utils/examplegates"
	"k8s.io/kubernetes-features/test/utils/localcluster"
)

const (
	// exitInUse is the exit code when nothing was done because the data directory is in
	// use: by a cluster that runs, or by another local-up.
	exitInUse = 3
	// exitNoCluster is the exit code when there is no cluster.
	exitNoCluster = 4
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	if err := newCommand().ExecuteContext(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "Error:", err)
		stop()
		os.Exit(exitCode(err))
	}
}

func exitCode(err error) int {
	switch {
	case errors.Is(err, localcluster.ErrInUse):
		return exitInUse
	case errors.Is(err, localcluster.ErrNoCluster):
		return exitNoCluster
	default:
		return 1
	}
}

func newCommand() *cobra.Command {
	config := &localcluster.Config{}
	root := &cobra.Command{
		Use:           "local-up",
		Short:         "Run a Kubernetes cluster on this machine to try feature gates with",
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	fs := root.PersistentFlags()
	fs.StringVar(&config.DataDir, "data-dir", localcluster.DefaultDataDir, "Where the cluster keeps everything.")
	fs.StringVar(&config.BinDir, "bin-dir", localcluster.DefaultBinDir, "Where the binaries are.")
	root.AddCommand(newUpCommand(config), newDownCommand(config), newRestartCommand(config), newStatusCommand(config), newDemoCommand(config), newEtcdCommand(), newRuntimeCommand())
	return root
}

// with opens the cluster for one command, or makes its directory.
func with(config *localcluster.Config, run func(*localcluster.Cluster) error) error {
	return opened(localcluster.Open, config, run)
}

// withExisting opens a cluster that was started before for one command.
func withExisting(config *localcluster.Config, run func(*localcluster.Cluster) error) error {
	return opened(localcluster.OpenExisting, config, run)
}

func opened(open func(localcluster.Config) (*localcluster.Cluster, error), config *localcluster.Config, run func(*localcluster.Cluster) error) error {
	config.Progress = os.Stdout
	c, err := open(*config)
	if err != nil {
		return err
	}
	defer c.Close()
	return run(c)
}

func newUpCommand(config *localcluster.Config) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "up",
		Short: "Start the cluster; data of an earlier run is kept",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return with(config, func(c *localcluster.Cluster) error {
				begun := time.Now()
				fmt.Printf("Starting a cluster with %d nodes\n", config.Nodes)
				if err := c.Up(cmd.Context()); err != nil {
					return howToEnd(c, err)
				}
				fmt.Printf("Cluster ready after %.1f s\n", time.Since(begun).Seconds())
				greet(c)
				return nil
			})
		},
	}
	addUpFlags(cmd, config)
	return cmd
}

// howToEnd adds to an error how to end what was started before it.
func howToEnd(c *localcluster.Cluster, err error) error {
	if alive, _ := c.Running(); len(alive) == 0 || errors.Is(err, localcluster.ErrInUse) {
		return err
	}
	return fmt.Errorf("%w\nWhat was started runs; end it with \"%s\"", err, c.Command("down"))
}

func addUpFlags(cmd *cobra.Command, config *localcluster.Config) {
	fs := cmd.Flags()
	fs.IntVar(&config.Nodes, "nodes", 3, "How many nodes the cluster has.")
	fs.IntVar(&config.APIServerPort, "apiserver-port", 0, "Port of kube-apiserver; 0 means the one it had, or a free one.")
	if cmd.Name() == "up" {
		fs.StringVar(&config.FeatureGates, "feature-gates", "", "Feature gates of all components: A=true,B=false.")
		config.Control.CentralFeatures = central
		config.Control.DynamicFeatures = dynamic
		addControlFlags(fs, &config.Control)
	}
}

// Features to try without any flag: several components query them soon after
// they start, they need nothing else, and each version that can be emulated has
// them, too. The first of each list is off by default.
var (
	central = []string{examplegates.Central, "SchedulerAsyncPreemption"}
	dynamic = []string{examplegates.Dynamic, "PodDeletionCost"}
)

// addControlFlags adds the flags for the control plane alone. The options have the
// defaults.
func addControlFlags(fs *pflag.FlagSet, o *localcluster.ControlOptions) {
	fs.StringVar(&o.FeatureGates, "server-feature-gates", o.FeatureGates, "Feature gates of kube-apiserver alone, for central features: A=true,B=false.")
	fs.StringSliceVar(&o.CentralFeatures, "central-features", o.CentralFeatures, "Features that have kube-apiserver's value in all components.")
	fs.StringSliceVar(&o.DynamicFeatures, "dynamic-features", o.DynamicFeatures, "Features that can be changed through the API; those that a feature gate sets are left out.")
	fs.StringSliceVar(&o.RuntimeConfig, "runtime-config", o.RuntimeConfig, "APIs that kube-apiserver serves beside those of the default, for example scheduling.k8s.io/v1beta1=true.")
	fs.StringVar(&o.EmulatedVersion, "emulated-version", o.EmulatedVersion, "The minor version that the control plane emulates, for example 1.36; empty for its own.")
}

// greet prints how to use the cluster.
func greet(c *localcluster.Cluster) { fmt.Print(greeting(c)) }

func greeting(c *localcluster.Cluster) string {
	return fmt.Sprintf(`
Kubeconfig: %[1]s
Try:
  %[2]s get features -n kube-system
  %[2]s get featurereports -n kube-system -o wide
  %[2]s explain feature.status.tasks
End it:
  %[3]s
Change gates:
  %[4]s
`, c.Kubeconfig("admin"), c.Kubectl(), c.Command("down"), c.Command("restart", "--feature-gates=A=true"))
}

func newDownCommand(config *localcluster.Config) *cobra.Command {
	return &cobra.Command{
		Use:   "down",
		Short: "End every process of the cluster; its data stays",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return withExisting(config, func(c *localcluster.Cluster) error {
				if len(c.Processes()) == 0 {
					fmt.Printf("The cluster in %s is not running\n", c.DataDir())
					return nil
				}
				if err := c.Down(cmd.Context()); err != nil {
					return err
				}
				fmt.Printf("Cluster ended; its data stays in %s\n", c.DataDir())
				return nil
			})
		},
	}
}

func newRestartCommand(config *localcluster.Config) *cobra.Command {
	var gates string
	var components []string
	var control localcluster.ControlOptions
	cmd := &cobra.Command{
		Use:   "restart",
		Short: "Restart components, all but etcd by default, possibly with other feature gates",
		Long: `Restart components, all but etcd by default. What a flag sets holds from now on; what none sets stays as it was.
A component that is not restarted continues unchanged.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return withExisting(config, func(c *localcluster.Cluster) error {
				var changed *string
				if cmd.Flags().Changed("feature-gates") {
					changed = &gates
				}
				c.SetControl(override(c.Control(), control, cmd.Flags().Changed))
				if err := c.Restart(cmd.Context(), changed, components...); err != nil {
					return howToEnd(c, err)
				}
				fmt.Println("Restarted")
				return nil
			})
		},
	}
	cmd.Flags().StringVar(&gates, "feature-gates", "", "Feature gates from now on; without the flag they stay as they are.")
	cmd.Flags().StringSliceVar(&components, "component", nil, "Restart only this component, for example kube-apiserver or kubelet/node-1.")
	addControlFlags(cmd.Flags(), &control)
	return cmd
}

// override replaces what flags set.
func override(was, flags localcluster.ControlOptions, changed func(flag string) bool) localcluster.ControlOptions {
	if changed("server-feature-gates") {
		was.FeatureGates = flags.FeatureGates
	}
	if changed("central-features") {
		was.CentralFeatures = flags.CentralFeatures
	}
	if changed("dynamic-features") {
		was.DynamicFeatures = flags.DynamicFeatures
	}
	if changed("runtime-config") {
		was.RuntimeConfig = flags.RuntimeConfig
	}
	if changed("emulated-version") {
		was.EmulatedVersion = flags.EmulatedVersion
	}
	return was
}

func newStatusCommand(config *localcluster.Config) *cobra.Command {
	return &cobra.Command{
		Use:   "status",
		Short: "Show which processes of the cluster run",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			return withExisting(config, func(c *localcluster.Cluster) error {
				for _, p := range c.Processes() {
					condition := "running"
					if !p.Alive() {
						condition = "DEAD, see " + p.LogFile
					}
					fmt.Printf("%-28s %8d  %s\n", p.Name, p.PID, condition)
				}
				_, dead := c.Running()
				switch {
				case len(c.Processes()) == 0:
					return fmt.Errorf("the cluster in %s is not running; start it with \"%s\"", c.DataDir(), c.Command("up", fmt.Sprintf("--nodes=%d", c.Nodes())))
				case len(dead) > 0:
					return fmt.Errorf("%s should run and do not; end the others with \"%s\"", strings.Join(dead, ", "), c.Command("down"))
				default:
					return nil
				}
			})
		},
	}
}
