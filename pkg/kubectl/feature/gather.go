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
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilversion "k8s.io/apimachinery/pkg/util/version"
	"k8s.io/client-go/tools/pager"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	featuresclient "k8s.io/feature-lifecycle/client/clientset/versioned/typed/features/v1alpha1"
	"k8s.io/feature-lifecycle/lifecycle/tracker"
	"k8s.io/feature-lifecycle/lifecycle/versionskew"
)

const kubeAPIServer = "kube-apiserver"

// builtTogether has the components whose gates this build has. Gates of others
// are not known here.
var builtTogether = []string{kubeAPIServer, "kube-controller-manager", "kube-scheduler", "kubelet", "kube-proxy"}

// found is the data read from the cluster.
type found struct {
	features []v1alpha1.Feature
	reports  []v1alpha1.FeatureReport
}

// gather lists everything, in chunks: there is a report for each node.
func (c *checker) gather(ctx context.Context) (*found, error) {
	features, err := listFeatures(ctx, c.client, c.namespace)
	if err != nil {
		return nil, err
	}
	reports, err := listReports(ctx, c.client, c.namespace)
	if apierrors.IsForbidden(err) {
		return nil, fmt.Errorf("what processes set has to be known, and that needs permission to list featurereports in %s, which administrators have: %w", c.namespace, err)
	}
	if err != nil {
		return nil, err
	}
	// One that is down and did not end in order counts: it comes back with the
	// settings that it had.
	reports = slices.DeleteFunc(reports, func(r v1alpha1.FeatureReport) bool { return tracker.Terminating(&r) })
	slices.SortFunc(reports, func(a, b v1alpha1.FeatureReport) int {
		return cmp.Or(cmp.Compare(a.Spec.Component, b.Spec.Component), cmp.Compare(a.Spec.Instance, b.Spec.Instance))
	})
	return &found{features: features, reports: reports}, nil
}

// listReports reads all FeatureReports of a namespace. The caller explains
// missing permissions, so that error is the server's.
func listReports(ctx context.Context, client featuresclient.FeaturesV1alpha1Interface, namespace string) ([]v1alpha1.FeatureReport, error) {
	var reports []v1alpha1.FeatureReport
	err := each(ctx, func(ctx context.Context, opts metav1.ListOptions) (runtime.Object, error) {
		return client.FeatureReports(namespace).List(ctx, opts)
	}, &reports)
	switch {
	case apierrors.IsNotFound(err):
		return nil, errNoAPI
	case err != nil && !apierrors.IsForbidden(err):
		return nil, fmt.Errorf("listing FeatureReports in %s: %w", namespace, err)
	}
	return reports, err
}

// each appends all items of a list to a slice. If a long list expires in the middle,
// since its revision was compacted, the pager reads the whole list again.
func each[T any](ctx context.Context, list pager.ListPageFunc, to *[]T) error {
	all, _, err := pager.New(list).List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	return meta.EachListItem(all, func(object runtime.Object) error {
		item, ok := any(object).(*T)
		if !ok {
			return fmt.Errorf("the server sent a %T", object)
		}
		*to = append(*to, *item)
		return nil
	})
}

// move has the version of the cluster and the target.
type move struct {
	from, to *utilversion.Version
	// down is true when the binaries have to be replaced by older ones, be it that
	// they emulate the lower version already.
	down bool
}

// moveTo finds out what the move is from what the servers report.
func (f *found) moveTo(to *utilversion.Version) (move, error) {
	m := move{to: to}
	var versions []string
	for _, r := range f.reports {
		if r.Spec.Component != kubeAPIServer {
			continue
		}
		emulated, err := utilversion.ParseMajorMinor(r.Spec.EmulationVersion)
		if err != nil {
			return m, fmt.Errorf("FeatureReport %s: emulationVersion: %w", r.Name, err)
		}
		versions = append(versions, fmt.Sprintf("%s %s", r.Spec.Instance, emulated))
		if m.from != nil && !m.from.EqualTo(emulated) {
			return m, fmt.Errorf("kube-apiservers have different versions (%s); finish that move first (the report of a lost one is deleted after an hour)", strings.Join(versions, ", "))
		}
		m.from = emulated
		if binary, ok := minorOf(r.Spec.BinaryVersion); ok && binary.GreaterThan(to) {
			m.down = true
		}
	}
	if m.from == nil {
		return m, fmt.Errorf("no kube-apiserver reports its version; see kubectl get featurereports -n kube-system")
	}
	m.down = m.down && !m.from.LessThan(to) || to.LessThan(m.from)
	return m, m.adjacent()
}

// adjacent fails for a move over more than one minor version.
func (m move) adjacent() error {
	if apart := int(m.from.Minor()) - int(m.to.Minor()); m.from.Major() != m.to.Major() || apart > 1 || apart < -1 {
		return fmt.Errorf("the cluster has %s, and kube-apiservers move one minor version at a time; check --to %s first", m.from, m.next())
	}
	return nil
}

// next returns the adjacent version on the way.
func (m move) next() *utilversion.Version {
	if m.to.LessThan(m.from) {
		return m.from.SubtractMinor(1)
	}
	return m.from.AddMinor(1)
}

// minorOf reads the minor version of a binary, such as 1.36 of v1.36.3+x.
func minorOf(version string) (*utilversion.Version, bool) {
	v, err := utilversion.ParseGeneric(version)
	if err != nil {
		return nil, false
	}
	return utilversion.MajorMinor(v.Major(), v.Minor()), true
}

// starts returns whether a process is still to be started in the version. It
// is false for one that runs in it, or in a version that need not be left.
func (m move) starts(r *v1alpha1.FeatureReport) bool {
	binary, ok := minorOf(r.Spec.BinaryVersion)
	if !ok {
		return true
	}
	if m.down {
		return binary.GreaterThan(m.to)
	}
	emulates, err := utilversion.ParseMajorMinor(r.Spec.EmulationVersion)
	return err != nil || binary.LessThan(m.to) || emulates.LessThan(m.to)
}

// commandLines has the command-line values of processes that are to be started in
// a version.
type commandLines struct {
	// settings are the explicit ones, controlled the servers that let others decide
	// values, by gate.
	settings   map[string][]versionskew.Setting
	controlled map[string][]versionskew.Controlled
	// stages is AllAlpha and AllBeta, of components whose gates this build has.
	stages []versionskew.StageSetting
}

// commandLines returns those of the processes that are to be started in the
// version.
func (f *found) commandLines(m move) *commandLines {
	given := &commandLines{settings: map[string][]versionskew.Setting{}, controlled: map[string][]versionskew.Controlled{}}
	for i := range f.reports {
		spec := &f.reports[i].Spec
		if !m.starts(&f.reports[i]) {
			continue
		}
		server, built := spec.Component == kubeAPIServer, slices.Contains(builtTogether, spec.Component)
		for _, g := range spec.Features {
			if g.Explicit {
				given.settings[g.Name] = append(given.settings[g.Name], versionskew.Setting{
					Component: spec.Component, Instance: spec.Instance, Enabled: g.Enabled, Server: server, Foreign: !built,
				})
			}
			if server && g.Control != "" && g.Control != v1alpha1.ControlLocal {
				given.controlled[g.Name] = append(given.controlled[g.Name], versionskew.Controlled{Component: spec.Component, Instance: spec.Instance, Control: g.Control})
			}
		}
		if built {
			for stage, value := range versionskew.Stages(spec.Features) {
				given.stages = append(given.stages, versionskew.StageSetting{Component: spec.Component, Instance: spec.Instance, Stage: stage, Enabled: value})
			}
		}
	}
	return given
}

// missingServers returns the message about live kube-apiservers that never
// reported, such as upstream's. The reporting servers notice their identity
// Leases, and name them in the condition Consistent of every Feature. The values
// and stored objects of such a server are not known, so --allow-missing does not
// exclude it.
func (f *found) missingServers() []string {
	var missing []string
	for i := range f.features {
		if c := reportMissing(&f.features[i]); c != nil && !slices.Contains(missing, "kube-apiserver "+c.Message) {
			missing = append(missing, "kube-apiserver "+c.Message)
		}
	}
	return missing
}

// reportMissing returns the condition about a live server that has not reported,
// nil when all have.
func reportMissing(feature *v1alpha1.Feature) *metav1.Condition {
	if c := meta.FindStatusCondition(feature.Status.Conditions, v1alpha1.ConditionConsistent); c != nil && c.Reason == v1alpha1.ReasonReportMissing {
		return c
	}
	return nil
}

// settledButForReports ignores a missing report, which is printed once for all
// features.
func settledButForReports(feature *v1alpha1.Feature) *v1alpha1.Feature {
	if reportMissing(feature) == nil {
		return feature
	}
	feature = feature.DeepCopy()
	meta.RemoveStatusCondition(&feature.Status.Conditions, v1alpha1.ConditionConsistent)
	return feature
}

// missing describes the instances that should exist and never reported: their
// values are unknown. Every feature counts the same ones.
func (f *found) missing() []string {
	counts := map[string]v1alpha1.FeatureUse{}
	for _, feature := range f.features {
		for _, use := range feature.Status.Uses {
			key := strings.TrimSpace(use.Component + " " + use.Version)
			if use.Enabled == nil && unreported(counts[key]) < unreported(use) {
				counts[key] = use
			}
		}
	}
	var missing []string
	for key, use := range counts {
		missing = append(missing, fmt.Sprintf("%d %s did not report, and what they set is not known: %s", unreported(use), key, strings.Join(use.Examples, ", ")))
	}
	slices.Sort(missing)
	return missing
}

// unreported returns how many instances a row without a value is about. Servers count
// them as expected alone, since none of them is known to live.
func unreported(use v1alpha1.FeatureUse) int32 { return max(use.Expected, use.Count+use.Stale) }
