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
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	componentfeaturegate "k8s.io/component-base/featuregate"
	widgetsv1 "k8s.io/feature-lifecycle/examples/widget-operator/api/v1"
	"k8s.io/feature-lifecycle/featuregate"
)

// lamp is a Widget with all fields.
func lamp() *widgetsv1.Widget {
	return &widgetsv1.Widget{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "lamp", UID: "uid-of-lamp", Generation: 4},
		Spec:       widgetsv1.WidgetSpec{Size: 3, Text: "welcome", Color: "red"},
	}
}

// gateOf is the operator's gate with some features on.
func gateOf(t *testing.T, on ...componentfeaturegate.Feature) *featuregate.Gate {
	t.Helper()
	gate, err := newGate()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range on {
		turn(t, gate, name, true)
	}
	return gate
}

func turn(t *testing.T, gate *featuregate.Gate, name componentfeaturegate.Feature, on bool) {
	t.Helper()
	if err := gate.SetFromMap(map[string]bool{string(name): on}); err != nil {
		t.Fatal(err)
	}
}

// world is a reconciler with a cluster of objects in memory.
type world struct {
	*reconciler
	client.Client
}

func newWorld(t *testing.T, gate *featuregate.Gate, broken interceptor.Funcs, objects ...client.Object) world {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), widgetsv1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	c := fake.NewClientBuilder().WithScheme(scheme).WithStatusSubresource(&widgetsv1.Widget{}).WithObjects(objects...).WithInterceptorFuncs(broken).Build()
	return world{&reconciler{client: c, gate: gate}, c}
}

// reconcile reconciles the lamp.
func (w world) reconcile(t *testing.T) error {
	t.Helper()
	result, err := w.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(lamp())})
	if !result.IsZero() {
		t.Errorf("the result is %+v; watches tell when there is something to do", result)
	}
	return err
}

// configMap is that of the lamp, nil if there is none.
func (w world) configMap(t *testing.T) *corev1.ConfigMap {
	t.Helper()
	found := &corev1.ConfigMap{}
	err := w.Get(t.Context(), client.ObjectKeyFromObject(lamp()), found)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// widget is the lamp as it is stored.
func (w world) widget(t *testing.T) *widgetsv1.Widget {
	t.Helper()
	found := &widgetsv1.Widget{}
	if err := w.Get(t.Context(), client.ObjectKeyFromObject(lamp()), found); err != nil {
		t.Fatal(err)
	}
	return found
}

// isReady wants a condition Ready with a status, a reason, and a text in its message.
func (w world) isReady(t *testing.T, status metav1.ConditionStatus, reason, message string) {
	t.Helper()
	condition := meta.FindStatusCondition(w.widget(t).Status.Conditions, widgetsv1.ConditionReady)
	if condition == nil {
		t.Fatal("there is no condition Ready")
	}
	if condition.Status != status || condition.Reason != reason || !strings.Contains(condition.Message, message) || condition.ObservedGeneration != lamp().Generation {
		t.Errorf("Ready is %+v, want %s, %s, a message with %q, and generation %d", *condition, status, reason, message, lamp().Generation)
	}
}

func TestTheConfigMapIsAsSpecAndGatesSay(t *testing.T) {
	plain := lamp()
	plain.Spec.Color = ""
	for sentence, test := range map[string]struct {
		widget *widgetsv1.Widget
		on     []componentfeaturegate.Feature
		want   map[string]string
	}{
		"a color is left out while WidgetColor is off": {lamp(), nil, map[string]string{"text": "welcome", "size": "3"}},
		"a color is written while WidgetColor is on":   {lamp(), []componentfeaturegate.Feature{WidgetColor}, map[string]string{"text": "welcome", "size": "3", "color": "red"}},
		"a Widget without a color has none":            {plain, []componentfeaturegate.Feature{WidgetColor}, map[string]string{"text": "welcome", "size": "3"}},
		"the text alone is in capitals":                {lamp(), []componentfeaturegate.Feature{WidgetColor, WidgetUppercase}, map[string]string{"text": "WELCOME", "size": "3", "color": "red"}},
	} {
		t.Run(sentence, func(t *testing.T) {
			w := newWorld(t, gateOf(t, test.on...), interceptor.Funcs{}, test.widget)
			if err := w.reconcile(t); err != nil {
				t.Fatal(err)
			}
			configMap := w.configMap(t)
			if diff := cmp.Diff(test.want, configMap.Data); diff != "" {
				t.Errorf("data (-want +got):\n%s", diff)
			}
			if !metav1.IsControlledBy(configMap, lamp()) {
				t.Errorf("the ConfigMap belongs to %v, want the Widget", configMap.OwnerReferences)
			}
			w.isReady(t, metav1.ConditionTrue, widgetsv1.ReasonWritten, "ConfigMap default/lamp is as spec says")
		})
	}
}

// TestValuesChangeWhileItRuns: the same reconciler asks again each time.
func TestValuesChangeWhileItRuns(t *testing.T) {
	gate := gateOf(t, WidgetColor)
	w := newWorld(t, gate, interceptor.Funcs{}, lamp())
	for _, step := range []struct {
		name componentfeaturegate.Feature
		on   bool
		want map[string]string
	}{
		{WidgetColor, true, map[string]string{"text": "welcome", "size": "3", "color": "red"}},
		{WidgetUppercase, true, map[string]string{"text": "WELCOME", "size": "3", "color": "red"}},
		{WidgetColor, false, map[string]string{"text": "WELCOME", "size": "3"}},
		{WidgetUppercase, false, map[string]string{"text": "welcome", "size": "3"}},
	} {
		turn(t, gate, step.name, step.on)
		if err := w.reconcile(t); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(step.want, w.configMap(t).Data); diff != "" {
			t.Errorf("after %s=%t (-want +got):\n%s", step.name, step.on, diff)
		}
	}
	if diff := cmp.Diff(lamp().Spec, w.widget(t).Spec); diff != "" {
		t.Errorf("spec has changed, which is not the operator's (-want +got):\n%s", diff)
	}
}

// TestReconcileSkipsWriteIfUpToDate: nothing is sent when nothing has changed, and a change by
// hand is reverted.
func TestReconcileSkipsWriteIfUpToDate(t *testing.T) {
	w := newWorld(t, gateOf(t), interceptor.Funcs{}, lamp())
	if err := w.reconcile(t); err != nil {
		t.Fatal(err)
	}
	configMap, widget := w.configMap(t), w.widget(t)
	if err := w.reconcile(t); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{configMap.ResourceVersion, widget.ResourceVersion}, []string{w.configMap(t).ResourceVersion, w.widget(t).ResourceVersion}); diff != "" {
		t.Errorf("versions of the ConfigMap and the Widget after nothing has changed (-before +after):\n%s", diff)
	}
	configMap.Data = map[string]string{"text": "go away", "other": "thing"}
	if err := w.Update(t.Context(), configMap); err != nil {
		t.Fatal(err)
	}
	if err := w.reconcile(t); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]string{"text": "welcome", "size": "3"}, w.configMap(t).Data); diff != "" {
		t.Errorf("after a change by hand (-want +got):\n%s", diff)
	}
}

// TestConfigMapsOfOthersAreLeftAlone: with an owner or without, also of another Widget
// that had the name; the condition says what comes next, and is right once it went.
func TestConfigMapsOfOthersAreLeftAlone(t *testing.T) {
	before := lamp()
	before.UID = "uid-of-a-lamp-before"
	for sentence, owners := range map[string][]metav1.OwnerReference{
		"it has no owner":                  nil,
		"it belongs to a Deployment":       {{APIVersion: "apps/v1", Kind: "Deployment", Name: "lamp", UID: "other", Controller: new(true)}},
		"it belongs to a Widget of before": {*metav1.NewControllerRef(before, widgetsv1.GroupVersion.WithKind("Widget"))},
	} {
		t.Run(sentence, func(t *testing.T) {
			others := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "lamp", OwnerReferences: owners}, Data: map[string]string{"precious": "yes"}}
			w := newWorld(t, gateOf(t), interceptor.Funcs{}, lamp(), others)
			want := w.configMap(t)
			if err := w.reconcile(t); err != nil {
				t.Errorf("what waits for a person is retried: %v", err)
			}
			if diff := cmp.Diff(want, w.configMap(t)); diff != "" {
				t.Errorf("the ConfigMap of another owner has changed (-want +got):\n%s", diff)
			}
			w.isReady(t, metav1.ConditionFalse, widgetsv1.ReasonNameTaken, "delete it if it is not needed, or give the Widget another name")
			if err := w.Delete(t.Context(), want); err != nil {
				t.Fatal(err)
			}
			if err := w.reconcile(t); err != nil {
				t.Fatal(err)
			}
			w.isReady(t, metav1.ConditionTrue, widgetsv1.ReasonWritten, "is as spec says")
		})
	}
}

// TestWidgetsThatGo: one that is gone is no error, and nothing is made for one that goes.
func TestWidgetsThatGo(t *testing.T) {
	going := lamp()
	going.DeletionTimestamp, going.Finalizers = new(metav1.Now()), []string{"example.com/wait"}
	for sentence, objects := range map[string][]client.Object{"it is gone": nil, "it is being deleted": {going}} {
		t.Run(sentence, func(t *testing.T) {
			w := newWorld(t, gateOf(t), interceptor.Funcs{}, objects...)
			if err := w.reconcile(t); err != nil {
				t.Error(err)
			}
			if configMap := w.configMap(t); configMap != nil {
				t.Errorf("there is a ConfigMap: %v", configMap)
			}
		})
	}
}

// TestReconcileFailsIfConfigMapCannotBeWritten: the error is returned, so that it is tried again;
// the condition says it unless the cache was behind.
func TestReconcileFailsIfConfigMapCannotBeWritten(t *testing.T) {
	resource := corev1.Resource("configmaps")
	for sentence, test := range map[string]struct {
		err  error
		told bool
	}{
		"it is not allowed":            {apierrors.NewForbidden(resource, "lamp", errors.New("exceeded quota")), true},
		"another client was faster":    {apierrors.NewConflict(resource, "lamp", errors.New("it has changed")), false},
		"the cache has it not yet":     {apierrors.NewAlreadyExists(resource, "lamp"), false},
		"the server cannot be reached": {errors.New("connection refused"), true},
	} {
		t.Run(sentence, func(t *testing.T) {
			w := newWorld(t, gateOf(t), interceptor.Funcs{
				Create: func(context.Context, client.WithWatch, client.Object, ...client.CreateOption) error { return test.err },
			}, lamp())
			if err := w.reconcile(t); !errors.Is(err, test.err) {
				t.Errorf("the error is %v, want %v", err, test.err)
			}
			if test.told {
				w.isReady(t, metav1.ConditionFalse, widgetsv1.ReasonNotWritten, test.err.Error())
			} else if conditions := w.widget(t).Status.Conditions; len(conditions) > 0 {
				t.Errorf("people are told of it: %v", conditions)
			}
		})
	}
}
