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
	"context"
	"errors"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/version"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	clienttesting "k8s.io/client-go/testing"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/feature-lifecycle/client/clientset/versioned/fake"
	"k8s.io/feature-lifecycle/lifecycle/task"
)

// lastingMapper knows the same after Reset.
type lastingMapper struct{ *meta.DefaultRESTMapper }

func (lastingMapper) Reset() {}

// serverVersion is the version of a server.
type serverVersion struct{ version.Info }

func (v serverVersion) ServerVersion() (*version.Info, error) {
	if v.GitVersion == "" {
		return nil, errors.New("no answer")
	}
	return &v.Info, nil
}

// api is what a cluster shows: the kinds that it serves, and objects.
func api(t *testing.T, served []schema.GroupVersionKind, objects ...string) (*bare, *dynamicfake.FakeDynamicClient) {
	t.Helper()
	mapper := meta.NewDefaultRESTMapper(nil)
	lists := map[schema.GroupVersionResource]string{}
	for _, kind := range served {
		mapper.Add(kind, meta.RESTScopeNamespace)
		plural, _ := meta.UnsafeGuessKindToResource(kind)
		lists[plural] = kind.Kind + "List"
	}
	var all []runtime.Object
	for _, object := range objects {
		o := &unstructured.Unstructured{}
		if err := o.UnmarshalJSON([]byte(object)); err != nil {
			t.Fatal(err)
		}
		all = append(all, o)
	}
	client := dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), lists, all...)
	return &bare{discovery: serverVersion{version.Info{GitVersion: "v1.36.3"}}, visible: &visible{task.Clients{Dynamic: client, Mapper: lastingMapper{mapper}}}}, client
}

var (
	workloadOf136 = schema.GroupVersionKind{Group: "scheduling.k8s.io", Version: "v1alpha2", Kind: "Workload"}
	podGroupOf136 = schema.GroupVersionKind{Group: "scheduling.k8s.io", Version: "v1alpha2", Kind: "PodGroup"}
	workloadOf137 = schema.GroupVersionKind{Group: "scheduling.k8s.io", Version: "v1beta1", Kind: "Workload"}
	podGroupOf137 = schema.GroupVersionKind{Group: "scheduling.k8s.io", Version: "v1beta1", Kind: "PodGroup"}
	sliceKind     = schema.GroupVersionKind{Group: "resource.k8s.io", Version: "v1", Kind: "ResourceSlice"}
	podKind       = schema.GroupVersionKind{Version: "v1", Kind: "Pod"}
	claimKind     = schema.GroupVersionKind{Group: "resource.k8s.io", Version: "v1", Kind: "ResourceClaim"}
	served136     = []schema.GroupVersionKind{workloadOf136, podGroupOf136, sliceKind, podKind, claimKind}
)

const (
	workloadJSON = `{"apiVersion":"scheduling.k8s.io/v1alpha2","kind":"Workload","metadata":{"namespace":"shop","name":"batch"}}`
	podGroupJSON = `{"apiVersion":"scheduling.k8s.io/v1alpha2","kind":"PodGroup","metadata":{"namespace":"shop","name":"workers"}}`
	sliceJSON    = `{"apiVersion":"resource.k8s.io/v1","kind":"ResourceSlice","metadata":{"name":"node-1-cpu"},"spec":{"devices":[{"name":"a"},{"name":"b","nodeAllocatableResourceMappings":{"cpu":{}}}]}}`
	podJSON      = `{"apiVersion":"v1","kind":"Pod","metadata":{"namespace":"shop","name":"web"},"status":{"nodeAllocatableResourceClaimStatuses":[{"resourceClaimName":"c","resources":{"cpu":"4"}}]}}`
	claimJSON    = `{"apiVersion":"resource.k8s.io/v1","kind":"ResourceClaim","metadata":{"namespace":"shop","name":"shared","ownerReferences":[{"apiVersion":"scheduling.k8s.io/v1alpha2","kind":"PodGroup","name":"workers","uid":"1"}]}}`
	newPodJSON   = `{"apiVersion":"v1","kind":"Pod","metadata":{"namespace":"shop","name":"new"},"status":{"nodeAllocatableResourceClaimStatuses":[{"resourceClaimName":"c"}]}}`
)

// shows lets the check look at what a cluster shows.
func (w *world) shows(b *bare) func(*upgradeCheckOptions) {
	return func(o *upgradeCheckOptions) { o.bare = b }
}

// TestWorkloadsOf136AreNamedBeforeTheMove: servers of 1.36 do not know the tasks of 1.37,
// and their API shows the objects.
func TestWorkloadsOf136AreNamedBeforeTheMove(t *testing.T) {
	w := newWorld(t, "1.36")
	w.reports[0].Spec.Features = []v1alpha1.ReportedFeature{{Name: "GenericWorkload", Enabled: true, Explicit: true}}
	w.feature("GenericWorkload", v1alpha1.StateOn)
	w.plans["GenericWorkload to 1.37"] = []v1alpha1.PlannedTask{{Name: v1alpha1.TaskWaitForUses, State: v1alpha1.StateUpgrading}}
	b, client := api(t, served136, workloadJSON, podGroupJSON)
	for _, planErr := range []error{nil, apierrors.NewForbidden(v1alpha1.Resource("features/plan"), "", errors.New("no"))} {
		w.planErr = planErr
		out, code := w.run("1.37", "", w.shows(b))
		for _, says := range []string{
			"GenericWorkload: not safe (NeedsTasks)", "1 workloads.scheduling.k8s.io: shop/batch; 1 podgroups.scheduling.k8s.io: shop/workers",
			"set --feature-gates=GenericWorkload=false in all components and wait until the feature is Off; turn it on again once status.version is 1.37",
		} {
			if code != ExitNotSafe || !strings.Contains(out, says) {
				t.Errorf("exit code %d, want it to say %q:\n%s", code, says, out)
			}
		}
	}
	empty, _ := api(t, served136)
	if out, code := w.run("1.37", "", w.shows(empty)); code != ExitSafe {
		t.Errorf("without objects: exit code %d and\n%s", code, out)
	}
	// What is not served, or may not be read, is not known.
	hidden, _ := api(t, []schema.GroupVersionKind{sliceKind, podKind})
	if out, code := w.run("1.37", "", w.shows(hidden)); code != ExitUnknown || !strings.Contains(out, "looking for workloads.scheduling.k8s.io: the API does not serve it") ||
		!strings.Contains(out, "Next: serve podgroups.scheduling.k8s.io, workloads.scheduling.k8s.io for the check (--runtime-config of kube-apiserver), and repeat it\n") {
		t.Errorf("not served: exit code %d and\n%s", code, out)
	}
	forbid(&client.Fake, "podgroups")
	out, code := w.run("1.37", "", w.shows(b))
	for _, says := range []string{
		"GenericWorkload: not safe (NeedsTasks)", "1 workloads.scheduling.k8s.io: shop/batch; not everything was examined: looking for podgroups.scheduling.k8s.io: ",
		"turn it on again once status.version is 1.37; let the check list podgroups.scheduling.k8s.io in all namespaces (verb list), and repeat it\n",
	} {
		if code != ExitNotSafe || !strings.Contains(out, says) {
			t.Errorf("forbidden: exit code %d, want it to say %q:\n%s", code, says, out)
		}
	}
	forbid(&client.Fake, "workloads")
	if out, code := w.run("1.37", "", w.shows(b)); code != ExitUnknown || !strings.Contains(out, "let the check list podgroups.scheduling.k8s.io, workloads.scheduling.k8s.io in all namespaces") {
		t.Errorf("all forbidden: exit code %d and\n%s", code, out)
	}
}

// TestRenamedFieldsAreNamedBeforeTheMove: the gate is on in both versions, and the field
// is in one.
func TestRenamedFieldsAreNamedBeforeTheMove(t *testing.T) {
	const gate = "DRANodeAllocatableResources"
	w := newWorld(t, "1.36")
	w.reports[0].Spec.Features = []v1alpha1.ReportedFeature{{Name: gate, Enabled: true, Explicit: true}}
	w.feature(gate, v1alpha1.StateOn)
	b, client := api(t, served136, sliceJSON, podJSON, newPodJSON)
	out, code := w.run("1.37", "", w.shows(b))
	for _, says := range []string{
		gate + ": not safe (NotInAdjacentVersion)", "1.37 loses what stored objects have of it",
		"1 resourceslices.resource.k8s.io have spec.devices[*].nodeAllocatableResourceMappings: node-1-cpu",
		"1 pods have status.nodeAllocatableResourceClaimStatuses[*].resources: shop/web",
		"spec.devices[*].nodeAllocatableResources took its place", "set --feature-gates=" + gate + "=false in all components",
	} {
		if code != ExitNotSafe || !strings.Contains(out, says) {
			t.Errorf("exit code %d, want it to say %q:\n%s", code, says, out)
		}
	}
	if strings.Contains(out, "shop/new") {
		t.Errorf("a Pod without the field is named:\n%s", out)
	}
	empty, emptyClient := api(t, served136, newPodJSON)
	if out, code := w.run("1.37", "", w.shows(empty)); code != ExitSafe {
		t.Errorf("without objects: exit code %d and\n%s", code, out)
	}
	unknown := func(name, says string, change ...func(*upgradeCheckOptions)) {
		t.Helper()
		if out, code := w.run("1.37", "", change...); code != ExitUnknown || !strings.Contains(out, says) {
			t.Errorf("%s: exit code %d, want it to say %q:\n%s", name, code, says, out)
		}
	}
	unknown("without a client", "stored objects were not examined")
	forbid(&emptyClient.Fake, "pods")
	unknown("forbidden", "Next: let the check list pods in all namespaces (verb list), and repeat it\n", w.shows(empty))
	forbid(&client.Fake, "pods")
	for _, says := range []string{
		gate + ": not safe (NotInAdjacentVersion)", "1 resourceslices.resource.k8s.io have spec.devices[*].nodeAllocatableResourceMappings: node-1-cpu",
		"not everything was examined: looking for status.nodeAllocatableResourceClaimStatuses[*].resources in pods: listing pods", "let the check list pods",
	} {
		if out, code := w.run("1.37", "", w.shows(b)); code != ExitNotSafe || !strings.Contains(out, says) {
			t.Errorf("found, and forbidden in another place: exit code %d, want it to say %q:\n%s", code, says, out)
		}
	}
	// What is found counts although the servers could not search on their own.
	left(w.feature(gate, v1alpha1.StateOn), v1alpha1.ReasonNotExamined, "no key")
	if out, code := w.run("1.37", "", w.shows(b)); code != ExitNotSafe || !strings.Contains(out, "1 resourceslices.resource.k8s.io have") {
		t.Errorf("not searched by the servers: exit code %d and\n%s", code, out)
	}
	unknown("searched by none", "no key (stored objects were not examined: looking for status", w.shows(empty))
	w.feature(gate, v1alpha1.StateOff)
	w.reports[0].Spec.Features[0].Enabled = false
	if out, code := w.run("1.37", "", w.shows(b)); code != ExitSafe {
		t.Errorf("off and clean: exit code %d and\n%s", code, out)
	}
}

// TestUnreadObjectsStopTheNextMove: the servers name what they do not read themselves.
func TestUnreadObjectsStopTheNextMove(t *testing.T) {
	w := newWorld(t, "1.36")
	left(w.feature("MaxUnavailableStatefulSet", v1alpha1.StateOn), v1alpha1.ReasonUnreadable, "another version stored 2 lamps")
	if out, code := w.run("1.37", ""); code != ExitNotSafe || !strings.Contains(out, "MaxUnavailableStatefulSet: not safe (NeedsTasks)\n  Why:  another version stored 2 lamps\n") {
		t.Errorf("exit code %d and\n%s", code, out)
	}
}

// TestLongListsAreReadToTheirEnd: a token that expires meanwhile is no failure.
func TestLongListsAreReadToTheirEnd(t *testing.T) {
	w := newWorld(t, "1.36")
	w.reports[0].Spec.Features = []v1alpha1.ReportedFeature{{Name: "GenericWorkload", Enabled: true, Explicit: true}}
	w.feature("GenericWorkload", v1alpha1.StateOn)
	w.plans["GenericWorkload to 1.37"] = []v1alpha1.PlannedTask{{Name: v1alpha1.TaskWaitForUses, State: v1alpha1.StateUpgrading}}
	b, client := api(t, served136)
	// The fake client does not hand on continue tokens of lists of all namespaces.
	pages := 0
	client.PrependReactor("list", "workloads", func(clienttesting.Action) (bool, runtime.Object, error) {
		page := &unstructured.UnstructuredList{}
		page.SetAPIVersion("scheduling.k8s.io/v1alpha2")
		page.SetKind("WorkloadList")
		o := unstructured.Unstructured{}
		if err := o.UnmarshalJSON([]byte(workloadJSON)); err != nil {
			return true, nil, err
		}
		pages++
		switch pages {
		case 1:
			o.SetName("first")
			page.SetContinue("old")
		case 2:
			err := apierrors.NewResourceExpired("compacted")
			err.ErrStatus.Continue = "new"
			return true, nil, err
		case 3:
			o.SetName("second")
		default:
			t.Errorf("page %d was read of 2 that there are", pages)
			return true, &unstructured.UnstructuredList{}, nil
		}
		page.Items = append(page.Items, o)
		return true, page, nil
	})
	if out, code := w.run("1.37", "", w.shows(b)); code != ExitNotSafe || !strings.Contains(out, "2 workloads.scheduling.k8s.io: shop/first, shop/second") {
		t.Errorf("exit code %d and\n%s", code, out)
	}
}

// TestInterruptedLookIsNoResult: what was not seen is not unknown, and the command fails.
func TestInterruptedLookIsNoResult(t *testing.T) {
	for name, gate := range map[string]string{"objects": "GenericWorkload", "fields": "DRANodeAllocatableResources", "a cluster without Features": ""} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, "1.36")
			client := fake.NewClientset(w.reports[0])
			if gate == "" {
				noFeatures(client)
			} else {
				w.reports[0].Spec.Features = []v1alpha1.ReportedFeature{{Name: gate, Enabled: true, Explicit: true}}
				client = fake.NewClientset(w.reports[0], w.feature(gate, v1alpha1.StateOn))
				client.PrependReactor("create", "features/plan", func(action clienttesting.Action) (bool, runtime.Object, error) {
					return true, action.(clienttesting.CreateActionImpl).GetObject(), nil
				})
			}
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			b, objects := api(t, served136)
			objects.PrependReactor("list", "*", func(clienttesting.Action) (bool, runtime.Object, error) {
				cancel()
				return true, nil, ctx.Err()
			})
			r, err := (&checker{client: client.FeaturesV1alpha1(), gates: w.gates, namespace: "kube-system", bare: b}).check(ctx, "1.37")
			if !errors.Is(err, errInterrupted) {
				t.Errorf("got %+v and %v", r, err)
			}
		})
	}
}

// noFeatures lets a server answer as upstream's do.
func noFeatures(client *fake.Clientset) {
	client.PrependReactor("list", "*", func(action clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewNotFound(action.GetResource().GroupResource(), "")
	})
}

// withoutFeatures runs the check on a cluster of upstream's servers.
func (w *world) withoutFeatures(to string, b *bare) (string, int) {
	w.t.Helper()
	return w.run(to, "", w.shows(b), func(o *upgradeCheckOptions) {
		client := fake.NewClientset()
		noFeatures(client)
		o.client = client
	})
}

// TestClusterWithoutFeatures: what its API shows is named, and it never is safe.
func TestClusterWithoutFeatures(t *testing.T) {
	served137 := []schema.GroupVersionKind{workloadOf137, podGroupOf137, sliceKind, podKind}
	for _, kind := range []string{"apps/v1 Deployment", "apps/v1 StatefulSet", "apps/v1 DaemonSet", "apps/v1 ReplicaSet", "batch/v1 Job", "batch/v1 CronJob", "v1 PodTemplate", "v1 ReplicationController", "resource.k8s.io/v1 ResourceClaim"} {
		version, name, _ := strings.Cut(kind, " ")
		served137 = append(served137, schema.FromAPIVersionAndKind(version, name))
	}
	all, _ := api(t, served136, workloadJSON, podGroupJSON, sliceJSON, podJSON, claimJSON)
	none, _ := api(t, served136)
	hidden, _ := api(t, []schema.GroupVersionKind{sliceKind, podKind})
	silent, _ := api(t, served136)
	silent.discovery = serverVersion{}
	far, _ := api(t, served136)
	far.discovery = serverVersion{version.Info{GitVersion: "v1.35.4"}}
	emulating, _ := api(t, served136)
	emulating.discovery = serverVersion{version.Info{GitVersion: "v1.37.2", EmulationMajor: "1", EmulationMinor: "36"}}
	down, _ := api(t, served137, strings.Replace(workloadJSON, "v1alpha2", "v1beta1", 1))
	down.discovery = serverVersion{version.Info{GitVersion: "v1.37.2"}}
	downHidden, _ := api(t, served137[2:])
	downHidden.discovery = down.discovery
	downPartly, client := api(t, served137, strings.Replace(workloadJSON, "v1alpha2", "v1beta1", 1))
	downPartly.discovery = down.discovery
	forbid(&client.Fake, "podgroups")
	partly, client := api(t, served136, workloadJSON)
	forbid(&client.Fake, "podgroups")
	forbidden, client := api(t, served136)
	forbid(&client.Fake, "podgroups")
	forbid(&client.Fake, "resourceslices")
	const unknown = "the cluster has no Features"
	for name, tc := range map[string]struct {
		api  *bare
		to   string
		code int
		says []string
	}{
		"objects that 1.37 does not read": {all, "1.37", ExitNotSafe, []string{
			unknown, "GenericWorkload: not safe (NotInAdjacentVersion)", "1 workloads.scheduling.k8s.io: shop/batch; 1 podgroups.scheduling.k8s.io: shop/workers", "save what is to be kept and delete these objects",
			"DRANodeAllocatableResources: not safe", "node-1-cpu", "note the values and remove the fields", "in the condition Clean of the Feature DRANodeAllocatableResources",
			"DRAWorkloadResourceClaims: not safe", "1.37 cannot end the use of what this version stores: 1 resourceclaims.resource.k8s.io have metadata.ownerReferences[apiVersion=scheduling.k8s.io/v1alpha2]: shop/shared",
		}},
		"none": {none, "1.37", ExitUnknown, []string{unknown}},
		"an API not served": {hidden, "1.37", ExitUnknown, []string{
			unknown, "GenericWorkload: unknown", "is not known: looking for workloads.scheduling.k8s.io: the API does not serve it",
			"Next: serve podgroups.scheduling.k8s.io, workloads.scheduling.k8s.io for the check (--runtime-config of kube-apiserver), and repeat it, or turn the feature off in servers of 1.37",
		}},
		"found, and forbidden in another place": {partly, "1.37", ExitNotSafe, []string{
			"GenericWorkload: not safe", "1 workloads.scheduling.k8s.io: shop/batch; not everything was examined: looking for podgroups.scheduling.k8s.io: listing podgroups.scheduling.k8s.io",
			"turning that off there removes it; let the check list podgroups.scheduling.k8s.io in all namespaces (verb list), and repeat it",
		}},
		"forbidden": {forbidden, "1.37", ExitUnknown, []string{
			"GenericWorkload: unknown", "Next: let the check list podgroups.scheduling.k8s.io in all namespaces (verb list), and repeat it",
			"DRANodeAllocatableResources: unknown", "Next: let the check list resourceslices.resource.k8s.io in all namespaces (verb list), and repeat it",
		}},
		"no version":          {silent, "1.37", ExitFailed, []string{"the server has no API features.k8s.io", "no answer"}},
		"two minor versions":  {far, "1.37", ExitFailed, []string{"one minor version at a time"}},
		"an emulated version": {emulating, "1.37", ExitUnknown, []string{"from 1.36 to 1.37"}},
		"on the way down":     {down, "1.36", ExitNotSafe, []string{unknown, "GenericWorkload: not safe", "1.36 does not read what this version stores: 1 workloads.scheduling.k8s.io: shop/batch"}},
		"an API not served on the way down": {downHidden, "1.36", ExitUnknown, []string{
			"GenericWorkload: unknown (NotExamined)", "is not known: looking for workloads.scheduling.k8s.io: the API does not serve it; looking for podgroups.scheduling.k8s.io: the API does not serve it",
			"Next: serve podgroups.scheduling.k8s.io, workloads.scheduling.k8s.io for the check",
		}},
		"found, and forbidden in another place, on the way down": {downPartly, "1.36", ExitNotSafe, []string{
			"1 workloads.scheduling.k8s.io: shop/batch; not everything was examined: looking for podgroups.scheduling.k8s.io: listing podgroups.scheduling.k8s.io", "before any binary is replaced; let the check list podgroups.scheduling.k8s.io",
		}},
		"a far target": {all, "1.40", ExitFailed, []string{"this plugin knows versions up to"}},
	} {
		out, code := newWorld(t, "1.36").withoutFeatures(tc.to, tc.api)
		for _, says := range tc.says {
			if code != tc.code || !strings.Contains(out, says) {
				t.Errorf("%s: exit code %d, want %d and %q:\n%s", name, code, tc.code, says, out)
			}
		}
	}
}

// TestClusterWithoutFeaturesAhead: of the version after this build's a list of gates is all
// that is known, also for clusters of which nothing is.
func TestClusterWithoutFeaturesAhead(t *testing.T) {
	w, from, to := newWorldAhead(t, nil)
	b, _ := api(t, []schema.GroupVersionKind{workloadOf137, podGroupOf137, sliceKind, podKind})
	b.discovery = serverVersion{version.Info{GitVersion: "v" + from + ".2"}}
	out, code := w.withoutFeatures(to, b)
	release := "v" + to + ".0-beta.0"
	for _, says := range []string{"the cluster has no Features", to + " itself: this plugin has the gates of " + release, "check again with kubectl-feature of " + to, "by the gates of " + release} {
		if code != ExitUnknown || !strings.Contains(out, says) {
			t.Errorf("exit code %d, want it to say %q:\n%s", code, says, out)
		}
	}
	if strings.Contains(out, "create them when they start") {
		t.Errorf("upstream's servers create no Features:\n%s", out)
	}
}
