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
	"cmp"
	"context"
	"fmt"

	utilfeature "k8s.io/apiserver/pkg/util/feature"
	cliflag "k8s.io/component-base/cli/flag"
	"k8s.io/feature-lifecycle/lifecycle"
	"k8s.io/feature-lifecycle/lifecycle/control"
	"k8s.io/feature-lifecycle/lifecycle/transition"
	"k8s.io/kubernetes-features/pkg/featurelifecycle/catalog"
	"k8s.io/kubernetes-features/pkg/features"
	"k8s.io/kubernetes/cmd/kube-apiserver/app/options"
)

// Options are upstream's and those of the feature lifecycle. Run gives the informers the
// name kube-apiserver in metrics. cache.NewInformerName returns a name once in a process,
// so a second server in one needs an InformerName of its own.
type Options struct {
	*options.ServerRunOptions
	// Lifecycle are the periods of the server flow, each as it is: 0 is no default.
	Lifecycle transition.Settings
	// ClearThrough is how fields are cleared: ClearThroughStorage or ClearThroughAPI.
	ClearThrough string
	// Control names the features whose value does not come from each binary's
	// own command line.
	Control control.Options
	// Features are the declarations that the server flow handles. Those of a
	// distribution may be central or dynamic, too, if their gates exist. The
	// published OpenAPI documents lack the fields of their tasks while their
	// gates are off.
	Features []lifecycle.Feature
}

// Values of Options.ClearThrough.
const (
	ClearThroughStorage = "Storage"
	ClearThroughAPI     = "API"
)

// NewOptions returns options with defaults, and the declarations of Kubernetes'
// own features. The process's feature gates have to be in place.
func NewOptions() *Options {
	return &Options{ServerRunOptions: options.NewServerRunOptions(), Lifecycle: transition.DefaultSettings(), ClearThrough: ClearThroughStorage, Features: catalog.Features()}
}

// Flags returns all flags by section.
func (o *Options) Flags() cliflag.NamedFlagSets {
	sets := o.ServerRunOptions.Flags()
	fs := sets.FlagSet("feature lifecycle")
	fs.DurationVar(&o.Lifecycle.Settle, "feature-settle-period", o.Lifecycle.Settle,
		"How long no user of a feature may report the other value before a transition continues with its tasks.")
	fs.DurationVar(&o.Lifecycle.Grace, "feature-grace-period", o.Lifecycle.Grace,
		"How long a user of a feature that cannot be reached, or a process that should report and never did, holds a transition.")
	fs.BoolVar(&o.Lifecycle.RequireFullCoverage, "feature-require-full-coverage", o.Lifecycle.RequireFullCoverage,
		"Let processes that should report and never did hold transitions without end.")
	fs.StringVar(&o.ClearThrough, "feature-clear-through", o.ClearThrough,
		"How fields of features that are off are removed from objects: Storage edits what is stored in etcd, fast and without admission and webhooks; API patches each object. Tasks that declare so use the API anyway.")
	o.Control.AddFlags(fs)
	return sets
}

// CompletedOptions are options whose defaults are filled in.
type CompletedOptions struct {
	options.CompletedOptions
	Lifecycle    transition.Settings
	ClearThrough string
	Control      control.Options
	Features     []lifecycle.Feature
}

// Complete fills in defaults. Call it once the flags have been parsed.
func (o *Options) Complete(ctx context.Context) (CompletedOptions, error) {
	completed, err := o.ServerRunOptions.Complete(ctx)
	if err != nil {
		return CompletedOptions{}, err
	}
	return CompletedOptions{CompletedOptions: completed, Lifecycle: o.Lifecycle, ClearThrough: o.ClearThrough, Control: o.Control, Features: o.Features}, nil
}

// Validate returns what is wrong with the options.
func (o CompletedOptions) Validate() []error {
	errs := append(o.CompletedOptions.Validate(), validateSettings(o.Lifecycle)...)
	if o.ClearThrough != ClearThroughStorage && o.ClearThrough != ClearThroughAPI {
		errs = append(errs, fmt.Errorf("--feature-clear-through is %q: use %s or %s", o.ClearThrough, ClearThroughStorage, ClearThroughAPI))
	}
	return append(errs, o.validateControl(utilfeature.DefaultMutableFeatureGate, utilfeature.DefaultFeatureGate.Enabled(features.FeatureLifecycle), o.APIEnablement.RuntimeConfig)...)
}

// validateSettings returns errors about flags that cannot work, by the flags'
// names.
func validateSettings(settings transition.Settings) []error {
	flags := map[string]string{"Settle": "--feature-settle-period", "Grace": "--feature-grace-period"}
	var errs []error
	for _, invalid := range settings.Validate() {
		named := *invalid
		named.Field = cmp.Or(flags[invalid.Field], "Lifecycle."+invalid.Field)
		errs = append(errs, &named)
	}
	return errs
}

// explicit makes the settings of flags, of which each counts as it is, those of a
// controller, for which 0 is what was left out.
func explicit(settings transition.Settings) transition.Settings {
	if settings.Grace == 0 {
		settings.Grace = transition.None
	}
	if settings.KeepUnknownMinors == 0 {
		settings.KeepUnknownMinors = transition.None
	}
	return settings
}
