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
	"maps"
	"regexp"
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
func byDefault(emulated *utilversion.Version) Serving {
	return Serving{Enabled: controlplane.DefaultAPIResourceConfigSource().ResourceEnabled, Emulated: emulated, Scheme: legacyscheme.Scheme}
}

// serves returns whether the server has a resource in any version, and whether it serves
// it.
func (s Serving) serves(resource schema.GroupResource) (has, served bool) {
	for _, v := range s.Scheme.PrioritizedVersionsForGroup(resource.Group) {
		if gvr := resource.WithVersion(v.Version); s.Has(gvr) {
			has, served = true, served || s.Enabled(gvr)
		}
	}
	return has, served
}

// TestNeededAPIsNotServedByDefault: a resource that kube-apiserver has and serves in no
// version by default belongs to a gate, which does little while it is not served. That
// holds for every version that it can emulate.
func TestNeededAPIsNotServedByDefault(t *testing.T) {
	needed := map[schema.GroupResource]bool{}
	for _, e := range All() {
		for _, a := range e.APIs {
			for _, r := range a.Resources {
				needed[schema.GroupResource{Group: a.GroupVersion.Group, Resource: r}] = true
			}
		}
	}
	for _, key := range slices.SortedFunc(maps.Keys(storedResources(t)), func(a, b schema.GroupResource) int { return strings.Compare(a.String(), b.String()) }) {
		for _, v := range emulatedVersions(t) {
			if has, served := byDefault(v).serves(key); has && !served && !needed[key] {
				t.Errorf("%s is not served by default at %s, and no gate needs it; add it to APIs of the Entry of the gate that it belongs to in pkg/featurelifecycle/catalog", key, v)
			}
		}
	}
}

// TestAPIsMatchBinary checks that the binary has each API, and does not serve it by
// default at one of the versions that it can emulate. A gate needs the APIs of the gates
// that it depends on, too.
func TestAPIsMatchBinary(t *testing.T) {
	entries, emulated, published := verdicts(), emulatedVersions(t), publishedResources(t)
	for _, e := range entries {
		for _, a := range e.APIs {
			if a.Without == "" {
				t.Errorf("gate %s: %s does not say what becomes of processes without it", e.Name, a)
			}
			for _, v := range a.versions() {
				for _, r := range a.Resources {
					if gvr := v.WithResource(r); !byDefault(emulated[0]).Has(gvr) || !published[gvr] {
						t.Errorf("gate %s: the binary does not have %s; remove the version from its APIs", e.Name, gvr)
					}
				}
			}
			alone := Entry{Feature: e.Feature, APIs: []API{a}}
			if !slices.ContainsFunc(emulated, func(v *utilversion.Version) bool { return len(alone.NotServed(byDefault(v))) > 0 }) {
				t.Errorf("gate %s: %s is served by default at each of the versions %s; remove it from its APIs", e.Name, a, emulated)
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

// informers matches what code of upstream uses of a version of an API: an informer or
// lister, and a client.
var informers = regexp.MustCompile(`\b([A-Z]\w*?)(?:\(\)\.)?(V\d+(?:(?:alpha|beta)\d+)?)\(\)\.([A-Z]\w*)\(`)

// TestAPIVersionsAreThoseOfBinaries checks that an entry's versions are those that upstream's
// binaries use. A server that emulates an older version may not serve them.
func TestAPIVersionsAreThoseOfBinaries(t *testing.T) {
	used := map[string]map[string]string{} // by resource and version, the place
	for _, folder := range []string{"cmd", "pkg", "plugin"} {
		for _, file := range sourceTexts(t, kubernetes, folder) {
			for line := range strings.Lines(file.text) {
				match := []string(nil)
				if strings.Contains(line, "V") && strings.Contains(line, "().") {
					match = informers.FindStringSubmatch(line)
				}
				if match == nil {
					continue
				}
				resource := strings.ToLower(match[1] + "/" + match[3])
				if used[resource] == nil {
					used[resource] = map[string]string{}
				}
				used[resource][strings.ToLower(match[2])] = file.name
			}
		}
	}
	checked, published := 0, publishedResources(t)
	for _, e := range All() {
		for _, a := range e.APIs {
			group, _, _ := strings.Cut(a.GroupVersion.Group, ".")
			for _, r := range a.Resources {
				for version, at := range used[group+"/"+r] {
					if !published[schema.GroupVersionResource{Group: a.GroupVersion.Group, Version: version, Resource: r}] {
						continue // for servers of older versions
					}
					checked++
					if !slices.ContainsFunc(a.versions(), func(v schema.GroupVersion) bool { return v.Version == version }) {
						t.Errorf("gate %s: %s uses version %s of %s, which its APIs do not have (%s)", e.Name, at, version, r, a)
					}
				}
			}
		}
	}
	if checked == 0 {
		t.Error("no use of an API of an entry was found; teach this test how upstream does it now")
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
		"by default":             {gate: features.GenericWorkload, minor: 37, want: "kube-apiserver does not serve podgroups, workloads in scheduling.k8s.io/v1beta1, which GenericWorkload needs: start every kube-apiserver with --runtime-config=scheduling.k8s.io/v1beta1=true; without it a kube-scheduler that has the gate on schedules nothing"},
		"served":                 {gate: features.GenericWorkload, minor: 37, on: []string{"scheduling.k8s.io/v1beta1"}},
		"one resource alone":     {gate: features.GenericWorkload, minor: 37, on: []string{"scheduling.k8s.io/v1beta1"}, off: []string{"workloads"}, want: "does not serve podgroups, workloads"},
		"no version in common":   {gate: features.GenericWorkload, minor: 36, want: "kube-apiserver cannot serve podgroups, workloads in scheduling.k8s.io/v1beta1, which GenericWorkload needs, while it emulates 1.36: leave the gate off"},
		"not finished yet":       {gate: features.ClusterTrustBundle, minor: 36, on: []string{"certificates.k8s.io/v1"}, want: "--runtime-config=certificates.k8s.io/v1beta1=true"},
		"the other version":      {gate: features.ClusterTrustBundle, minor: 37, on: []string{"certificates.k8s.io/v1"}},
		"neither version":        {gate: features.ClusterTrustBundle, minor: 36, want: "kube-apiserver does not serve clustertrustbundles in certificates.k8s.io/v1beta1, which ClusterTrustBundle needs: start every kube-apiserver with --runtime-config=certificates.k8s.io/v1beta1=true"},
		"the finished one":       {gate: features.ClusterTrustBundle, minor: 37, want: "--runtime-config=certificates.k8s.io/v1=true"},
		"a version that is new":  {gate: features.DRADeviceTaintRules, minor: 37, on: []string{"resource.k8s.io/v1beta2"}, want: "--runtime-config=resource.k8s.io/v1=true; without it a kube-scheduler"},
		"before there was one":   {gate: features.DRADeviceTaintRules, minor: 36, on: []string{"resource.k8s.io/v1beta2"}, want: "kube-apiserver cannot serve devicetaintrules in resource.k8s.io/v1, which DRADeviceTaintRules needs, while it emulates 1.36: leave the gate off until it does not; meanwhile a kube-scheduler"},
		"a gate that needs none": {gate: features.MaxUnavailableStatefulSet, minor: 36},
	} {
		t.Run(name, func(t *testing.T) {
			serving := byDefault(utilversion.MajorMinor(1, test.minor))
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
