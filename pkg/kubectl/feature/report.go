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

	"github.com/spf13/cobra"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/feature-lifecycle/client/clientset/versioned"
)

const (
	reportLong = `Write a page about all features, to look at in a browser.

The page is one file that needs no network and no server. It begins with what needs attention, and shows what moves and why, what is
on, and who has which value: a matrix of features against components in which those that differ stand out. Search and filters are in
its address, so that a link shows what was looked at; printed, it shows what the filters leave.

Without permission to list FeatureReports, which administrators have, the page does not show how many processes reported.

Exit codes: 0 written; 3 the command failed.`

	reportExample = `  # The features of Kubernetes
  kubectl feature report -o html > features.html

  # Those of operators, too
  kubectl feature report -o html -A > features.html`
)

// reportOptions are the options of report.
type reportOptions struct {
	output        string
	allNamespaces bool
	observing     observing

	namespace string
	cluster   string
	client    versioned.Interface
	genericiooptions.IOStreams
}

func newReport(b *base) *cobra.Command {
	o := &reportOptions{IOStreams: b.IOStreams}
	cmd := &cobra.Command{
		Use:     "report",
		Short:   "Write a page about all features, to look at in a browser",
		Long:    reportLong,
		Example: reportExample,
		Args:    noNames,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			if err := checkOutput(o.output, "html"); err != nil {
				return err
			}
			if o.namespace = b.namespace(); o.allNamespaces {
				o.namespace = metav1.NamespaceAll
			}
			o.cluster = contextName(b.flags)
			if o.client, _, err = b.readers(cmd.Context(), &o.observing); err != nil {
				return err
			}
			return o.run(cmd.Context())
		},
	}
	cmd.Flags().StringVarP(&o.output, "output", "o", "html", "Output format: html.")
	complete(cmd, "output", always("html"))
	o.observing.addFlags(cmd.Flags())
	cmd.Flags().BoolVarP(&o.allNamespaces, "all-namespaces", "A", false, "The features of all namespaces, those of operators among them.")
	return cmd
}

// run reads the features and writes the page.
func (o *reportOptions) run(ctx context.Context) error {
	features, err := listFeatures(ctx, o.client.FeaturesV1alpha1(), o.namespace)
	if err != nil {
		return err
	}
	all, err := gatherReports(ctx, o.client, o.namespace)
	if err != nil {
		return err
	}
	p := pageOf(features, all)
	p.Cluster, p.Namespace = o.cluster, o.namespace
	// The page is worth having without it.
	p.Version = "of a version that is not known"
	if all.observed != nil {
		p.Version = all.observed.Version
	} else if v, err := o.client.Discovery().ServerVersion(); err == nil {
		p.Version = v.GitVersion
	}
	return writePage(o.Out, p)
}
