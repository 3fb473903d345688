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
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/server/resourceconfig"
	serverstorage "k8s.io/apiserver/pkg/server/storage"
	cliflag "k8s.io/component-base/cli/flag"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/feature-lifecycle/lifecycle"
	"k8s.io/feature-lifecycle/lifecycle/control"
	"k8s.io/kubernetes-features/pkg/featurelifecycle/catalog"
	"k8s.io/kubernetes-features/pkg/features"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	"k8s.io/kubernetes/pkg/controlplane"
)

// controlRules validates the flags: with the declarations of this server's
// features and, for those of Kubernetes, the catalog's entries about their
// configuration.
func controlRules(gate control.Gate, declared []lifecycle.Feature) control.Constraints {
	entries := catalog.All()
	return control.Constraints{
		Namespace: metav1.NamespaceSystem,
		Gate:      gate,
		Declared:  declared,
		Refuse: func(feature string) string {
			i := slices.IndexFunc(entries, func(e catalog.Entry) bool { return string(e.Name) == feature })
			if i < 0 || entries[i].Config == "" {
				return ""
			}
			return fmt.Sprintf("has configuration of its own (%s) that a binary refuses while the gate is off, so a value from elsewhere could keep one from starting", entries[i].Config)
		},
	}
}

// validateControl returns why features cannot be central or dynamic.
func (o CompletedOptions) validateControl(gate control.Gate, lifecycleEnabled bool, runtimeConfig cliflag.ConfigurationMap) []error {
	if len(o.Control.Names()) == 0 {
		return nil
	}
	if !lifecycleEnabled {
		return []error{fmt.Errorf("--%s and --%s need --feature-gates=%s=true", control.CentralFlag, control.DynamicFlag, features.FeatureLifecycle)}
	}
	errs := o.Control.Validate(controlRules(gate, o.Features))
	resources, err := resourceconfig.MergeAPIResourceConfigs(resourceConfig(true), runtimeConfig, legacyscheme.Scheme)
	if err != nil {
		// Upstream's own validation may be silent about it; its start is not.
		return append(errs, fmt.Errorf("--runtime-config: %w", err))
	}
	off := slices.DeleteFunc(slices.Clone(flowResources), func(resource string) bool {
		return resources.ResourceEnabled(v1alpha1.SchemeGroupVersion.WithResource(resource))
	})
	if len(off) > 0 {
		errs = append(errs, fmt.Errorf("--%s and --%s need the API that components take values from, and --runtime-config switches off %s of %s; switch it on there, or leave the flags out",
			control.CentralFlag, control.DynamicFlag, strings.Join(off, " and "), v1alpha1.SchemeGroupVersion))
	}
	return errs
}

// flowResources are the resources that the server flow needs.
var flowResources = []string{"features", "featurereports"}

// resourceConfig has the resources that are served unless --runtime-config
// overrides it.
func resourceConfig(lifecycleEnabled bool) *serverstorage.ResourceConfig {
	resources := controlplane.DefaultAPIResourceConfigSource()
	if lifecycleEnabled {
		resources.EnableVersions(v1alpha1.SchemeGroupVersion)
	}
	return resources
}
