//go:build linux

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

package gates

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilversion "k8s.io/apimachinery/pkg/util/version"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/component-base/featuregate"
	"k8s.io/kubernetes-features/pkg/featurelifecycle/catalog"
	lifecyclefeatures "k8s.io/kubernetes-features/pkg/features"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
)

const (
	serverWaits      = "kube-apiserver never becomes ready, since it waits for a version that it does not serve"
	controllersWait  = "the controllers of Jobs, claims and groups and kube-scheduler wait for v1beta1, and other gates need what they do"
	withoutWorkloads = "it depends on GenericWorkload, which is left out"
	withoutRelist    = "it depends on PLEGOnDemandRelist, which is off and cannot be turned on"
)

// waits are gates with which processes do not work while the version of an API is not served
// that binaries of this version use, and why that ends the test for all. With other gates a
// process waits, too, and the server serves and stores the objects in the versions it has.
var waits = map[gate]string{
	"GenericWorkload":         controllersWait,
	"MutatingAdmissionPolicy": serverWaits,
	"PodCertificateRequest":   serverWaits,
}

// leftOutAt are the gates that TestEveryGate leaves out at each version, and why. No other is:
// a gate with a wrong entry would vanish from the test.
var leftOutAt = map[string]map[gate]string{
	"1.37": {},
	"1.36": {
		"DRAWorkloadResourceClaims":       withoutWorkloads,
		"GenericWorkload":                 controllersWait,
		"PodCertificateRequest":           serverWaits,
		"TopologyAwareWorkloadScheduling": withoutWorkloads,
		"WorkloadWithJob":                 withoutWorkloads,
	},
	"1.35": {
		"EventedPLEG":             withoutRelist,
		"GenericWorkload":         controllersWait,
		"MutatingAdmissionPolicy": serverWaits,
		"PodCertificateRequest":   serverWaits,
	},
	"1.34": {
		"EventedPLEG":             withoutRelist,
		"MutatingAdmissionPolicy": serverWaits,
		"PodCertificateRequest":   noVersion("podcertificaterequests.certificates.k8s.io"),
		"StorageVersionMigrator":  noVersion("storageversionmigrations.storagemigration.k8s.io"),
	},
}

func noVersion(resource string) string {
	return fmt.Sprintf("kube-apiserver has no version of %s", resource)
}

// emulating serves everything that servers of a version have.
func emulating(version *utilversion.Version) catalog.Serving {
	return catalog.Serving{Enabled: func(schema.GroupVersionResource) bool { return true }, Emulated: version, Scheme: legacyscheme.Scheme}
}

// hasAny returns whether servers have a resource in any version.
func hasAny(serving catalog.Serving, resource schema.GroupResource) bool {
	for _, v := range serving.Scheme.PrioritizedVersionsForGroup(resource.Group) {
		if serving.Has(resource.WithVersion(v.Version)) {
			return true
		}
	}
	return false
}

// leftOut returns why a gate cannot be on in a cluster that emulates a version, "" if it
// can.
func leftOut(version *utilversion.Version, entry catalog.Entry) string {
	serving := emulating(version)
	for _, a := range entry.APIs {
		for _, r := range a.Resources {
			if resource := (schema.GroupResource{Group: a.GroupVersion.Group, Resource: r}); !hasAny(serving, resource) {
				return noVersion(resource.String())
			}
		}
	}
	if why := waits[entry.Name]; why != "" && len(entry.NotServed(serving)) > 0 {
		return why
	}
	if needed := lacks(version, entry.Name); needed != "" {
		return fmt.Sprintf("it depends on %s, which is off and cannot be turned on", needed)
	}
	for _, needed := range utilfeature.DefaultFeatureGate.Dependencies()[entry.Name] {
		for _, other := range catalog.All() {
			if other.Name == needed && leftOut(version, other) != "" {
				return fmt.Sprintf("it depends on %s, which is left out", needed)
			}
		}
	}
	return ""
}

// lacks returns a gate that another depends on, and that is off at a version and cannot be
// turned on; "" if there is none.
func lacks(version *utilversion.Version, name featuregate.Feature) featuregate.Feature {
	for _, needed := range utilfeature.DefaultFeatureGate.Dependencies()[name] {
		spec := specIn(version, needed)
		if !spec.Known || spec.Locked && !spec.Default {
			return needed
		}
		if further := lacks(version, needed); further != "" {
			return further
		}
	}
	return ""
}

// lacksHere is lacks at the version of this run.
func lacksHere(name featuregate.Feature) featuregate.Feature {
	version, err := emulatedVersion()
	if err != nil {
		return ""
	}
	return lacks(version, name)
}

// inServedVersion gives an object another version where servers that emulate one do not have
// its own.
func inServedVersion(object *unstructured.Unstructured, version *utilversion.Version) {
	serving, kind := emulating(version), object.GroupVersionKind()
	resource, _ := meta.UnsafeGuessKindToResource(kind)
	if !serving.Scheme.Recognizes(kind) || serving.Has(resource) {
		return
	}
	for _, v := range serving.Scheme.PrioritizedVersionsForGroup(kind.Group) {
		if serving.Has(v.WithResource(resource.Resource)) {
			object.SetGroupVersionKind(v.WithKind(kind.Kind))
			return
		}
	}
}

// TestLeftOut holds the gates that are left out at each version.
func TestLeftOut(t *testing.T) {
	versions, err := catalog.EmulatedVersions()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]map[gate]string{}
	for _, version := range versions {
		got[version.String()] = map[gate]string{}
		for _, entry := range catalog.All() {
			if entry.Name == lifecyclefeatures.FeatureLifecycle || !catalog.Open(specIn(version, entry.Name)) {
				continue
			}
			if why := leftOut(version, entry); why != "" {
				got[version.String()][entry.Name] = why
			}
		}
	}
	if diff := cmp.Diff(leftOutAt, got); diff != "" {
		t.Errorf("gates that are left out, and why (-want +got):\n%s\nA gate that vanishes from the test needs another APIs of its Entry in pkg/featurelifecycle/catalog, or a line here.", diff)
	}
}

// TestInServedVersion: an object keeps its version where that is served.
func TestInServedVersion(t *testing.T) {
	for _, test := range []struct{ at, version, kind, want string }{
		{"1.37", "resource.k8s.io/v1beta2", "DeviceTaintRule", "resource.k8s.io/v1beta2"},
		{"1.36", "resource.k8s.io/v1beta2", "DeviceTaintRule", "resource.k8s.io/v1beta2"},
		{"1.35", "resource.k8s.io/v1beta2", "DeviceTaintRule", "resource.k8s.io/v1alpha3"},
		{"1.35", "storagemigration.k8s.io/v1", "StorageVersionMigration", "storagemigration.k8s.io/v1beta1"},
		{"1.34", "storagemigration.k8s.io/v1", "StorageVersionMigration", "storagemigration.k8s.io/v1"},
		{"1.34", "v1", "Pod", "v1"},
		{"1.34", "example.com/v1", "Widget", "example.com/v1"},
	} {
		object := &unstructured.Unstructured{}
		object.SetAPIVersion(test.version)
		object.SetKind(test.kind)
		inServedVersion(object, utilversion.MustParse(test.at))
		if got := object.GetAPIVersion(); got != test.want || object.GetKind() != test.kind {
			t.Errorf("%s of %s at %s is %s of %s, want %s", test.kind, test.version, test.at, object.GetKind(), got, test.want)
		}
	}
}
