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

package verdict

import (
	"io"
	"math/rand/v2"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilversion "k8s.io/apimachinery/pkg/util/version"
	componentfeaturegate "k8s.io/component-base/featuregate"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes-features/pkg/featurelifecycle/catalog"
	"k8s.io/kubernetes-features/pkg/featurelifecycle/history"
	"k8s.io/kubernetes-features/pkg/kubectl/gatefiles"
	"k8s.io/kubernetes/pkg/controlplane"
)

// TestMain drops upstream's warnings, of which there are thousands here.
func TestMain(m *testing.M) {
	klog.LogToStderr(false)
	klog.SetOutput(io.Discard)
	m.Run()
}

// upstream returns a feature gate with what the history has of a component.
func upstream(t *testing.T, component, version string) componentfeaturegate.MutableVersionedFeatureGate {
	t.Helper()
	at := utilversion.MustParseGeneric(version)
	gate := componentfeaturegate.NewVersionedFeatureGate(at)
	specs, dependencies := map[componentfeaturegate.Feature]componentfeaturegate.VersionedSpecs{}, map[componentfeaturegate.Feature][]componentfeaturegate.Feature{}
	for _, g := range history.Load().Gates() {
		spec, ok := g.At(component, version)
		if !ok {
			continue
		}
		one := componentfeaturegate.FeatureSpec{Default: spec.Default, LockToDefault: spec.Locked, Version: at}
		switch spec.Stage {
		case "Alpha":
			one.PreRelease = componentfeaturegate.Alpha
		case "Beta":
			one.PreRelease = componentfeaturegate.Beta
		case "Deprecated":
			one.PreRelease = componentfeaturegate.Deprecated
		}
		// Upstream wants to see what deprecated gates, and those that others depend on, were.
		versions := componentfeaturegate.VersionedSpecs{one}
		if spec.Stage == "Alpha" {
			versions[0].Version = utilversion.MajorMinor(1, 0)
		} else {
			before := componentfeaturegate.FeatureSpec{Default: spec.Default, PreRelease: componentfeaturegate.Alpha, Version: utilversion.MajorMinor(1, 0)}
			versions = componentfeaturegate.VersionedSpecs{before, one}
		}
		specs[componentfeaturegate.Feature(g.Name)] = versions
		for _, name := range spec.DependsOn {
			dependencies[componentfeaturegate.Feature(g.Name)] = append(dependencies[componentfeaturegate.Feature(g.Name)], componentfeaturegate.Feature(name))
		}
	}
	if err := gate.AddVersioned(specs); err != nil {
		t.Fatal(err)
	}
	if err := gate.AddDependencies(dependencies); err != nil {
		t.Fatalf("%s %s: %v", component, version, err)
	}
	return gate
}

var all = []string{
	history.KubeAPIServer, history.KubeControllerManager, history.KubeScheduler, history.Kubelet, history.KubeProxy, history.CloudControllerManager,
}

// settings makes those of one process.
func settings(component string, values map[string]bool) gatefiles.Result {
	p := &gatefiles.Process{Component: component}
	r := gatefiles.Result{Processes: []*gatefiles.Process{p}}
	for name, value := range values {
		r.Settings = append(r.Settings, gatefiles.Setting{Process: p, Gate: name, Enabled: value, Source: gatefiles.Source{Path: name}, Flag: true})
	}
	return r
}

// starts is false where a finding keeps the process from starting. A gate that is not known to be a vendor's does so, too.
func starts(findings []Finding) bool {
	for _, f := range findings {
		if f.Safe == metav1.ConditionFalse || f.Verdict == VendorGate {
			return false
		}
	}
	return true
}

// TestEachGateAsUpstream compares, for each gate, component, version and value, whether the process starts.
func TestEachGateAsUpstream(t *testing.T) {
	h := history.Load()
	for _, component := range all {
		for _, version := range h.Versions() {
			gate := upstream(t, component, version)
			e := &Evaluator{History: h, From: version, To: version}
			names := []string{"AllAlpha", "AllBeta", "NoSuchGate"}
			for _, g := range h.Gates() {
				names = append(names, g.Name)
			}
			for _, name := range names {
				for _, value := range []bool{true, false} {
					values := map[string]bool{name: value}
					err := gate.DeepCopy().SetFromMap(values)
					findings := e.Evaluate(settings(component, values))
					if starts(findings) != (err == nil) {
						t.Errorf("%s %s with %s=%t: upstream says %v, and the finding is %+v", component, version, name, value, err, findings)
					}
				}
			}
		}
	}
}

// TestSeveralGatesAsUpstream does so for random sets of gates, which depend on each other.
func TestSeveralGatesAsUpstream(t *testing.T) {
	h := history.Load()
	random := rand.New(rand.NewPCG(1, 2))
	var related []string
	for _, g := range h.Gates() {
		for _, v := range h.Versions() {
			if spec, ok := g.At(history.Kubelet, v); ok && len(spec.DependsOn) > 0 {
				related = append(append(related, g.Name), spec.DependsOn...)
				break
			}
		}
	}
	related = append(related, "AllAlpha", "AllBeta")
	refused := 0
	for _, version := range h.Versions()[len(h.Versions())-4:] {
		gate := upstream(t, history.Kubelet, version)
		e := &Evaluator{History: h, From: version, To: version}
		for range 200 {
			values := map[string]bool{}
			for range 1 + random.IntN(6) {
				values[related[random.IntN(len(related))]] = random.IntN(3) > 0
			}
			err := gate.DeepCopy().SetFromMap(values)
			findings := e.Evaluate(settings(history.Kubelet, values))
			if starts(findings) != (err == nil) {
				t.Errorf("%s with %v: upstream says %v, and the findings are %+v", version, values, err, findings)
			}
			if err != nil && strings.Contains(err.Error(), "depends on") {
				refused++
			}
		}
	}
	if refused < 50 {
		t.Errorf("%d sets are refused for a dependency; that shows little", refused)
	}
}

// TestDefaultsOfAPIsAsUpstream: the rule for what is served by default is that of kube-apiserver, for all APIs that gates need.
func TestDefaultsOfAPIsAsUpstream(t *testing.T) {
	defaults := controlplane.DefaultAPIResourceConfigSource()
	for _, entry := range catalog.All() {
		for _, api := range entry.APIs {
			for _, version := range append([]string{api.GroupVersion.Version}, api.Or...) {
				for _, name := range api.Resources {
					resource := schema.GroupVersionResource{Group: api.GroupVersion.Group, Version: version, Resource: name}
					if got, want := enabled(resource, nil), defaults.ResourceEnabled(resource); got != want {
						t.Errorf("%s is enabled: %t; in kube-apiserver: %t", resource, got, want)
					}
				}
			}
		}
	}
}
