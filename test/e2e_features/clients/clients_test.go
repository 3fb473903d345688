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

package clients

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/kubernetes-features/test/e2e_features/framework"
	"k8s.io/kubernetes-features/test/utils/localcluster"
)

// world is one cluster with the objects of all clients.
type world struct {
	*framework.Cluster
	objects framework.Objects
	scripts []*transcript
	// informers and operator run all the time, and watches from the restart on.
	informers, operator *stream
	watches             []*stream
	// operatedFile is the manifest of the operator.
	operatedFile string
}

// operated is the namespace of the operator.
const operated = "operated"

// TestClients takes the objects of all clients through gates that are on, off, and on
// again. The files of testdata have what each client prints, and what it makes the server write.
func TestClients(t *testing.T) {
	w := start(t)
	t.Run("on", w.on)
	w.off(t)
	if t.Failed() {
		t.Fatal("the gates are not off, or the clients have not what they need: the rest would only repeat that")
	}
	t.Run("held", w.held)
	t.Run("released", w.released)
	t.Run("pristine", w.pristine)
	t.Run("on again", w.onAgain)
	w.informers.end(t)
	w.operator.end(t)
	for _, s := range w.scripts {
		t.Run(s.name, s.check)
	}
}

// gates are values of the gates that a restart changes. Two others depend on them.
func gates(on bool) string {
	return fmt.Sprintf("%s=%t,RestartAllContainersOnContainerExits=false,%s=%t,DRADeviceTaintRules=false", rules, on, taints, on)
}

// start starts a cluster without controllers: what the objects become is what clients and
// the server made of them.
func start(t *testing.T) *world {
	t.Helper()
	c := framework.Start(t, localcluster.Config{
		FeatureGates: gates(true),
		Only:         []string{localcluster.Etcd, localcluster.APIServer},
		ExtraArgs:    map[string][]string{localcluster.APIServer: {"--dynamic-features=" + surge + "," + signals, "--feature-settle-period=1s"}},
	})
	w := &world{Cluster: c, objects: c.Objects()}
	w.request(signals, true)
	dir := t.TempDir()
	for _, one := range w.clients(t) {
		w.scripts = append(w.scripts, &transcript{client: one, objects: w.objects, dir: dir, versions: map[string]string{}})
		w.namespace(t, one.name)
	}
	w.namespace(t, operated)
	return w
}

func (w *world) namespace(t *testing.T, name string) {
	t.Helper()
	if _, err := w.Kube.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{}); err != nil {
		t.Fatalf("creating namespace %s: %v", name, err)
	}
}

// request asks for a value of a dynamic feature, and waits until it has it.
func (w *world) request(feature string, on bool) {
	w.Request(feature, fmt.Sprintf(`{"enabled":%t}`, on))
	state := v1alpha1.StateOff
	if on {
		state = v1alpha1.StateOn
	}
	w.WaitForFeature(feature, string(state), func(f *v1alpha1.Feature) bool { return f.Status.State == state })
}

// other is a field manager beside each client, whose fields nothing may take away.
const other = "other"

// on lets each client apply its objects. Another manager has fields of its own in them.
func (w *world) on(t *testing.T) {
	for _, s := range w.scripts {
		t.Run(s.name, func(t *testing.T) {
			s.heading("the gates are on")
			s.do(t, s.apply, with)
			for i, object := range s.stored(t) {
				if gated(object) != gated(managed(s.name, with)[i]) {
					t.Errorf("%s has %q while the gates are on, want %q", object.GetKind(), gated(object), gated(managed(s.name, with)[i]))
				}
				w.share(t, object, i)
			}
			s.look(t)
			s.do(t, s.apply, with)
			for _, action := range s.before {
				s.do(t, action, with)
			}
			agrees(t, s, with, false)
		})
	}
}

// share applies fields of another manager.
func (w *world) share(t *testing.T, object *unstructured.Unstructured, i int) {
	t.Helper()
	part := &unstructured.Unstructured{Object: map[string]any{}}
	part.SetGroupVersionKind(object.GroupVersionKind())
	part.SetAnnotations(map[string]string{other: "this"})
	if object.GetKind() != "ResourceSlice" {
		part.Object["spec"] = map[string]any{"minReadySeconds": int64(7)}
	}
	part.SetName(object.GetName())
	_, err := w.objects.Resource(resources[i]).Namespace(object.GetNamespace()).Apply(t.Context(), object.GetName(), part, metav1.ApplyOptions{FieldManager: other})
	if err != nil {
		t.Fatalf("applying fields of %s to %s: %v", other, object.GetKind(), err)
	}
}

// shared sees that the other manager has what it applied.
func shared(t *testing.T, object *unstructured.Unstructured) {
	t.Helper()
	ready, _, _ := unstructured.NestedInt64(object.Object, "spec", "minReadySeconds")
	if object.GetAnnotations()[other] != "this" || object.GetKind() != "ResourceSlice" && ready != 7 {
		t.Errorf("%s %s lost fields of %s: annotations %v, minReadySeconds %d", object.GetKind(), object.GetNamespace(), other, object.GetAnnotations(), ready)
	}
	for _, entry := range object.GetManagedFields() {
		if entry.Manager == other && strings.Contains(entry.FieldsV1.GetRawString(), `"f:`+other+`"`) {
			return
		}
	}
	t.Errorf("%s %s: %s owns nothing any more: %v", object.GetKind(), object.GetNamespace(), other, object.GetManagedFields())
}

// off turns all gates off while informers and an operator run, and waits until what can be
// cleared is cleared.
func (w *world) off(t *testing.T) {
	w.operate(t)
	w.informers = follow(t, "client-go's informers", driverOf(t, "client-go"), "-kubeconfig="+w.Kubeconfig("admin"), "-f="+w.operatedFile, "watch")
	w.informers.until(t, "all objects", func(lines []line) bool {
		return slices.ContainsFunc(lines, func(l line) bool { return l.Action == "synced" })
	})
	before := w.informers.last()

	w.MustRestartWith(gates(false), localcluster.APIServer)
	w.WaitForFeature(taints, "Off", func(f *v1alpha1.Feature) bool { return f.Status.State == v1alpha1.StateOff })
	w.watch(t)
	w.request(surge, false)
	w.Request(signals, `{"enabled":false}`)
	for feature, using := range map[string]string{rules: "restart policies of containers", signals: "stop signals"} {
		held := w.WaitForFeature(feature, "held by Deployments", func(f *v1alpha1.Feature) bool {
			progress := meta.FindStatusCondition(f.Status.Conditions, v1alpha1.ConditionProgressing)
			return progress != nil && progress.Reason == v1alpha1.ReasonBlocked
		})
		message := meta.FindStatusCondition(held.Status.Conditions, v1alpha1.ConditionProgressing).Message
		if want := fmt.Sprintf("waiting for %d deployments.apps using %s", len(w.scripts)+1, using); !strings.Contains(message, want) {
			t.Errorf("feature %s is held with the message %q, want %q", feature, message, want)
		}
	}
	w.unpublished(t)
	for _, s := range w.scripts {
		stored := s.stored(t)
		for _, object := range stored {
			shared(t, object)
		}
		if got := gated(stored[0]) + gated(stored[2]); got != "" {
			t.Errorf("objects of %s still have %s", s.name, got)
		}
		if got, want := gated(stored[1]), gated(managed(s.name, with)[1]); got != want {
			t.Errorf("the Deployment of %s has %q before its owner acts, want %q", s.name, got, want)
		}
		s.look(t)
		w.seenOnce(t, before, stored)
	}
}

// unpublished waits until no field is in the documents of the kinds.
func (w *world) unpublished(t *testing.T) {
	t.Helper()
	v2 := []string{surgeIn, ruleIn, signalIn}
	framework.Eventually(t, "documents without the fields", func() error {
		for path, fields := range map[string][]string{"/openapi/v2": append(v2, taintIn), "/openapi/v3/apis/apps/v1": v2, "/openapi/v3/apis/resource.k8s.io/v1": {taintIn}} {
			kinds, err := w.kinds(t, path)
			if err != nil {
				return err
			}
			for _, field := range fields {
				kind, property, _ := strings.Cut(field, " ")
				if properties, ok := kinds[kind]; !ok {
					return fmt.Errorf("%s has no type %s", path, kind)
				} else if _, ok := properties.Properties[property]; ok {
					return fmt.Errorf("%s has %s of %s", path, property, kind)
				}
			}
		}
		return nil
	})
}

// The types and their properties that the gates add.
const (
	surgeIn  = "io.k8s.api.apps.v1.RollingUpdateStatefulSetStrategy " + surgeField
	signalIn = "io.k8s.api.core.v1.Lifecycle " + signalField
	ruleIn   = "io.k8s.api.core.v1.Container " + ruleField
	taintIn  = "io.k8s.api.resource.v1.Device " + taintField
)

// schemas are those of a document, as far as is asked of them.
type schemas map[string]struct {
	Properties map[string]any `json:"properties"`
}

// kinds are the schemas of a document of either version.
func (w *world) kinds(t *testing.T, path string) (schemas, error) {
	t.Helper()
	data, err := w.Kube.Discovery().RESTClient().Get().AbsPath(path).SetHeader("Accept", "application/json").DoRaw(t.Context())
	if err != nil {
		return nil, err
	}
	var document struct {
		Definitions schemas
		Components  struct{ Schemas schemas }
	}
	if err := json.Unmarshal(data, &document); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if document.Definitions != nil {
		return document.Definitions, nil
	}
	return document.Components.Schemas, nil
}

// cleared sees that what was cleared did not come back, and that nothing else was lost.
func (w *world) cleared(t *testing.T, s *transcript) []*unstructured.Unstructured {
	t.Helper()
	stored := s.stored(t)
	for _, object := range stored {
		shared(t, object)
	}
	if got := gated(stored[0]) + gated(stored[2]); got != "" {
		t.Errorf("%s brought %s back", s.name, got)
	}
	return stored
}

// manage lets a client compare a manifest, apply it, apply it again, and compare again.
func manage(t *testing.T, s *transcript, apply string, e edition) {
	t.Helper()
	for _, action := range s.before {
		s.do(t, action, e)
	}
	for _, c := range s.compare {
		s.do(t, c.action, e)
	}
	s.do(t, apply, e)
	settles(t, s, e)
	agrees(t, s, e, true)
}

// agrees sees that a client that has applied a manifest finds no difference to the cluster.
// While gates are off that the manifest has fields of, comparisons that do not ask the server
// find one: its answer would be that it drops the fields. Parsers that do not know a field fail for
// an object that has it.
func agrees(t *testing.T, s *transcript, e edition, gatesOff bool) {
	t.Helper()
	for _, c := range s.compare {
		unknown := c.older || c.parses && gatesOff && exitCode(s.stored(t)[1]) != 0
		var different []string
		for _, text := range s.do(t, c.action, e) {
			switch {
			case !differs(text):
			case unknown && strings.Contains(text, ruleField+": field not declared"):
			case c.seesGenerations && gatesOff && e != without && strings.Contains(text, "ResourceSlice/"):
			default:
				different = append(different, text)
			}
		}
		if want := gatesOff && e != without && !c.asksServer; want != (len(different) > 0) {
			t.Errorf("%s of %s says that these differ, after an apply of the manifest %s: %q", c.action, s.name, e, different)
		}
	}
}

// differs is true for what a client prints of an object that is not as in the manifest. kubectl
// prints the line of each field; another generation is what settles explains.
func differs(text string) bool {
	for _, part := range []string{" configured", " OutOfSync", " ComparisonError"} {
		if strings.Contains(text, part) {
			return true
		}
	}
	return changed.MatchString(text) && !strings.Contains(text, " generation: ")
}

// settles lets a client apply again what it has just applied: nothing is written. The one
// exception is upstream's: with its gate off, a ResourceSlice whose manifest has taints gets
// another generation at each write, since the registry compares specs before it drops the
// field (pkg/registry/resource/resourceslice, PrepareForUpdate).
func settles(t *testing.T, s *transcript, e edition) {
	t.Helper()
	before := s.stored(t)
	s.do(t, s.apply, e)
	for i, object := range s.stored(t) {
		if e != without && object.GetKind() == "ResourceSlice" && !s.onlyChanges {
			if was, is := before[i].GetGeneration(), object.GetGeneration(); is != was+1 {
				t.Errorf("ResourceSlice %s has generation %d after %d: if upstream drops taints before it compares, remove this exception", object.GetName(), is, was)
			}
			continue
		}
		if was, is := before[i].GetResourceVersion(), object.GetResourceVersion(); was != is {
			t.Errorf("%s of %s is written each time that its manifest is applied: resourceVersion %s, now %s", object.GetKind(), s.name, was, is)
		}
	}
}

// held lets each client compare and apply its former manifest while Deployments still have
// their fields.
func (w *world) held(t *testing.T) {
	for _, s := range w.scripts {
		t.Run(s.name, func(t *testing.T) {
			s.heading("the gates are off, and Deployments have their fields")
			manage(t, s, s.apply, with)
			if got, want := gated(w.cleared(t, s)[1]), gated(managed(s.name, with)[1]); got != want {
				t.Errorf("the Deployment of %s has %q, want %q: it is for its owner to give the fields up", s.name, got, want)
			}
			edits(t, s)
		})
	}
}

// edits lets a client compare and apply other restart rules, which the server takes from objects
// that have some. A client-side apply does not find the list in the published documents, warns, and
// takes the types that the client has built in. If those are older than the field it fails.
func edits(t *testing.T, s *transcript) {
	t.Helper()
	for _, c := range s.compare {
		s.do(t, c.action, edited)
	}
	s.do(t, s.apply, edited)
	want := rule[edited]
	if s.fallsBack {
		want = rule[with]
	}
	if got := exitCode(s.stored(t)[1]); got != want {
		t.Errorf("the Deployment of %s has the exit code %d, want %d", s.name, got, want)
	}
	s.do(t, s.apply, with)
	if got := exitCode(s.stored(t)[1]); got != rule[with] {
		t.Errorf("the Deployment of %s has the exit code %d, want %d", s.name, got, rule[with])
	}
}

// released lets each client apply a manifest without the fields, which ends the
// transitions.
func (w *world) released(t *testing.T) {
	for _, s := range w.scripts {
		t.Run(s.name, func(t *testing.T) {
			s.heading("the manifest gives the fields up")
			manage(t, s, s.apply, without)
			if got := gated(w.cleared(t, s)[1]); got != "" {
				t.Errorf("the Deployment of %s still has %s", s.name, got)
			}
		})
	}
	w.insists(t)
	for _, feature := range []string{rules, signals} {
		w.WaitForFeature(feature, "Off and clean", clean)
	}
}

func clean(f *v1alpha1.Feature) bool {
	return f.Status.State == v1alpha1.StateOff && meta.IsStatusConditionTrue(f.Status.Conditions, v1alpha1.ConditionClean)
}

// pristine lets each client apply the former manifest, as from an older revision: the server drops the
// fields.
func (w *world) pristine(t *testing.T) {
	for _, s := range w.scripts {
		t.Run(s.name, func(t *testing.T) {
			s.heading("the gates are off, and the former manifest comes back")
			manage(t, s, or(s.revert, s.apply), with)
			if got := gated(w.cleared(t, s)[1]); got != "" {
				t.Errorf("%s brought %s back", s.name, got)
			}
		})
	}
	for _, feature := range []string{surge, signals, rules, taints} {
		if f := w.Feature(feature); !clean(f) {
			t.Errorf("feature %s is not Off and clean any more: %+v", feature, f.Status)
		}
	}
	w.informed(t)
}

// onAgain turns dynamic gates on: the next apply brings their fields back.
func (w *world) onAgain(t *testing.T) {
	w.request(surge, true)
	w.request(signals, true)
	for _, s := range w.scripts {
		t.Run(s.name, func(t *testing.T) {
			s.look(t)
			s.heading("two gates are on again")
			manage(t, s, s.apply, with)
			stored := s.stored(t)
			if got, want := gated(stored[0])+" "+gated(stored[1]), surgeField+"=2 "+signalField+"=SIGUSR1"; got != want {
				t.Errorf("objects of %s have %q, want %q", s.name, got, want)
			}
		})
	}
}
