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

package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	utilversion "k8s.io/apimachinery/pkg/util/version"
	clientfeatures "k8s.io/client-go/features"
	"k8s.io/component-base/featuregate"
	controllerfeatures "k8s.io/controller-manager/pkg/features"
	"k8s.io/kubernetes-features/pkg/featurelifecycle/ahead"
	"k8s.io/kubernetes-features/pkg/featurelifecycle/catalog"
	"k8s.io/kubernetes-features/pkg/featurelifecycle/history"
	"k8s.io/kubernetes-features/pkg/features"
	kubeadmfeatures "k8s.io/kubernetes/cmd/kubeadm/app/features"
)

// servers are the components whose gates the catalog has together.
var servers = []string{
	history.KubeAPIServer, history.KubeControllerManager, history.KubeProxy, history.KubeScheduler, history.Kubelet,
}

// verify returns in what a history differs from this build: in the releases that it follows, and in the gates of this
// build's version and of the one that is read ahead.
func verify(ctx context.Context, h *history.History) error {
	releases, err := followed(ctx)
	if err != nil {
		return err
	}
	for _, release := range releases {
		minor, err := minorOf(release)
		if err != nil {
			return err
		}
		if h.Source(minor) != release {
			return fmt.Errorf("the gates of %s are those of %q, and have to be those of %s; run hack/update-history.sh", minor, h.Source(minor), release)
		}
	}
	versions, err := catalog.EmulatedVersions()
	if err != nil {
		return err
	}
	built, err := builtFacts(versions[0])
	if err != nil {
		return err
	}
	problems := differences(factsOf(h)[versions[0].String()], built, "this build")
	next, err := ahead.Next()
	if err != nil {
		return err
	}
	problems = append(problems, differencesAhead(h, next)...)
	if len(problems) > 0 {
		return fmt.Errorf("%s\n%d gates differ; run hack/update-history.sh -all", strings.Join(problems, "\n"), len(problems))
	}
	return nil
}

// builtFacts returns the gates of this build's binaries at one of the versions that they can be.
func builtFacts(at *utilversion.Version) (facts, error) {
	gates, err := catalog.Gates()
	if err != nil {
		return nil, err
	}
	// What a binary of the version itself is compatible with.
	if err := gates.SetEmulationVersionAndMinCompatibilityVersion(at, at.SubtractMinor(1)); err != nil {
		return nil, err
	}
	needs := gates.Dependencies()
	shared := map[string]history.Spec{}
	for name, s := range gates.GetAll() {
		if name == features.FeatureLifecycle {
			// Upstream does not have it.
			continue
		}
		spec := history.Spec{Stage: string(s.PreRelease), Default: s.Default, Locked: s.LockToDefault}
		for _, other := range needs[name] {
			spec.DependsOn = append(spec.DependsOn, string(other))
		}
		shared[string(name)] = spec
	}
	all := perServer(shared)
	var clients clientRegistry = map[string]history.Spec{}
	if err := clientfeatures.AddFeaturesToExistingFeatureGates(clients); err != nil {
		return nil, err
	}
	all[history.ClientGo] = normalize(clients)
	kubeadm := map[string]history.Spec{}
	for name, s := range kubeadmfeatures.InitFeatureGates {
		kubeadm[name] = history.Spec{Stage: string(s.PreRelease), Default: s.Default, Locked: s.LockToDefault}
	}
	all[history.Kubeadm] = normalize(kubeadm)
	return all, nil
}

// notOfScheduler has the gates that only packages of controller managers add, which all servers but kube-scheduler
// import (TestRegistrationsOfThisVersion).
var notOfScheduler = []string{string(controllerfeatures.ControllerManagerReleaseLeaderElectionLockOnExit)}

// perServer returns the gates that each server has of those of all servers.
func perServer(shared map[string]history.Spec) facts {
	all := facts{}
	for _, component := range servers {
		all[component] = normalize(shared)
	}
	for _, name := range notOfScheduler {
		delete(all[history.KubeScheduler], name)
	}
	return all
}

// clientRegistry gathers the gates of client-go.
type clientRegistry map[string]history.Spec

func (r clientRegistry) Add(all map[clientfeatures.Feature]clientfeatures.FeatureSpec) error {
	for name, s := range all {
		r[string(name)] = history.Spec{Stage: string(s.PreRelease), Default: s.Default, Locked: s.LockToDefault}
	}
	return nil
}

// differences returns a line for each gate that a component has otherwise in a version's facts than in others, which
// have some of the components.
func differences(recorded, others facts, what string) []string {
	lines := map[string]bool{}
	for component, gates := range others {
		names := maps.Clone(gates)
		maps.Copy(names, recorded[component])
		for name := range names {
			before, after := describe(recorded[component], name), describe(gates, name)
			if before != after {
				lines[fmt.Sprintf("%s in %s: the data has %s, and %s %s", name, component, before, what, after)] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(lines))
}

// differencesAhead compares what was compiled of the next version with the list of gates that pkg/featurelifecycle/ahead
// read from its sources.
func differencesAhead(h *history.History, next *ahead.Release) []string {
	version := next.Minor()
	specs, err := next.Specs(map[featuregate.Feature]featuregate.VersionedSpecs{})
	if err != nil {
		return []string{err.Error()}
	}
	needs := next.Dependencies()
	listed := map[string]history.Spec{}
	for name, versioned := range specs {
		s := specAt(versioned, version)
		if s == nil {
			continue
		}
		spec := history.Spec{Stage: string(s.PreRelease), Default: s.Default, Locked: s.LockToDefault}
		for _, other := range needs[name] {
			spec.DependsOn = append(spec.DependsOn, string(other))
		}
		listed[string(name)] = spec
	}
	// It has all gates of the list; others lack those of controllers.
	others := facts{history.KubeControllerManager: normalize(listed)}
	return differences(factsOf(h)[version.String()], others, "the list of gates of "+next.Version())
}

// specAt returns the spec that holds in a binary of a version, nil if there is none.
func specAt(specs featuregate.VersionedSpecs, at *utilversion.Version) *featuregate.FeatureSpec {
	for _, s := range slices.Backward(specs) {
		if s.Version.GreaterThan(at) || s.MinCompatibilityVersion != nil && s.MinCompatibilityVersion.GreaterThan(at.SubtractMinor(1)) {
			continue
		}
		return &s
	}
	return nil
}

// describe returns what a component has of a gate.
func describe(gates map[string]history.Spec, name string) string {
	s, ok := gates[name]
	if !ok {
		return "no such gate"
	}
	return strings.TrimSpace(fmt.Sprintf("%s, %t by default%s%s", s.Stage, s.Default, map[bool]string{true: ", locked"}[s.Locked], needed(s)))
}

func needed(s history.Spec) string {
	if len(s.DependsOn) == 0 {
		return ""
	}
	return ", depends on " + strings.Join(s.DependsOn, " and ")
}
