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

package control

import (
	"fmt"
	"slices"

	"github.com/spf13/pflag"

	utilversion "k8s.io/apimachinery/pkg/util/version"
	componentfeaturegate "k8s.io/component-base/featuregate"
	"k8s.io/feature-lifecycle/agent"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/feature-lifecycle/featuregate"
	"k8s.io/feature-lifecycle/lifecycle"
)

// Names of the flags.
const (
	CentralFlag = "central-features"
	DynamicFlag = "dynamic-features"
)

// Options name the features whose value is not decided by the command line of each
// process. All servers of a control plane, or replicas of an operator, have to name the
// same. While they differ, the condition Consistent is False and no transition starts. The
// zero value names none. Once the flags are parsed, all methods are safe for concurrent
// use.
type Options struct {
	// Central features have the servers' own value in all processes from their start.
	Central []string
	// Dynamic features may also change through the API (spec.enabled) while processes
	// run.
	Dynamic []string
}

// AddFlags adds --central-features and --dynamic-features.
func (o *Options) AddFlags(fs *pflag.FlagSet) {
	fs.StringSliceVar(&o.Central, CentralFlag, o.Central,
		"Feature gates that all processes take from this server when they start, unless their own command line sets them. Only those whose author permits it. The same list on all servers.")
	fs.StringSliceVar(&o.Dynamic, DynamicFlag, o.Dynamic,
		"Feature gates that may also be changed through the API (spec.enabled of the Feature) while processes run. Only those whose author permits it. The same list on all servers.")
}

// Names returns the features that are named, each once, in unspecified order.
func (o Options) Names() []string {
	var names []string
	for _, name := range slices.Concat(o.Central, o.Dynamic) {
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// Of returns the control of a feature. A feature that is named as both is dynamic, which
// includes central.
func (o Options) Of(feature string) v1alpha1.FeatureControl {
	switch {
	case slices.Contains(o.Dynamic, feature):
		return v1alpha1.ControlDynamic
	case slices.Contains(o.Central, feature):
		return v1alpha1.ControlCentral
	default:
		return v1alpha1.ControlLocal
	}
}

// Gate is the part of a server's gate that Validate needs. Upstream's gates and
// *featuregate.Gate implement it.
type Gate interface {
	GetAll() map[componentfeaturegate.Feature]componentfeaturegate.FeatureSpec
	ExplicitlySet(componentfeaturegate.Feature) bool
	EmulationVersion() *utilversion.Version
}

// Constraints limit the features that Options may name.
type Constraints struct {
	// Namespace contains the Features. Messages name it.
	Namespace string
	// Gate has the features; the values of the command line have to be set already.
	Gate Gate
	// Declared are the declarations of the authors.
	Declared []lifecycle.Feature
	// Refuse returns, as "has …", why the value of a feature must not come from
	// elsewhere, whatever is declared; "" if it may. An example is a feature with flags
	// of its own that are refused while its gate is off. nil refuses none.
	Refuse func(feature string) string
}

// Validate returns an error for each feature that cannot be what it is named as: its gate
// is unknown, locked, or set by the server itself, or its author does not permit it. Each
// error names the flag, the feature and the next step.
func (o Options) Validate(against Constraints) []error {
	var errs []error
	known := against.Gate.GetAll()
	for _, named := range []struct {
		flag     string
		features []string
	}{{CentralFlag, o.Central}, {DynamicFlag, o.Dynamic}} {
		for i, feature := range named.features {
			if slices.Contains(named.features[:i], feature) {
				continue
			}
			spec, ok := known[componentfeaturegate.Feature(feature)]
			switch {
			case !ok:
				errs = append(errs, fmt.Errorf("--%s: no feature gate %q is known at the emulation version %s; names are exact, kubectl get features -n %s lists them", named.flag, feature, against.Gate.EmulationVersion(), against.Namespace))
			case named.flag == DynamicFlag && against.Gate.ExplicitlySet(componentfeaturegate.Feature(feature)):
				errs = append(errs, fmt.Errorf("--%s: feature gate %s is set by --feature-gates of this server, too, which would win over the API; remove it there and set spec.enabled of Feature %s in %s", named.flag, feature, feature, against.Namespace))
			case spec.LockToDefault:
				errs = append(errs, fmt.Errorf("--%s: feature gate %s is locked to %t and cannot be set; remove it from the flag", named.flag, feature, spec.Default))
			default:
				if reason := against.refusal(named.flag, feature); reason != "" {
					errs = append(errs, fmt.Errorf("--%s: feature %s %s", named.flag, feature, reason))
				}
			}
		}
	}
	return errs
}

// refusal returns why a feature may not be what a flag names it as, "" if it may.
// Permission to change the value at any time includes permission to set it from elsewhere.
func (c Constraints) refusal(flag, feature string) string {
	const instead = "; set --feature-gates on each component instead"
	if c.Refuse != nil {
		if reason := c.Refuse(feature); reason != "" {
			return reason + instead
		}
	}
	declared := lifecycle.Local
	if i := slices.IndexFunc(c.Declared, func(f lifecycle.Feature) bool { return string(f.Name) == feature }); i >= 0 {
		declared = c.Declared[i].Control
	}
	switch {
	case declared == lifecycle.Dynamic, declared == lifecycle.Central && flag == CentralFlag:
		return ""
	case declared == lifecycle.Central:
		return "is declared as one that binaries query only when they start, so its value cannot change while they run; name it in --" + CentralFlag + " instead"
	default:
		return "is not declared as one whose value may come from elsewhere (Control of its lifecycle.Feature)" + instead
	}
}

// Follows returns true for the values that a server itself takes from the API: those of
// dynamic features that were set there. It is meant for Filter of the process's values
// (agent.SyncerConfig). The servers decide all other values. A server that took these from the
// API as well would keep for good what it once reported itself.
func (o Options) Follows(feature *v1alpha1.Feature) bool {
	configured := feature.Status.Configured
	return o.Of(feature.Name) == v1alpha1.ControlDynamic && configured != nil && configured.Source == v1alpha1.SourceAPI
}

// Source returns what a server reports: the observations of the given source, which is
// the gate, with the control of each feature.
func (o Options) Source(inner agent.Source) agent.Source { return controlled{inner, o} }

// controlled adds the control of each feature to the observations of a gate.
type controlled struct {
	agent.Source
	options Options
}

// Observations returns those of the gate with the control of each feature.
func (c controlled) Observations() []featuregate.Observation {
	observations := slices.Clone(c.Source.Observations())
	for i := range observations {
		if control := c.options.Of(observations[i].Name); control != v1alpha1.ControlLocal {
			observations[i].Control = control
		}
	}
	return observations
}
