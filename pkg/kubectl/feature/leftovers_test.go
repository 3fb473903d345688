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
	"bytes"
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	webhookerrors "k8s.io/apiserver/pkg/admission/plugin/webhook/errors"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/rest"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/util/flowcontrol"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/feature-lifecycle/lifecycle/task"
	"k8s.io/kubernetes-features/pkg/featurelifecycle/history"
	"k8s.io/kubernetes-features/pkg/kubectl/observe"
	"k8s.io/utils/ptr"
)

const (
	tolerance = "HPAConfigurableTolerance"
	signals   = "ContainerStopSignals"
	maxDown   = "MaxUnavailableStatefulSet"
	jobOwner  = "JobManagedBy"
)

// plainCluster is what is observed of one without this system: tolerance and signals are
// off, jobOwner is on, and maxDown is on in one kubelet. It shows all components but the
// scheduler.
func plainCluster() *observe.Cluster {
	gates := func(differing bool) map[string]observe.Value {
		value := func(on bool) observe.Value {
			return observe.Value{Enabled: on, Explicit: ptr.To(false), Source: "its metrics"}
		}
		return map[string]observe.Value{tolerance: value(false), signals: value(false), jobOwner: value(true), maxDown: value(differing), "StorageCapacityScoring": value(true)}
	}
	return &observe.Cluster{
		Version: "v1.36.3", Nodes: 2, Asked: 2,
		Processes: []observe.Process{
			{Component: observe.APIServer, Instance: "192.0.2.1:6443", Version: "v1.36.3", Complete: true, Gates: gates(false)},
			{Component: observe.ControllerManager, Instance: "kcm", Version: "v1.36.3", Complete: true, Gates: gates(false)},
			{Component: observe.Kubelet, Instance: "n1", Version: "v1.36.3", Complete: true, Gates: gates(false)},
			{Component: observe.Kubelet, Instance: "n2", Version: "v1.36.3", Complete: true, Gates: gates(true)},
			{Component: observe.Proxy, Instance: "p", Version: "v1.36.3", Complete: true, Gates: gates(false)},
		},
		Gaps: []observe.Gap{{Component: observe.Scheduler, Why: "it runs elsewhere", Next: "the address of its metrics"}},
	}
}

// storing is a cluster without this system that stores objects.
type storing struct {
	t       *testing.T
	cluster *observe.Cluster
	client  *dynamicfake.FakeDynamicClient
	tasks   task.Clients
	// observed counts how often components were asked.
	observed int
}

var storedKinds = []schema.GroupVersionKind{
	{Group: "autoscaling", Version: "v2", Kind: "HorizontalPodAutoscaler"}, {Version: "v1", Kind: "Pod"}, {Version: "v1", Kind: "PodTemplate"},
	{Version: "v1", Kind: "ReplicationController"}, {Group: "apps", Version: "v1", Kind: "Deployment"}, {Group: "apps", Version: "v1", Kind: "ReplicaSet"},
	{Group: "apps", Version: "v1", Kind: "StatefulSet"}, {Group: "apps", Version: "v1", Kind: "DaemonSet"}, {Group: "batch", Version: "v1", Kind: "Job"},
	{Group: "batch", Version: "v1", Kind: "CronJob"},
}

const (
	scalerJSON = `{"apiVersion":"autoscaling/v2","kind":"HorizontalPodAutoscaler","metadata":{"namespace":"shop","name":"web","uid":"1","resourceVersion":"7"},"spec":{"behavior":{"scaleUp":{"tolerance":"0.05"},"scaleDown":{"tolerance":"0.05"}}}}`
	otherJSON  = `{"apiVersion":"autoscaling/v2","kind":"HorizontalPodAutoscaler","metadata":{"namespace":"shop","name":"api","uid":"2","resourceVersion":"7"},"spec":{"behavior":{"scaleUp":{"tolerance":"0.1"}}}}`
	signalJSON = `{"apiVersion":"v1","kind":"Pod","metadata":{"namespace":"shop","name":"web-0","uid":"3","resourceVersion":"7"},"spec":{"containers":[{"lifecycle":{"stopSignal":"SIGUSR1"}}]},"status":{"containerStatuses":[{"stopSignal":"SIGUSR1"}],"initContainerStatuses":[{"stopSignal":"SIGUSR1"}]}}`
	jobJSON    = `{"apiVersion":"batch/v1","kind":"Job","metadata":{"namespace":"shop","name":"queue","uid":"4","resourceVersion":"7"},"spec":{"managedBy":"example.com/queue"}}`
)

func newStoring(t *testing.T, objects ...string) *storing {
	t.Helper()
	b, client := api(t, storedKinds, objects...)
	s := &storing{t: t, cluster: plainCluster(), client: client, tasks: b.visible.clients}
	client.PrependReactor("patch", "*", s.changed)
	return s
}

// run runs a command, and returns what a terminal shows.
func (s *storing) run(command string) string {
	s.t.Helper()
	return s.runIn(s.t.Context(), command)
}

func (s *storing) runIn(ctx context.Context, command string) string {
	s.t.Helper()
	var out bytes.Buffer
	b := withoutAPI(s.t).base(&out)
	b.observe = func(context.Context, *rest.Config, observe.Options) (*observe.Cluster, error) {
		s.observed++
		return s.cluster, nil
	}
	b.connectTasks = func(*rest.Config) (task.Clients, error) { return s.tasks, nil }
	code := b.run(ctx, append(strings.Fields(command), "--server=https://localhost"))
	return "$ kubectl feature " + command + "\n" + out.String() + "[exit code " + string(rune('0'+code)) + "]\n\n"
}

// writes are the objects that were changed or deleted.
func (s *storing) writes() []string {
	var names []string
	for _, action := range s.client.Actions() {
		switch a := action.(type) {
		case clienttesting.PatchActionImpl:
			if len(a.PatchOptions.DryRun) == 0 {
				names = append(names, a.GetName())
			}
		case clienttesting.DeleteActionImpl:
			names = append(names, a.GetName())
		}
	}
	return names
}

// TestStoredOfGates covers what reads objects.
func TestStoredOfGates(t *testing.T) {
	var all strings.Builder
	s := newStoring(t, scalerJSON, otherJSON, signalJSON, jobJSON)
	for _, command := range []string{
		"leftovers", "leftovers " + tolerance + " -o wide", "leftovers " + tolerance + " " + signals + " -o json", "leftovers " + signals + " --no-headers", "leftovers " + signals + " --retained -o wide",
		"leftovers " + jobOwner, "leftovers " + maxDown, "leftovers Nope", "leftovers -n other", "leftovers -o name",
		"list --in-use", "list --in-use -o json", "list --in-use -A", "list --in-use -o name",
	} {
		all.WriteString(s.run(command))
	}
	forbid(&s.client.Fake, "horizontalpodautoscalers")
	all.WriteString("# Without permission to list autoscalers\n")
	all.WriteString(s.run("leftovers " + tolerance))
	all.WriteString(newStoring(t).run("leftovers " + tolerance + " " + signals))
	golden(t, "leftovers.txt", all.String())
	if len(s.writes()) > 0 {
		t.Errorf("written were %v", s.writes())
	}
}

// TestCleanByClient covers the whole way in a cluster without this system.
func TestCleanByClient(t *testing.T) {
	var all strings.Builder
	s := newStoring(t, scalerJSON, otherJSON, signalJSON)
	say := func(commands ...string) {
		for _, command := range commands {
			all.WriteString(s.run(command))
		}
	}
	say("clean "+tolerance+" --client", "clean "+maxDown+" --client --assume-off=kube-scheduler", "clean Nope --client", "clean StorageCapacityScoring --client",
		"clean "+tolerance+" --dry-run", "clean "+tolerance+" --client --wait", "clean "+tolerance+" --client --max-writes=0", "clean "+tolerance+" --client --assume-off=kube-apiserver")
	all.WriteString("# Of one that Pods use\n")
	say("clean " + signals + " --client --assume-off=kube-scheduler")
	if len(s.writes()) > 0 {
		t.Errorf("written were %v", s.writes())
	}
	s = newStoring(t, scalerJSON, otherJSON)
	say("clean " + tolerance + " --client --assume-off=kube-scheduler --dry-run")
	if len(s.writes()) > 0 {
		t.Errorf("written in a dry run were %v", s.writes())
	}
	s = newStoring(t, scalerJSON, otherJSON)
	say("clean " + tolerance + " --client --assume-off=kube-scheduler")
	if got := s.writes(); !slices.Equal(unrepeated(got), []string{"api", "web"}) {
		t.Errorf("written were %v", got)
	}
	if s.observed != 2 {
		t.Errorf("components were asked %d times, want before it begins, and before the first write", s.observed)
	}
	say("clean "+tolerance+" --client --assume-off=kube-scheduler", "leftovers "+tolerance)
	golden(t, "clean_client.txt", all.String())
}

func unrepeated(names []string) []string {
	names = slices.Clone(names)
	slices.Sort(names)
	return slices.Compact(names)
}

// changed stores what is no dry run, and answers both.
func (s *storing) changed(action clienttesting.Action) (bool, runtime.Object, error) {
	patch := action.(clienttesting.PatchActionImpl)
	before, err := s.client.Tracker().Get(patch.GetResource(), patch.GetNamespace(), patch.GetName())
	if err != nil {
		return true, nil, err
	}
	_, after, err := clienttesting.ObjectReaction(s.client.Tracker())(action)
	if len(patch.PatchOptions.DryRun) > 0 && err == nil {
		err = s.client.Tracker().Update(patch.GetResource(), before, patch.GetNamespace())
	}
	return true, after, err
}

// TestCleanStopsAtTheFirstSurprise: a server that answers the write otherwise than the dry
// run, or a gate that is turned on after it, ends the command.
func TestCleanStopsAtTheFirstSurprise(t *testing.T) {
	const command = "clean " + tolerance + " --client --assume-off=kube-scheduler"
	refuse := func(s *storing, dryRun bool) {
		s.client.PrependReactor("patch", "*", func(action clienttesting.Action) (bool, runtime.Object, error) {
			if (len(action.(clienttesting.PatchActionImpl).PatchOptions.DryRun) > 0) != dryRun {
				return false, nil, nil
			}
			return true, nil, apierrors.NewForbidden(schema.GroupResource{Resource: "horizontalpodautoscalers"}, "web", errors.New("because"))
		})
	}
	for name, tc := range map[string]struct {
		prepare func(s *storing)
		says    string
		code    string
	}{
		"refused write":   {func(s *storing) { refuse(s, false) }, "stopped at the first surprise, in task ClearField/horizontalpodautoscalers.autoscaling/spec.behavior.scaleUp.tolerance, in the first page of objects: ", "3"},
		"refused dry run": {func(s *storing) { refuse(s, true) }, "2 cannot: shop/api: ", "1"},
		"turned on meanwhile": {func(s *storing) {
			s.client.PrependReactor("patch", "*", func(clienttesting.Action) (bool, runtime.Object, error) {
				s.cluster.Processes[0].Gates[tolerance] = observe.Value{Enabled: true}
				return false, nil, nil
			})
		}, "it is on in kube-apiserver/192.0.2.1:6443; turn it off there first (--feature-gates); nothing was changed", "3"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStoring(t, scalerJSON, otherJSON)
			tc.prepare(s)
			out := s.run(command)
			if !strings.Contains(out, tc.says) || !strings.Contains(out, "[exit code "+tc.code+"]") {
				t.Errorf("want %q and the exit code %s:\n%s", tc.says, tc.code, out)
			}
			for _, o := range []string{"web", "api"} {
				found, err := s.client.Tracker().Get(schema.GroupVersionResource{Group: "autoscaling", Version: "v2", Resource: "horizontalpodautoscalers"}, "shop", o)
				if err != nil || !strings.Contains(stringOf(t, found), "tolerance") {
					t.Errorf("%s was changed: %v, %v", o, found, err)
				}
			}
		})
	}
}

// TestCleanAllowsUntried: objects that a server cannot try to change are changed with a flag
// alone.
func TestCleanAllowsUntried(t *testing.T) {
	for flag, want := range map[string]struct {
		says, code string
		writes     []string
	}{
		"":                 {"1 could not be tried (--allow-untried changes them, too): shop/web: ", "1", nil},
		" --allow-untried": {tolerance + ": nothing is left", "0", []string{"api", "web"}},
	} {
		s := newStoring(t, scalerJSON, otherJSON)
		s.client.PrependReactor("patch", "*", func(action clienttesting.Action) (bool, runtime.Object, error) {
			if patch := action.(clienttesting.PatchActionImpl); patch.GetName() != "web" || len(patch.PatchOptions.DryRun) == 0 {
				return false, nil, nil
			}
			return true, nil, webhookerrors.NewDryRunUnsupportedErr("scalers.example.com")
		})
		out := s.run("clean " + tolerance + " --client --assume-off=kube-scheduler" + flag)
		if !strings.Contains(out, want.says) || !strings.Contains(out, "[exit code "+want.code+"]") {
			t.Errorf("with %q: want %q and the exit code %s:\n%s", flag, want.says, want.code, out)
		}
		if got := unrepeated(s.writes()); !slices.Equal(got, want.writes) {
			t.Errorf("with %q: written were %v, want %v", flag, got, want.writes)
		}
	}
}

func stringOf(t *testing.T, o runtime.Object) string {
	t.Helper()
	data, err := runtime.Encode(unstructured.UnstructuredJSONScheme, o)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// TestCleanInterrupted: the command says how to go on.
func TestCleanInterrupted(t *testing.T) {
	s := newStoring(t, scalerJSON, otherJSON)
	ctx, cancel := context.WithCancel(t.Context())
	s.client.PrependReactor("patch", "*", func(action clienttesting.Action) (bool, runtime.Object, error) {
		if len(action.(clienttesting.PatchActionImpl).PatchOptions.DryRun) == 0 {
			cancel()
		}
		return false, nil, nil
	})
	out := s.runIn(ctx, "clean "+tolerance+" --client --assume-off=kube-scheduler")
	if !strings.Contains(out, "interrupted in ClearField/horizontalpodautoscalers.autoscaling/spec.behavior.scaleUp.tolerance") || !strings.Contains(out, "the same command continues with what is left") {
		t.Errorf("got\n%s", out)
	}
}

// TestWritesAreGuarded: writes wait for their turn, and from time to time for what components
// show. Reads do not. Nothing is sent once the gate is on.
func TestWritesAreGuarded(t *testing.T) {
	taken, now := &countingLimiter{}, time.Unix(0, 0)
	var observed []bool
	var found error
	g := &writeGuard{limiter: taken, now: func() time.Time { return now }, observe: func(_ context.Context, serversOnly bool) error {
		observed = append(observed, serversOnly)
		return found
	}}
	sent := 0
	through := g.wrap(roundTripper(func(*http.Request) (*http.Response, error) { sent++; return nil, nil }))
	send := func(method string) error {
		request, err := http.NewRequestWithContext(t.Context(), method, "https://localhost", nil)
		if err != nil {
			t.Fatal(err)
		}
		_, err = through.RoundTrip(request) //nolint:bodyclose // there is none
		return err
	}
	after := func(d time.Duration, want int, methods ...string) {
		t.Helper()
		now = now.Add(d)
		for _, method := range methods {
			if err := send(method); err != nil {
				t.Errorf("after %s: %v", d, err)
			}
		}
		if len(observed) != want {
			t.Errorf("after %s components were observed %d times, want %d", d, len(observed), want)
		}
	}
	after(time.Hour, 0, http.MethodGet, http.MethodPatch, http.MethodDelete)
	if taken.waits != 2 || sent != 3 {
		t.Errorf("%d of %d requests waited, want the 2 writes", taken.waits, sent)
	}
	g.arm()
	after(recheck-1, 0, http.MethodPatch)
	after(1, 1, http.MethodGet, http.MethodPatch, http.MethodPatch)
	after(recheck, 2, http.MethodDelete)
	after(recheckAll, 3, http.MethodPatch)
	after(recheck, 4, http.MethodPatch)
	if want := []bool{true, true, false, true}; !slices.Equal(observed, want) {
		t.Errorf("kube-apiservers alone were observed: %v, want %v", observed, want)
	}
	before := sent
	now, found = now.Add(recheck), errors.New("it is on")
	for range 2 {
		if err := send(http.MethodPatch); err == nil || err.Error() != "it is on" {
			t.Errorf("got %v", err)
		}
	}
	if sent != before || len(observed) != 5 {
		t.Errorf("%d writes were sent, and components observed %d times, after the gate was on", sent-before, len(observed))
	}
}

// TestCleanRefusesUnexaminedWaits: what comes behind a wait is not touched while there may be
// something to wait for, as where the API does not serve it.
func TestCleanRefusesUnexaminedWaits(t *testing.T) {
	const gate = "DRAWorkloadResourceClaims"
	const claim = `{"apiVersion":"resource.k8s.io/v1","kind":"ResourceClaim","metadata":{"namespace":"shop","name":"shared","uid":"1","resourceVersion":"7"},"status":{"reservedFor":[{"apiGroup":"scheduling.k8s.io","resource":"podgroups","name":"workers","uid":"2"}]}}`
	b, client := api(t, []schema.GroupVersionKind{claimKind, podKind}, claim)
	s := &storing{t: t, cluster: plainCluster(), client: client, tasks: b.visible.clients}
	client.PrependReactor("patch", "*", s.changed)
	for i := range s.cluster.Processes {
		s.cluster.Processes[i].Gates[gate] = observe.Value{Source: "its metrics"}
	}
	out := s.run("clean " + gate + " --client --assume-off=kube-scheduler")
	if !strings.Contains(out, "not done: looking for ") || !strings.Contains(out, "the API does not serve it") || !strings.Contains(out, "nothing was changed") || !strings.Contains(out, "[exit code 1]") {
		t.Errorf("got\n%s", out)
	}
	if writes := s.writes(); len(writes) > 0 {
		t.Errorf("written were %v", writes)
	}
}

// TestNoServerObserved: nothing counts as off where no kube-apiserver shows its gates.
func TestNoServerObserved(t *testing.T) {
	s := newStoring(t, scalerJSON)
	s.cluster.Processes = s.cluster.Processes[1:]
	s.cluster.Gaps = append(s.cluster.Gaps, observe.Gap{Component: observe.APIServer, Why: "not permitted", Next: "get the path /metrics"})
	for command, says := range map[string]string{
		"leftovers":                   "no kube-apiserver was observed",
		"leftovers -o json":           `"notExamined": "its value is not known: no kube-apiserver was observed"`,
		"leftovers " + tolerance:      "no kube-apiserver was observed, so it is not known whether anything of it is left over",
		"clean --client " + tolerance: "no kube-apiserver was observed; get the permission to read their metrics (ClusterRole system:monitoring); nothing was changed",
	} {
		out := s.run(command)
		if !strings.Contains(out, says) || strings.Contains(out, "[exit code 0]") || strings.Contains(out, "[exit code 1]") {
			t.Errorf("%s: want %q:\n%s", command, says, out)
		}
	}
}

type roundTripper func(*http.Request) (*http.Response, error)

func (r roundTripper) RoundTrip(request *http.Request) (*http.Response, error) { return r(request) }

type countingLimiter struct {
	flowcontrol.RateLimiter
	waits int
}

func (c *countingLimiter) Wait(context.Context) error { c.waits++; return nil }

// TestStandings: what counts as off.
func TestStandings(t *testing.T) {
	for name, tc := range map[string]struct {
		change  func(*observe.Cluster)
		gate    string
		assumed []string
		says    string
	}{
		"off":                     {func(c *observe.Cluster) { c.Gaps = nil }, tolerance, nil, ""},
		"on in servers":           {func(c *observe.Cluster) { c.Gaps = nil }, jobOwner, nil, "it is on in kube-apiserver/192.0.2.1:6443, kube-controller-manager/kcm, kubelet/n1 and 2 more"},
		"on in a kubelet":         {func(*observe.Cluster) {}, maxDown, nil, "it is on in kubelet/n2"},
		"a component is not seen": {func(*observe.Cluster) {}, tolerance, nil, "whether it is off is not known of kube-scheduler: it runs elsewhere"},
		"and is known to be off":  {func(*observe.Cluster) {}, tolerance, []string{observe.Scheduler}, ""},
		"nodes were left out":     {func(c *observe.Cluster) { c.Asked = 1 }, tolerance, []string{observe.Scheduler}, "kubelet: 1 of 2 nodes were asked"},
		"nodes that join": {func(c *observe.Cluster) {
			c.Joins = map[string]string{observe.Kubelet: "ConfigMap kubelet-config"}
			c.Settings = []observe.Setting{{Component: observe.Kubelet, Gate: signals, Enabled: true, Source: "ConfigMap kubelet-config"}}
		}, signals, []string{observe.Scheduler}, "it is on in nodes that join (kubelet: ConfigMap kubelet-config)"},
		"nodes that join with the default": {func(c *observe.Cluster) {
			c.Joins = map[string]string{observe.Kubelet: "ConfigMap kubelet-config"}
		}, tolerance, []string{observe.Scheduler}, "it is on in nodes that join (kubelet: the default of 1.36, which ConfigMap kubelet-config leaves)"},
		"nodes that join with all of the stage": {func(c *observe.Cluster) {
			c.Joins = map[string]string{observe.Kubelet: "ConfigMap kubelet-config"}
			c.Settings = []observe.Setting{{Component: observe.Kubelet, Gate: "AllAlpha", Enabled: true, Source: "ConfigMap kubelet-config"}}
		}, signals, []string{observe.Scheduler}, "it is on in nodes that join (kubelet: AllAlpha of ConfigMap kubelet-config)"},
		"nodes that join with it off": {func(c *observe.Cluster) {
			c.Joins = map[string]string{observe.Kubelet: "ConfigMap kubelet-config"}
			c.Settings = []observe.Setting{{Component: observe.Kubelet, Gate: tolerance, Source: "ConfigMap kubelet-config"}}
		}, tolerance, []string{observe.Scheduler}, ""},
		"servers of two versions": {func(c *observe.Cluster) {
			second := c.Processes[0]
			second.Version, second.Gates = "v1.37.2", map[string]observe.Value{"StatefulSetRecreateStrategy": {}}
			c.Processes = append(c.Processes, second)
		}, "StatefulSetRecreateStrategy", nil, "whether it is off is not known of kube-scheduler"},
		"a gate of others": {func(*observe.Cluster) {}, "Nope", nil, "no kube-apiserver that was observed has the gate"},
	} {
		t.Run(name, func(t *testing.T) {
			c := plainCluster()
			tc.change(c)
			got := observedStanding(c, history.Load(), tc.gate, tc.assumed).problem()
			if (got == "") != (tc.says == "") || !strings.Contains(got, tc.says) {
				t.Errorf("got %q, want %q", got, tc.says)
			}
		})
	}
}
