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

package feature

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/feature-lifecycle/client/clientset/versioned"
)

const (
	upgradeCheckLong = `Show whether the cluster may move to an adjacent minor version.

The answer is computed from the gates' specifications in this build of the plugin, so use the plugin of the newer of the two
versions. For the version after its own the plugin has a list of gates only, most often that of a pre-release. With this it
shows what would refuse to start and which values change; it never answers that the move is safe.

It lists every feature that is not safe, why, and what makes it safe:

  RefusesToStart   the target version does not have the gate or has it locked, and a process sets it to another value, or a
                   kube-apiserver names it in --central-features or --dynamic-features; or with what a process sets, a gate
                   would be on there without another one that it depends on: its binary would not start
  NotInAdjacentVersion   the feature is on, stored objects use it, and the target version has it off or not at all
  NeedsTasks       tasks for the version boundary have not run, or the feature is off and left objects behind that may not be
                   updated or deleted any more, or what is stored keeps servers of the target version from becoming ready
  InTransition     the feature is being turned on or off, or moved to another version, or is about to be, or is held by a user
  Unsettled        kube-apiservers do not agree on the value, or processes have a feature on that is off: unknown

Nothing is changed. Which objects use a feature is what the servers find at this moment. Objects and fields that the target version
does not read are listed through the API, as you. A cluster without Features, such as one of upstream's binaries, is examined for
these alone, and the rest is unknown.

With -f it answers before there is a cluster, from files: what components are configured with, arguments of workloads, and the files
of kubeadm, Cluster API, kOps, k3s, RKE2, Rancher, Talos Linux, Gardener and kind. For each setting of a gate it tells whether the
component of the target version starts with it. --path names gates in other files, such as values of Helm charts. Nothing is
connected to, and --to may be any version whose gates are known. What cannot be read is an error with its file and line.

Exit codes: 0 all features are safe, 1 some are not, 2 unknown for some, 3 the command failed.`

	upgradeCheckExample = `  # May the servers of a 1.36 cluster be replaced by those of 1.37?
  kubectl feature upgrade-check --to 1.37

  # May a 1.37 cluster go back?
  kubectl feature upgrade-check --to 1.36

  # The names of the features that are not safe
  kubectl feature upgrade-check --to 1.36 -o name

  # Before there is a cluster: do components of 1.37 start with what these files set?
  kubectl feature upgrade-check --to 1.37 -f clusters/

  # The same for what a chart makes, and for its values alone
  helm template chart/ | kubectl feature upgrade-check --to 1.37 -f -
  kubectl feature upgrade-check --to 1.37 -f values.yaml --path controlPlane.apiServer.featureGates=kube-apiserver

  # For a code host, which shows findings beside lines
  kubectl feature upgrade-check --to 1.37 -f clusters/ -o sarif`
)

var upgradeCheckFormats = []string{outputWide, "json", "yaml", outputName}

// upgradeCheckOptions are the options of upgrade-check.
type upgradeCheckOptions struct {
	to           string
	output       string
	allowMissing bool

	client versioned.Interface
	gates  gates
	bare   *bare
	genericiooptions.IOStreams
}

func newUpgradeCheck(b *base) *cobra.Command {
	o := &upgradeCheckOptions{IOStreams: b.IOStreams}
	files := &fileCheckOptions{IOStreams: b.IOStreams}
	cmd := &cobra.Command{
		Use:     "upgrade-check --to MINOR [-f FILE|DIRECTORY]...",
		Short:   "Show whether a cluster, or what files set, may move to another minor version",
		Long:    upgradeCheckLong,
		Example: upgradeCheckExample,
		Args:    noNames,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := required(cmd, "to", "--to=1.36"); err != nil {
				return err
			}
			if given, err := files.requested(cmd); err != nil {
				return err
			} else if given {
				files.to, files.output = o.to, o.output
				return files.run()
			}
			if err := o.complete(b); err != nil {
				return err
			}
			return o.run(cmd.Context())
		},
	}
	cmd.Flags().StringVar(&o.to, "to", "", "The minor version to move to, for example 1.37. It may be one above or below the cluster's.")
	complete(cmd, "to", b.adjacentVersions)
	cmd.Flags().StringVarP(&o.output, "output", "o", "", "Output format: json, yaml, name (of what is not safe), or wide (all features, one a line); with -f also sarif.")
	complete(cmd, "output", always(fileCheckFormats...))
	files.addFlags(cmd.Flags())
	cmd.Flags().BoolVar(&o.allowMissing, "allow-missing", false, "Do not count instances that never reported, such as kubelets without feature reports. What they set is not known.")
	return cmd
}

// complete makes the client from the flags.
func (o *upgradeCheckOptions) complete(b *base) (err error) {
	if ns := b.namespace(); ns != metav1.NamespaceSystem {
		return fmt.Errorf("this plugin knows the gates of Kubernetes, whose Features are in %s; those in %s are of a third party, whose versions are its own", metav1.NamespaceSystem, ns)
	}
	if o.client, err = b.client(); err != nil {
		return err
	}
	if o.bare, err = b.bare(); err != nil {
		return err
	}
	o.gates, err = buildGates()
	return err
}

// run checks, prints, and fails with the exit code.
func (o *upgradeCheckOptions) run(ctx context.Context) error {
	printer, err := printerFor(o.output)
	if err != nil {
		return err
	}
	c := &checker{client: o.client.FeaturesV1alpha1(), gates: o.gates, namespace: metav1.NamespaceSystem, allowMissing: o.allowMissing, bare: o.bare}
	result, err := c.check(ctx, o.to)
	if err != nil {
		return fmt.Errorf("checking a move to %s: %w", o.to, err)
	}
	if err := printer(o.Out, result); err != nil {
		return err
	}
	switch result.Safe {
	case metav1.ConditionTrue:
		return nil
	case metav1.ConditionFalse:
		return exitError(ExitNotSafe)
	default:
		return exitError(ExitUnknown)
	}
}

// printer writes a result in one format.
type printer func(io.Writer, *result) error
