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

package operator

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	utilversion "k8s.io/apimachinery/pkg/util/version"
	"k8s.io/client-go/rest"
	componentfeaturegate "k8s.io/component-base/featuregate"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/feature-lifecycle/featuregate"
	"k8s.io/feature-lifecycle/lifecycle"
	"k8s.io/feature-lifecycle/lifecycle/control"
)

// Config configures an operator. Fields are required unless stated otherwise.
type Config struct {
	// Namespace has the operator's Features, reports and Leases. It belongs to one
	// operator: its server flow reconciles every Feature there.
	Namespace string
	// Component is the name that all replicas report as, for example widget-operator,
	// and Instance that of this replica, which no other has at the same time: that of
	// its pod.
	Component, Instance string
	// Version is the operator's own version, for example v0.3.1. All replicas have to
	// have one minor version before features change.
	Version string
	// Gate is the operator's gate, made with the minor version of Version
	// (NewVersionedFeatureGate of component-base), and no other. A replica that emulates a
	// lower version calls SetEmulationVersion of the wrapped gate. Its values must not be
	// final yet.
	Gate *featuregate.Gate
	// Features are the declarations of the authors. They may be fewer than the gate has:
	// what is not declared is reported, and nothing is cleaned.
	Features []lifecycle.Feature
	// Control selects the features that are set in one place for all replicas, as by their
	// flags. The zero value leaves all to each command line.
	Control control.Options
	// Client is the client configuration for the cluster.
	Client *rest.Config
	// OwnedByServiceAccount makes the replica's service account, which has to be one of
	// Namespace, the owner of Features, reports and Leases. They are deleted with it when
	// the operator is removed, although the namespace stays. That needs
	// kube-controller-manager, which collects objects without their owner. Earlier
	// Features have no owner.
	//
	// They are also deleted when the service account is only replaced (kubectl replace
	// --force) or renamed: the new object is another owner. Requests (spec of a Feature)
	// and transitions under way are lost then, and no task runs. A feature that was on
	// begins in its default, and objects keep what it stored. So before such a change turn
	// features off, or remove metadata.ownerReferences of the Features.
	OwnedByServiceAccount bool
	// Settings are the periods of the server flow. Each that is left out has its default.
	Settings Settings
	// LoadTimeout is the time that Load waits for the server at most. For features that are not
	// dynamic, later values count only after the next start. 0 means 15 seconds; below 0
	// there is one attempt.
	LoadTimeout time.Duration
}

// validate returns everything that is wrong with a configuration.
func (c *Config) validate() error {
	var errs []error
	say := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	for _, required := range []struct{ name, value string }{{"Namespace", c.Namespace}, {"Component", c.Component}, {"Instance", c.Instance}, {"Version", c.Version}} {
		if required.value == "" {
			say("%s is missing", required.name)
		}
	}
	if c.Gate == nil || c.Client == nil {
		say("Gate and Client are required")
	}
	if c.Namespace == metav1.NamespaceSystem {
		say("Namespace %s has the features of Kubernetes, which kube-apiserver looks after; use the operator's own", c.Namespace)
	}
	whole := ""
	if c.Component != "" && c.Instance != "" {
		whole = c.Component + "." + c.Instance
	}
	for _, name := range []struct {
		field, value string
		problems     func(string) []string
	}{
		{"Namespace", c.Namespace, validation.IsDNS1123Label},
		{"Component", c.Component, validation.IsDNS1123Label},
		{"Instance", c.Instance, validation.IsDNS1123Subdomain},
		// That of the report and its Lease.
		{"Component.Instance", whole, validation.IsDNS1123Subdomain},
	} {
		if problems := name.problems(name.value); len(problems) > 0 && name.value != "" {
			say("%s %q: %s", name.field, name.value, strings.Join(problems, "; "))
		}
	}
	if err := lifecycle.Validate(c.Features); err != nil {
		errs = append(errs, fmt.Errorf("declared features: %w", err))
	}
	if err := lifecycle.ValidateWithoutStorage(c.Features); err != nil {
		errs = append(errs, fmt.Errorf("declared features: %w", err))
	}
	errs = append(errs, c.Settings.validate()...)
	if c.Gate != nil {
		errs = append(errs, c.validateGate()...)
	}
	if len(errs) == 0 {
		return nil
	}
	return fmt.Errorf("operator %s in namespace %s: %w", cmp.Or(c.Component, "without a name"), cmp.Or(c.Namespace, "without a name"), errors.Join(errs...))
}

// validateGate returns what in the gate does not fit the operator.
func (c *Config) validateGate() (errs []error) {
	known := c.Gate.GetAll()
	errs = append(errs, c.validateReport()...)
	for _, feature := range c.Features {
		if _, ok := known[feature.Name]; !ok {
			errs = append(errs, fmt.Errorf("feature %s is declared and no feature gate of the operator, which has %s; add it to the gate", feature.Name, strings.Join(names(known), ", ")))
		}
	}
	errs = append(errs, c.Control.Validate(control.Constraints{Namespace: c.Namespace, Gate: c.Gate, Declared: c.Features})...)
	if c.Version == "" {
		return errs
	}
	own, err := c.version()
	if err != nil {
		return append(errs, fmt.Errorf("Version %q: %w; it is the operator's own, for example v0.3.1", c.Version, err))
	}
	// A gate that was made without a version has that of Kubernetes' libraries. The
	// flow would take a new one of these for an upgrade of the operator. One that stayed
	// behind when the operator got a new version keeps features in the form of the old one.
	if made := c.Gate.MadeFor(); !made.EqualTo(own) {
		errs = append(errs, fmt.Errorf("the gate was made for version %s and the operator has %s; make it with NewVersionedFeatureGate(version.MustParse(%q)), and where it is to emulate a lower version wrap it first and then call SetEmulationVersion", made, c.Version, own))
	} else if emulated := c.Gate.EmulationVersion(); emulated.GreaterThan(own) {
		errs = append(errs, fmt.Errorf("the gate emulates version %s, which is above that of the operator, %s; emulate none or a lower one", emulated, c.Version))
	}
	return errs
}

// validateReport returns what in the gate no report could have: the server would refuse
// each as a whole. A replica reports all that its gate knows.
func (c *Config) validateReport() (errs []error) {
	all, size := c.Gate.Observations(), 0
	for _, o := range all {
		if problems := v1alpha1.GateNameProblems(o.Name); len(problems) > 0 {
			errs = append(errs, fmt.Errorf("feature gate %q: the name %s; rename it", o.Name, strings.Join(problems, "; ")))
		}
		size += len(o.Name)
	}
	if len(all) > v1alpha1.MaxReportedFeatures {
		errs = append(errs, fmt.Errorf("the gate has %d features, and a report lists %d at most; leave out those that are not the operator's own", len(all), v1alpha1.MaxReportedFeatures))
	}
	if size > v1alpha1.MaxReportedNames {
		errs = append(errs, fmt.Errorf("the names of the gate's features have %d characters together, and a report takes %d at most; shorten them", size, v1alpha1.MaxReportedNames))
	}
	if len(c.Version) > v1alpha1.MaxVersionLength {
		errs = append(errs, fmt.Errorf("the Version has %d characters, and a report takes %d at most; shorten it", len(c.Version), v1alpha1.MaxVersionLength))
	}
	return errs
}

// version returns the operator's minor version.
func (c *Config) version() (*utilversion.Version, error) {
	parsed, err := utilversion.ParseSemantic(c.Version)
	if err != nil {
		return nil, err
	}
	return utilversion.MajorMinor(parsed.Major(), parsed.Minor()), nil
}

// names returns those of gates, without the two of component-base for all of a stage.
func names[V any](known map[componentfeaturegate.Feature]V) []string {
	var all []string
	for name := range maps.Keys(known) {
		if name != "AllAlpha" && name != "AllBeta" {
			all = append(all, string(name))
		}
	}
	slices.Sort(all)
	return all
}

// Rules returns the permissions that replicas need in their own namespace, for a Role:
// they report as the component and run the server flow. The permissions of tasks are in
// lifecycle.Rules, for a ClusterRole, and in lifecycle.NamespacedRules, for Roles. All
// authenticated users may read Features and FeatureValues.
func Rules(component string) []rbacv1.PolicyRule {
	features, leases := []string{v1alpha1.GroupName}, []string{coordinationv1.GroupName}
	return []rbacv1.PolicyRule{
		// Reporting, with a Lease that shows that the process is alive.
		{APIGroups: features, Resources: []string{"components"}, ResourceNames: []string{component}, Verbs: []string{"report"}},
		{APIGroups: features, Resources: []string{"featurereports"}, Verbs: []string{"create", "get", "update"}},
		{APIGroups: leases, Resources: []string{"leases"}, Verbs: []string{"create", "get", "update"}},
		// The server flow.
		{APIGroups: features, Resources: []string{"features"}, Verbs: []string{"create", "delete"}},
		{APIGroups: features, Resources: []string{"features/status"}, Verbs: []string{"update"}},
		{APIGroups: features, Resources: []string{"featurevalues"}, Verbs: []string{"create", "update", "delete"}},
		{APIGroups: features, Resources: []string{"featurereports"}, Verbs: []string{"list", "watch", "delete"}},
		// Reports of lost processes, whatever wrote them: the operator may have had another
		// service account.
		{APIGroups: features, Resources: []string{"featurereports/any"}, Verbs: []string{"delete"}},
		{APIGroups: leases, Resources: []string{"leases"}, Verbs: []string{"get", "list", "watch", "delete"}},
		{APIGroups: []string{corev1.GroupName}, Resources: []string{"events"}, Verbs: []string{"create", "patch"}},
	}
}
