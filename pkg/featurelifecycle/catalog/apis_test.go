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

package catalog

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilversion "k8s.io/apimachinery/pkg/util/version"
	"k8s.io/component-base/featuregate"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	"k8s.io/kubernetes/pkg/controlplane"
	"k8s.io/kubernetes/pkg/features"
)

// byDefault describes a kube-apiserver without --runtime-config.
func byDefault(minor uint) Serving {
	return Serving{Enabled: controlplane.DefaultAPIResourceConfigSource().ResourceEnabled, Emulated: utilversion.MajorMinor(1, minor), Scheme: legacyscheme.Scheme}
}

// TestNeededAPIsNotServedByDefault: a resource that kube-apiserver serves in no version
// by default belongs to a gate, which does little while it is not served.
func TestNeededAPIsNotServedByDefault(t *testing.T) {
	needed := map[schema.GroupResource]bool{}
	for _, e := range All() {
		for _, a := range e.APIs {
			for _, r := range a.Resources {
				needed[schema.GroupResource{Group: a.GroupVersion.Group, Resource: r}] = true
			}
		}
	}
	resources, serving := storedResources(t), byDefault(36)
	for _, key := range slices.SortedFunc(func(yield func(schema.GroupResource) bool) {
		for key := range resources {
			if !yield(key) {
				return
			}
		}
	}, func(a, b schema.GroupResource) int { return strings.Compare(a.String(), b.String()) }) {
		r := resources[key]
		builtIn := serving.has(key.WithVersion(r.version))
		if builtIn && !serving.Enabled(key.WithVersion(r.version)) && !r.finished && !needed[key] {
			t.Errorf("%s in %s is not served by default, and no gate needs it; add it to APIs of the Entry of the gate that it belongs to in pkg/featurelifecycle/catalog", key, r.version)
		}
	}
}

// TestAPIsMatchBinary checks that the binary has each API and does not serve it by
// default. A gate needs the APIs of the gates that it depends on, too.
func TestAPIsMatchBinary(t *testing.T) {
	entries, serving := verdicts(), byDefault(36)
	for _, e := range entries {
		for _, a := range e.APIs {
			if a.Without == "" {
				t.Errorf("gate %s: %s does not say what becomes of processes without it", e.Name, a)
			}
			for _, v := range a.versions() {
				for _, r := range a.Resources {
					if gvr := v.WithResource(r); !serving.has(gvr) || serving.Enabled(gvr) {
						t.Errorf("gate %s: %s is there: %t, and served by default: %t; want one that is there and not served", e.Name, gvr, serving.has(gvr), serving.Enabled(gvr))
					}
				}
			}
		}
	}
	for gate, dependencies := range knownGates(t).Dependencies() {
		for _, on := range dependencies {
			for _, a := range entries[on].APIs {
				if e, known := entries[gate]; known && !slices.ContainsFunc(e.APIs, func(b API) bool { return cmp.Equal(a, b) }) {
					t.Errorf("gate %s depends on %s, which needs %s; add that to its APIs", gate, on, a)
				}
			}
		}
	}
}

// TestNotServed checks that any version suffices in which all resources are served. Where
// the server's version has none, the binaries still need one, whatever version they emulate.
func TestNotServed(t *testing.T) {
	for name, test := range map[string]struct {
		gate  featuregate.Feature
		minor uint
		on    []string
		off   []string
		want  string
	}{
		"by default":             {gate: features.GenericWorkload, minor: 36, want: "kube-apiserver does not serve podgroups, workloads in scheduling.k8s.io/v1alpha2, which GenericWorkload needs: start every kube-apiserver with --runtime-config=scheduling.k8s.io/v1alpha2=true; without it a kube-apiserver that has the gate on never becomes ready"},
		"served":                 {gate: features.GenericWorkload, minor: 36, on: []string{"scheduling.k8s.io/v1alpha2"}},
		"one resource alone":     {gate: features.GenericWorkload, minor: 36, on: []string{"scheduling.k8s.io/v1alpha2"}, off: []string{"workloads"}, want: "does not serve podgroups, workloads"},
		"the other version":      {gate: features.ClusterTrustBundle, minor: 36, on: []string{"certificates.k8s.io/v1alpha1"}},
		"neither version":        {gate: features.ClusterTrustBundle, minor: 36, want: "--runtime-config=certificates.k8s.io/v1beta1=true"},
		"a version that is new":  {gate: features.DRADeviceTaintRules, minor: 36, on: []string{"resource.k8s.io/v1alpha3"}, want: "--runtime-config=resource.k8s.io/v1beta2=true; without it a kube-scheduler"},
		"before there was one":   {gate: features.DRADeviceTaintRules, minor: 35, on: []string{"resource.k8s.io/v1alpha3"}, want: "kube-apiserver cannot serve devicetaintrules in resource.k8s.io/v1beta2, which DRADeviceTaintRules needs, while it emulates 1.35: leave the gate off until it does not; meanwhile a kube-scheduler"},
		"a gate that needs none": {gate: features.MaxUnavailableStatefulSet, minor: 36},
	} {
		t.Run(name, func(t *testing.T) {
			serving := byDefault(test.minor)
			serving.Enabled = func(r schema.GroupVersionResource) bool {
				return slices.Contains(test.on, r.GroupVersion().String()) && !slices.Contains(test.off, r.Resource)
			}
			got := strings.Join(verdicts()[test.gate].NotServed(serving), "; ")
			if got == "" && test.want != "" || test.want == "" && got != "" || !strings.Contains(got, test.want) {
				t.Errorf("got %q, want %q in it", got, test.want)
			}
		})
	}
}
