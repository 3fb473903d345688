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
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilversion "k8s.io/apimachinery/pkg/util/version"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
)

// completionTimeout limits the time for which a shell waits for the cluster's
// names. Completion does not wait for a server that does not respond.
const completionTimeout = 3 * time.Second

// known are the Features of a namespace, for completion; false when they cannot be
// had in time.
func (b *base) known(ctx context.Context, namespace string) ([]v1alpha1.Feature, bool) {
	client, err := b.client()
	if err != nil {
		return nil, false
	}
	ctx, cancel := context.WithTimeout(ctx, b.completionTimeout)
	defer cancel()
	list, err := client.FeaturesV1alpha1().Features(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, false
	}
	return list.Items, true
}

// completeNames completes the names of features that fit and are not there yet.
func (b *base) completeNames(fits func(*v1alpha1.Feature) bool) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, begun string) ([]cobra.Completion, cobra.ShellCompDirective) {
		features, ok := b.known(cmd.Context(), b.namespace())
		if !ok {
			return nil, cobra.ShellCompDirectiveError
		}
		var names []cobra.Completion
		for i := range features {
			feature := &features[i]
			if strings.HasPrefix(feature.Name, begun) && fits(feature) && !slices.Contains(args, feature.Name) {
				names = append(names, cobra.CompletionWithDesc(feature.Name, printable(string(feature.Status.State))))
			}
		}
		return names, cobra.ShellCompDirectiveNoFileComp
	}
}

// completeName completes the only argument.
func (b *base) completeName(fits func(*v1alpha1.Feature) bool) cobra.CompletionFunc {
	names := b.completeNames(fits)
	return func(cmd *cobra.Command, args []string, begun string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return names(cmd, args, begun)
	}
}

// valuesOf finds what a flag may be set to.
type valuesOf func(cmd *cobra.Command, args []string) []string

// complete completes the value of a flag of a command.
func complete(cmd *cobra.Command, flag string, values valuesOf) {
	_ = cmd.RegisterFlagCompletionFunc(flag, func(cmd *cobra.Command, args []string, begun string) ([]cobra.Completion, cobra.ShellCompDirective) {
		return beginning(values(cmd, args), begun), cobra.ShellCompDirectiveNoFileComp
	})
}

// completeList completes the last of the values that a flag has, which commas
// separate, with one that is not among them.
func completeList(cmd *cobra.Command, flag string, values valuesOf) {
	_ = cmd.RegisterFlagCompletionFunc(flag, func(cmd *cobra.Command, args []string, begun string) ([]cobra.Completion, cobra.ShellCompDirective) {
		before := begun[:strings.LastIndex(begun, ",")+1]
		given := strings.Split(before, ",")
		var left []cobra.Completion
		for _, v := range beginning(values(cmd, args), begun[len(before):]) {
			if !containsFold(given, v) {
				left = append(left, before+v)
			}
		}
		return left, cobra.ShellCompDirectiveNoFileComp
	})
}

// beginning are the values that begin with what was written, whatever the case.
func beginning(values []string, begun string) []cobra.Completion {
	return slices.DeleteFunc(slices.Clone(values), func(v string) bool {
		return len(v) < len(begun) || !strings.EqualFold(v[:len(begun)], begun)
	})
}

// always are values that do not depend on anything.
func always(values ...string) valuesOf {
	return func(*cobra.Command, []string) []string { return values }
}

// namespaces returns those that have Features.
func (b *base) namespaces(cmd *cobra.Command, _ []string) []string {
	features, _ := b.known(cmd.Context(), metav1.NamespaceAll)
	return distinct(features, func(f *v1alpha1.Feature) []string { return []string{f.Namespace} })
}

// components returns those that use the named feature, or any feature; those
// of Kubernetes where no server can be reached.
func (b *base) components(cmd *cobra.Command, args []string) []string {
	features, _ := b.known(cmd.Context(), b.namespace())
	if names := namesOf(args); len(names) > 0 {
		features = slices.DeleteFunc(features, func(f v1alpha1.Feature) bool { return !slices.Contains(names, f.Name) })
	}
	used := distinct(features, func(f *v1alpha1.Feature) []string {
		var all []string
		for _, use := range f.Status.Uses {
			all = append(all, use.Component)
		}
		return all
	})
	if len(used) == 0 {
		return builtTogether
	}
	return used
}

// adjacentVersions returns the minor versions that the cluster may move to.
func (b *base) adjacentVersions(cmd *cobra.Command, _ []string) []string {
	features, _ := b.known(cmd.Context(), b.namespace())
	return distinct(features, func(f *v1alpha1.Feature) []string {
		version, err := utilversion.ParseMajorMinor(f.Status.Version)
		if err != nil {
			return nil
		}
		return []string{version.SubtractMinor(1).String(), version.AddMinor(1).String()}
	})
}

// distinct returns the values of the features, each once and in order.
func distinct(features []v1alpha1.Feature, of func(*v1alpha1.Feature) []string) []string {
	var all []string
	for i := range features {
		all = append(all, of(&features[i])...)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// completeConnection completes the flags of a connection, from the kubeconfig and
// the cluster that it names.
func (b *base) completeConnection(cmd *cobra.Command) {
	complete(cmd, "namespace", b.namespaces)
	complete(cmd, "context", b.contexts())
	complete(cmd, "cluster", b.fromKubeconfig(func(c *clientcmdapi.Config) []string { return keys(c.Clusters) }))
	complete(cmd, "user", b.fromKubeconfig(func(c *clientcmdapi.Config) []string { return keys(c.AuthInfos) }))
}

func (b *base) contexts() valuesOf {
	return b.fromKubeconfig(func(c *clientcmdapi.Config) []string { return keys(c.Contexts) })
}

func (b *base) fromKubeconfig(names func(*clientcmdapi.Config) []string) valuesOf {
	return func(*cobra.Command, []string) []string {
		config, err := b.flags.ToRawKubeConfigLoader().RawConfig()
		if err != nil {
			return nil
		}
		return names(&config)
	}
}

func keys[T any](m map[string]T) []string { return slices.Sorted(maps.Keys(m)) }
