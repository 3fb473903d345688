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

package versions

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/feature-lifecycle/lifecycle/transition"
	"k8s.io/kubernetes-features/pkg/kubectl/feature"
	"k8s.io/kubernetes-features/test/e2e_features/framework"
	"k8s.io/kubernetes/pkg/features"
)

const (
	allocatable = string(features.DRANodeAllocatableResources)
	sliceKey    = "/registry/resourceslices/old"
	podKey      = "/registry/pods/inuse/old"
)

var (
	resourceSlices = schema.GroupVersionResource{Group: "resource.k8s.io", Version: "v1", Resource: "resourceslices"}
	pods           = schema.GroupVersionResource{Version: "v1", Resource: "pods"}
)

// replaced are the fields that 1.37 replaced, with a value that is in no other field, by
// the key of the object that holds it.
var replaced = map[string]struct{ field, value string }{
	sliceKey: {"spec.devices[*].nodeAllocatableResourceMappings", "4321"},
	podKey:   {"status.nodeAllocatableResourceClaimStatuses[*].resources", "8765"},
}

// TestUncheckedMove goes from 1.36.3 as it is released to ours, with two gates on
// that store what 1.37 does not read. The plugin names it before, on servers that know
// nothing of Features, and the servers after. Turning the gates off removes it.
func TestUncheckedMove(t *testing.T) {
	for name, tc := range map[string]struct{ before, after []string }{
		"all APIs": {[]string{allAPIs}, []string{allAPIs}},
		// 1.37 refuses to start with an API that it does not have: it is taken out of the
		// command line, and nothing else is put in its place.
		"the API of Workloads in the version before alone": {[]string{"--runtime-config=" + lowerWorkload + "=true"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			uncheckedMove(t, tc.before, tc.after)
		})
	}
}

// uncheckedMove moves with arguments that serve APIs before and after.
func uncheckedMove(t *testing.T, before, after []string) {
	on := common(workload+"=true", allocatable+"=true")
	b := startBinaries(t, framework.Previous(t, "kube-apiserver"), 1, slices.Concat(on, before)...)
	b.use(t, "of136.yaml")
	// An annotation holds what was applied, too.
	for of, in := range map[schema.GroupVersionResource]string{resourceSlices: "", pods: "inuse"} {
		if _, err := b.kit.Dynamic.Resource(of).Namespace(in).Patch(t.Context(), "old", types.MergePatchType, []byte(`{"metadata":{"annotations":null}}`), metav1.PatchOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	b.checkedBefore(t)
	b.holds(t, true)

	ours := thisServer(t)
	b.replace(t, ours, slices.Concat(on, flags, after)...)
	b.namedAfter(t, workload, "1 workloads.scheduling.k8s.io (inuse/old): no server of this version can decode it", "1 podgroups.scheduling.k8s.io (inuse/old)")
	b.namedAfter(t, allocatable,
		"1 resourceslices.resource.k8s.io have "+replaced[sliceKey].field+" (old)", "spec.devices[*].nodeAllocatableResources took its place",
		"1 pods have "+replaced[podKey].field+" (inuse/old)")
	if len(after) == 0 {
		b.WaitForFeature(workload, "Progressing to name the API that is not served", func(f *v1alpha1.Feature) bool {
			progressing := meta.FindStatusCondition(f.Status.Conditions, v1alpha1.ConditionProgressing)
			return progressing != nil && progressing.Reason == v1alpha1.ReasonNotServed && strings.Contains(progressing.Message, served)
		})
	}
	// The value is gone for clients, and is there for 1.36.3.
	slice := b.slice(t)
	if content := fmt.Sprint(slice.Object); strings.Contains(content, replaced[sliceKey].value) {
		t.Errorf("1.37 reads the field that it does not have: %s", content)
	}
	b.holds(t, true)

	// The command line that turns them off.
	b.replace(t, ours, slices.Concat(common(workload+"=false", allocatable+"=false"), flags, after)...)
	for _, name := range []string{workload, allocatable} {
		b.WaitForFeature(name, "Off and clean", func(f *v1alpha1.Feature) bool {
			clean := meta.FindStatusCondition(f.Status.Conditions, v1alpha1.ConditionClean)
			return f.Status.State == v1alpha1.StateOff && clean != nil && clean.Reason == v1alpha1.ReasonNothingLeft
		})
	}
	b.holds(t, false)
	for _, key := range []string{workloadsKey, podGroupsKey} {
		b.keys(t, "once the gate is off", key)
	}
	// Nothing else of the objects changed.
	if diff := cmp.Diff(slice.Object, b.slice(t).Object); diff != "" {
		t.Errorf("the ResourceSlice is another (-before +after):\n%s", diff)
	}
	if _, failed := b.served(t); len(failed) > 0 {
		t.Errorf("collections cannot be listed: %v", failed)
	}
}

// slice reads the ResourceSlice, without what every write changes.
func (b *binaries) slice(t *testing.T) *unstructured.Unstructured {
	t.Helper()
	slice, err := b.kit.Dynamic.Resource(resourceSlices).Get(t.Context(), "old", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	slice.SetResourceVersion("")
	return slice
}

// checkedBefore runs the plugin on servers of 1.36.3, which have no Features.
func (b *binaries) checkedBefore(t *testing.T) {
	t.Helper()
	streams, _, stdout, stderr := genericiooptions.NewTestIOStreams()
	code := feature.Run([]string{"upgrade-check", "--to=" + upper, "--kubeconfig", b.Kubeconfig("admin")}, streams)
	out := stdout.String() + stderr.String()
	fmt.Fprintf(t.Output(), "upgrade-check of the servers of %s:\n%s", b.Version(), out)
	for _, want := range []string{
		"the cluster has no Features", workload + ": not safe", "1 workloads.scheduling.k8s.io: inuse/old; 1 podgroups.scheduling.k8s.io: inuse/old",
		allocatable + ": not safe", replaced[sliceKey].field + ": old", replaced[podKey].field + ": inuse/old",
		"in the condition Clean of the Feature " + allocatable,
	} {
		if code != 1 || !strings.Contains(out, want) {
			t.Errorf("exit code %d, want 1 and %q", code, want)
		}
	}
}

// namedAfter waits until a feature that is on names what its servers do not read, in its
// conditions, an event and a metric.
func (b *binaries) namedAfter(t *testing.T, name string, parts ...string) {
	t.Helper()
	f := b.WaitForFeature(name, "what is not read to be named", func(f *v1alpha1.Feature) bool {
		clean := meta.FindStatusCondition(f.Status.Conditions, v1alpha1.ConditionClean)
		return f.Status.State == v1alpha1.StateOn && clean != nil && clean.Reason == v1alpha1.ReasonUnreadable
	})
	message := meta.FindStatusCondition(f.Status.Conditions, v1alpha1.ConditionClean).Message
	for _, want := range append(parts, "turning the feature off removes it: set --feature-gates="+name+"=false in all components") {
		if !strings.Contains(message, want) {
			t.Errorf("%s: the message is %q, want %q in it", name, message, want)
		}
	}
	b.WaitForFeature(name, "UpgradeSafe to be False", func(f *v1alpha1.Feature) bool {
		up := meta.FindStatusCondition(f.Status.Conditions, v1alpha1.ConditionUpgradeSafe)
		return up != nil && up.Status == metav1.ConditionFalse && up.Reason == v1alpha1.ReasonNeedsTasks
	})
	down := meta.FindStatusCondition(f.Status.Conditions, v1alpha1.ConditionDowngradeSafe)
	if down == nil || down.Status != metav1.ConditionFalse || down.Reason != v1alpha1.ReasonNeedsTasks {
		t.Errorf("%s: DowngradeSafe is %+v, want False: 1.36 does not read what 1.37 stores", name, down)
	}
	b.WaitForEvent(name, transition.EventUnreadable, parts[0])
	b.WaitForMetrics(fmt.Sprintf(`feature_lifecycle_condition{condition="Clean",feature=%q,namespace="kube-system",reason="Unreadable"} 1`, name))
}

// holds checks whether the values of 1.36.3 are in etcd's bytes.
func (b *binaries) holds(t *testing.T, want bool) {
	t.Helper()
	var errs []error
	for key, of := range replaced {
		found, err := b.etcd.Get(t.Context(), key)
		switch {
		case err != nil:
			errs = append(errs, err)
		case len(found.Kvs) != 1:
			errs = append(errs, fmt.Errorf("%s is not stored", key))
		case bytes.Contains(found.Kvs[0].Value, []byte(of.value)) != want:
			errs = append(errs, fmt.Errorf("%s holds %s of %s: %t, want %t", key, of.value, of.field, !want, want))
		}
	}
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}
