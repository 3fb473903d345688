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

// Package control is the side of a server that decides values for others: which
// of its features are Central and which are Dynamic (KEP-3920, "Values set
// centrally, values that change"). kube-apiserver uses it, and so does an operator
// whose own processes, in its own namespace, take the values of features from the
// API. Those that only take them need package values alone.
//
// A server reads Options from its command line (AddFlags), holds them against what
// the authors of the features permit (Validate), says in its report who decides
// (Source), and takes itself what people ask for through the API (Follows). The
// server flow (lifecycle/controller) writes what all servers report into the
// Features. Nothing in here talks to anybody.
package control

import (
	"fmt"
	"slices"

	"github.com/spf13/pflag"

	utilversion "k8s.io/apimachinery/pkg/util/version"
	componentfeaturegate "k8s.io/component-base/featuregate"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/feature-lifecycle/featuregate"
	"k8s.io/feature-lifecycle/lifecycle"
	"k8s.io/feature-lifecycle/report"
)

// Names of the flags.
const (
	CentralFlag = "central-features"
	DynamicFlag = "dynamic-features"
)

// Options name the features whose value others than each process's own command
// line decide. All servers of a control plane, or replicas of an operator, have to
// name the same; while they do not, the condition Consistent says so and nothing
// changes. The zero value names none. Once the flags have been parsed, all methods
// are safe for concurrent use.
type Options struct {
	// Central features have the servers' own value in all processes from their
	// start on.
	Central []string
	// Dynamic features may also be changed through the API (spec.enabled) while
	// processes run.
	Dynamic []string
}

// AddFlags adds --central-features and --dynamic-features.
func (o *Options) AddFlags(fs *pflag.FlagSet) {
	fs.StringSliceVar(&o.Central, CentralFlag, o.Central,
		"Feature gates that all processes take from this server when they start, unless their own command line sets them. Only those whose author permits it. The same list on all servers.")
	fs.StringSliceVar(&o.Dynamic, DynamicFlag, o.Dynamic,
		"Feature gates that may also be changed through the API (spec.enabled of the Feature) while processes run. Only those whose author permits it. The same list on all servers.")
}

// Names are the features that are named, each once, in no order that matters.
func (o Options) Names() []string {
	var names []string
	for _, name := range slices.Concat(o.Central, o.Dynamic) {
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// Of is who decides the value of a feature. A feature that is named as both is
// dynamic, which says more.
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

// Gate is what Validate asks of a server's gate. Upstream's gates and
// *featuregate.Gate are ones.
type Gate interface {
	GetAll() map[componentfeaturegate.Feature]componentfeaturegate.FeatureSpec
	ExplicitlySet(componentfeaturegate.Feature) bool
	EmulationVersion() *utilversion.Version
}

// Constraints are what Validate holds options against.
type Constraints struct {
	// Namespace has the Features. Messages name it.
	Namespace string
	// Gate has the features; what its command line sets has to be set.
	Gate Gate
	// Declared are the declarations of the authors.
	Declared []lifecycle.Feature
	// Refuse says, as "has …", why the value of a feature must not come from
	// elsewhere whatever is declared, "" if nothing speaks against it: it has
	// flags of its own that are refused while its gate is off, say. nil means
	// that nothing does.
	Refuse func(feature string) string
}

// Validate returns why features cannot be what they are named as, an error for
// each: their gates are not known, locked, or set by the server itself, or their
// authors do not permit it. Each names the flag, the feature and what to do.
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
				errs = append(errs, fmt.Errorf("--%s: feature gate %s is locked to %t and cannot be set by anybody; remove it from the flag", named.flag, feature, spec.Default))
			default:
				if reason := against.refusal(named.flag, feature); reason != "" {
					errs = append(errs, fmt.Errorf("--%s: feature %s %s", named.flag, feature, reason))
				}
			}
		}
	}
	return errs
}

// refusal is why a feature may not be what a flag names it as, "" if it may.
// Permission to change the value at any time includes that to set it from
// elsewhere.
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
		return "is declared as one that binaries ask for only when they start, so its value cannot change while they run; name it in --" + CentralFlag + " instead"
	default:
		return "is not declared as one whose value may come from elsewhere (Control of its lifecycle.Feature), so nobody has said that it is safe" + instead
	}
}

// Follows is true for what a server takes from the API itself: dynamic features
// whose value somebody set there. It is meant for Only of values.Config. All other
// values the servers decide themselves; a server that took those from the API, too,
// would go on for ever with what it had said itself.
func (o Options) Follows(feature *v1alpha1.Feature) bool {
	configured := feature.Status.Configured
	return o.Of(feature.Name) == v1alpha1.ControlDynamic && configured != nil && configured.Source == v1alpha1.SourceAPI
}

// Source is what a server's reporter observes, for report.Config: the given
// source, which is the gate, with who decides.
func (o Options) Source(inner report.Source) report.Source { return controlled{inner, o} }

// controlled adds who decides to what a gate observes.
type controlled struct {
	report.Source
	options Options
}

// Observations are those of the gate with who decides.
func (c controlled) Observations() []featuregate.Observation {
	observations := slices.Clone(c.Source.Observations())
	for i := range observations {
		if control := c.options.Of(observations[i].Name); control != v1alpha1.ControlLocal {
			observations[i].Control = control
		}
	}
	return observations
}
