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

package feature

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"slices"

	"k8s.io/cli-runtime/pkg/genericclioptions"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"sigs.k8s.io/yaml"
)

// side is one of the two that diff compares.
type side struct {
	// name is how it is called in the output.
	name string
	// read returns its features of a namespace.
	read func(ctx context.Context, namespace string) ([]v1alpha1.Feature, error)
}

// clusterSide reads a cluster, one of a number. kubeconfig and context may be empty,
// for those that are usual.
func (b *base) clusterSide(kubeconfig, context string, clusters int) side {
	flags := b.flags
	if clusters > 1 {
		flags = forOneOfSeveral(b.flags)
	}
	if kubeconfig != "" {
		flags.KubeConfig = &kubeconfig
	}
	if context != "" {
		flags.Context = &context
	}
	name := context
	if raw, err := flags.ToRawKubeConfigLoader().RawConfig(); err == nil {
		name = cmp.Or(name, raw.CurrentContext)
	}
	name = cmp.Or(name, "cluster")
	if kubeconfig != "" {
		name = kubeconfig + ":" + name
	}
	return side{name: name, read: clusterReader(b, flags)}
}

func clusterReader(b *base, flags *genericclioptions.ConfigFlags) func(context.Context, string) ([]v1alpha1.Feature, error) {
	return func(ctx context.Context, namespace string) ([]v1alpha1.Feature, error) {
		config, err := b.config(flags)
		if err != nil {
			return nil, err
		}
		client, err := b.connect(config)
		if err != nil {
			return nil, err
		}
		features, err := listFeatures(ctx, client, namespace)
		if err == nil && len(features) == 0 {
			return nil, fmt.Errorf("there are no Features in %s", namespace)
		}
		return features, err
	}
}

// forOneOfSeveral are the flags that hold for more than one cluster.
func forOneOfSeveral(all *genericclioptions.ConfigFlags) *genericclioptions.ConfigFlags {
	flags := genericclioptions.NewConfigFlags(true)
	flags.Namespace, flags.Timeout, flags.Insecure = all.Namespace, all.Timeout, all.Insecure
	flags.Impersonate, flags.ImpersonateUID, flags.ImpersonateGroup = all.Impersonate, all.ImpersonateUID, all.ImpersonateGroup
	flags.CacheDir, flags.DisableCompression = all.CacheDir, all.DisableCompression
	return flags
}

// fileSide reads what list printed.
func fileSide(path string, in io.Reader) side {
	name := path
	if path == "-" {
		name = "standard input"
	}
	return side{name: name, read: func(_ context.Context, namespace string) ([]v1alpha1.Feature, error) {
		var data []byte
		var err error
		if path == "-" {
			data, err = io.ReadAll(in)
		} else {
			data, err = os.ReadFile(path)
		}
		if err != nil {
			return nil, err
		}
		return parseFeatures(data, namespace)
	}}
}

// parseFeatures reads a list of features as kubectl or this plugin prints it, and
// keeps those of a namespace.
func parseFeatures(data []byte, namespace string) ([]v1alpha1.Feature, error) {
	var list v1alpha1.FeatureList
	if err := yaml.Unmarshal(data, &list); err != nil {
		return nil, fmt.Errorf("it is no list of features, as kubectl feature list -o json prints it: %w", err)
	}
	if list.Kind != "FeatureList" && list.Kind != "List" {
		return nil, fmt.Errorf("it has the kind %q; kubectl feature list -o json prints a FeatureList", list.Kind)
	}
	for _, f := range list.Items {
		if f.Kind != "Feature" || f.APIVersion != v1alpha1.SchemeGroupVersion.String() {
			return nil, fmt.Errorf("%s is a %s of %s, and not a Feature of %s", f.Name, orNone(f.Kind), orNone(f.APIVersion), v1alpha1.SchemeGroupVersion)
		}
	}
	features := slices.DeleteFunc(list.Items, func(f v1alpha1.Feature) bool { return f.Namespace != namespace })
	if len(features) == 0 {
		return nil, fmt.Errorf("it has no Features in %s", namespace)
	}
	slices.SortFunc(features, byName)
	return features, nil
}
