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
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/sets"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
)

// side is one of the two that diff compares.
type side struct {
	// name is its name in the output.
	name string
	// read returns its features of a namespace.
	read func(ctx context.Context, namespace string) ([]v1alpha1.Feature, error)
}

// clusterSide reads a cluster, one of a number. kubeconfig and context may be empty,
// for those that are usual.
func (b *base) clusterSide(o *observing, kubeconfig, context string, clusters int) side {
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
	name := cmp.Or(contextName(flags), "cluster")
	if kubeconfig != "" {
		name = kubeconfig + ":" + name
	}
	return side{name: name, read: clusterReader(b, o, flags)}
}

func clusterReader(b *base, o *observing, flags *genericclioptions.ConfigFlags) func(context.Context, string) ([]v1alpha1.Feature, error) {
	return func(ctx context.Context, namespace string) ([]v1alpha1.Feature, error) {
		config, err := b.config(flags)
		if err != nil {
			return nil, err
		}
		client, err := b.connect(config)
		if err != nil {
			return nil, err
		}
		if client, err = b.orObserved(ctx, o, config, client); err != nil {
			return nil, err
		}
		features, err := listFeatures(ctx, client.FeaturesV1alpha1(), namespace)
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
	flags.Impersonate, flags.ImpersonateUID = all.Impersonate, all.ImpersonateUID
	flags.ImpersonateGroup, flags.ImpersonateUserExtra = all.ImpersonateGroup, all.ImpersonateUserExtra
	flags.CacheDir, flags.DisableCompression = all.CacheDir, all.DisableCompression
	return flags
}

// fileSide reads what list printed.
func fileSide(path string, in io.Reader) side {
	name := path
	if path == "-" {
		name = "standard input"
	}
	return side{name: name, read: func(ctx context.Context, namespace string) ([]v1alpha1.Feature, error) {
		data, err := unlessInterrupted(ctx, func() ([]byte, error) {
			if path == "-" {
				return io.ReadAll(in)
			}
			return os.ReadFile(path)
		})
		if err != nil {
			return nil, err
		}
		return parseFeatures(data, namespace)
	}}
}

// unlessInterrupted reads, until the context ends. A read of the standard input or of
// a pipe, as the shell's <(command) is, cannot be ended, so it is left behind then.
func unlessInterrupted(ctx context.Context, read func() ([]byte, error)) ([]byte, error) {
	type result struct {
		data []byte
		err  error
	}
	done := make(chan result, 1)
	go func() {
		data, err := read()
		done <- result{data, err}
	}()
	select {
	case r := <-done:
		return r.data, r.err
	case <-ctx.Done():
		return nil, errors.New("interrupted while reading")
	}
}

// parseFeatures reads lists of features as kubectl or this plugin prints them, one
// or more documents, and keeps the features of a namespace.
func parseFeatures(data []byte, namespace string) ([]v1alpha1.Feature, error) {
	var features []v1alpha1.Feature
	seen := sets.New[string]()
	documents := utilyaml.NewYAMLOrJSONDecoder(bytes.NewReader(data), 4096)
	for {
		var list v1alpha1.FeatureList
		var raw json.RawMessage
		err := documents.Decode(&raw)
		if errors.Is(err, io.EOF) {
			break
		}
		if text := string(bytes.TrimSpace(raw)); err == nil && (text == "" || text == "null") {
			continue // nothing between two separators
		}
		if err == nil {
			err = json.Unmarshal(raw, &list)
		}
		if err != nil {
			return nil, fmt.Errorf("it is no list of features, as kubectl feature list -o json prints it: %w", err)
		}
		if err := checkList(&list, seen); err != nil {
			return nil, err
		}
		features = append(features, list.Items...)
	}
	features = slices.DeleteFunc(features, func(f v1alpha1.Feature) bool { return f.Namespace != namespace })
	if len(features) == 0 {
		return nil, fmt.Errorf("it has no Features in %s", namespace)
	}
	slices.SortFunc(features, byName)
	return features, nil
}

// checkList fails for a list that no server printed. It remembers names from
// document to document.
func checkList(list *v1alpha1.FeatureList, seen sets.Set[string]) error {
	if list.Kind != "FeatureList" && list.Kind != "List" {
		return fmt.Errorf("it has the kind %q; kubectl feature list -o json prints a FeatureList", list.Kind)
	}
	for _, f := range list.Items {
		if f.Kind != "Feature" || f.APIVersion != v1alpha1.SchemeGroupVersion.String() {
			return fmt.Errorf("%s is a %s of %s, and not a Feature of %s", f.Name, orNone(f.Kind), orNone(f.APIVersion), v1alpha1.SchemeGroupVersion)
		}
		if f.Status.State != "" && !slices.Contains(allStates, f.Status.State) {
			return fmt.Errorf("feature %s has the state %q, which there is not; states are %s", f.Name, f.Status.State, strings.Join(texts(allStates), ", "))
		}
		key := f.Namespace + "/" + f.Name
		if seen.Has(key) {
			return fmt.Errorf("feature %s of %s is in it twice; leave one list in it", f.Name, f.Namespace)
		}
		seen.Insert(key)
	}
	return nil
}
