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

package controlplane

import (
	"context"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/server/flagz"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	cliflag "k8s.io/component-base/cli/flag"
	"k8s.io/component-base/cli/globalflag"
	basecompatibility "k8s.io/component-base/compatibility"
	componentfeaturegate "k8s.io/component-base/featuregate"
	"k8s.io/component-base/logs"
	logsapi "k8s.io/component-base/logs/api/v1"
	_ "k8s.io/component-base/metrics/prometheus/workqueue" // metrics of the controllers' queues
	"k8s.io/component-base/term"
	"k8s.io/component-base/version"
	"k8s.io/component-base/version/verflag"
	"k8s.io/klog/v2"
)

// NewCommand returns the command kube-apiserver. It takes every flag of
// upstream's and those of the feature lifecycle.
func NewCommand() *cobra.Command { return NewCommandFor(NewOptions()) }

// NewCommandFor is NewCommand with options of the caller's: a distribution, or a
// test, may look after features of its own (Options.Features).
func NewCommandFor(opts *Options) *cobra.Command {
	ctx := genericapiserver.SetupSignalContext()
	registry := opts.GenericServerRunOptions.ComponentGlobalsRegistry
	gate := registry.FeatureGateFor(basecompatibility.DefaultKubeComponent)
	cmd := &cobra.Command{
		Use: "kube-apiserver",
		Long: `The Kubernetes API server validates and stores the objects of the cluster and
serves them to all other components. This build also looks after the lifecycle
of feature gates (KEP-3920): it serves features.k8s.io and brings every change of
a gate to a clean end.`,
		SilenceUsage: true,
		PersistentPreRunE: func(*cobra.Command, []string) error {
			// Requests of the server to itself deserve no warnings.
			rest.SetDefaultWarningHandler(rest.NoWarnings{})
			return registry.Set()
		},
		RunE: func(cmd *cobra.Command, _ []string) error {
			verflag.PrintAndExitIfRequested()
			if err := logsapi.ValidateAndApply(opts.Logs, gate); err != nil {
				return err
			}
			cliflag.PrintFlags(cmd.Flags())
			completed, err := opts.Complete(ctx)
			if err != nil {
				return err
			}
			if errs := completed.Validate(); len(errs) > 0 {
				return utilerrors.NewAggregate(errs)
			}
			if mutable, ok := gate.(componentfeaturegate.MutableFeatureGate); ok {
				mutable.AddMetrics()
			}
			registry.AddMetrics()
			return Run(ctx, completed)
		},
		Args: noArguments,
	}
	cmd.SetContext(ctx)
	sets := opts.Flags()
	opts.Flagz = flagz.NamedFlagSetsReader{FlagSets: sets}
	verflag.AddFlags(sets.FlagSet("global"))
	globalflag.AddGlobalFlags(sets.FlagSet("global"), cmd.Name(), logs.SkipLoggingConfigurationFlags())
	for _, fs := range sets.FlagSets {
		cmd.Flags().AddFlagSet(fs)
	}
	columns, _, _ := term.TerminalSize(cmd.OutOrStdout())
	cliflag.SetUsageAndHelpFunc(cmd, sets, columns)
	return cmd
}

func noArguments(cmd *cobra.Command, args []string) error {
	for _, arg := range args {
		if arg != "" {
			return fmt.Errorf("%q does not take any arguments, got %q", cmd.CommandPath(), args)
		}
	}
	return nil
}

// Run serves until the context ends.
func Run(ctx context.Context, opts CompletedOptions) error {
	klog.InfoS("Starting kube-apiserver", "version", version.Get(),
		"GOGC", os.Getenv("GOGC"), "GOMAXPROCS", os.Getenv("GOMAXPROCS"), "GOTRACEBACK", os.Getenv("GOTRACEBACK"))
	if opts.InformerName == nil {
		name, err := cache.NewInformerName("kube-apiserver")
		if err != nil {
			return fmt.Errorf("naming the informers of kube-apiserver: %w; give a second server in this process an InformerName of its own in its options", err)
		}
		opts.InformerName = name
	}
	config, err := NewConfig(opts)
	if err != nil {
		return err
	}
	server, err := config.Complete().NewServer()
	if err != nil {
		return err
	}
	prepared, err := server.PrepareRun()
	if err != nil {
		return err
	}
	return prepared.Run(ctx)
}
