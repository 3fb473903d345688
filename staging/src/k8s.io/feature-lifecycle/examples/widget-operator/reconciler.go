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
	"fmt"
	"strconv"
	"strings"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/source"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	componentfeaturegate "k8s.io/component-base/featuregate"
	widgetsv1 "k8s.io/feature-lifecycle/examples/widget-operator/api/v1"
	"k8s.io/feature-lifecycle/featuregate"
)

// Keys of the ConfigMap of a Widget.
const (
	keyText, keySize, keyColor = "text", "size", "color"
)

// errNameTaken means that the ConfigMap of a Widget's name does not belong to the Widget.
var errNameTaken = errors.New("the ConfigMap does not belong to the Widget")

// reconciler keeps a ConfigMap for each Widget.
type reconciler struct {
	client client.Client
	gate   componentfeaturegate.FeatureGate
}

// setUp adds the reconciler of Widgets to a manager.
func setUp(mgr manager.Manager, gate *featuregate.Gate) error {
	changes := followGate(gate, mgr.GetClient())
	if err := mgr.Add(changes); err != nil {
		return err
	}
	return ctrl.NewControllerManagedBy(mgr).
		For(&widgetsv1.Widget{}).
		// A ConfigMap requeues the Widget of its name, whoever owns it: the deletion of one
		// that takes the name is observed, too.
		Watches(&corev1.ConfigMap{}, &handler.EnqueueRequestForObject{}).
		WatchesRawSource(source.Channel(changes.widgets, &handler.EnqueueRequestForObject{})).
		// There is one controller; tests run several replicas in one process.
		WithOptions(controller.Options{SkipNameValidation: new(true)}).
		Complete(&reconciler{client: mgr.GetClient(), gate: gate})
}

// Reconcile makes the ConfigMap of a Widget what spec and the gates say. Features may
// change their values while it runs, so it asks each time.
func (r *reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	widget := &widgetsv1.Widget{}
	if err := r.client.Get(ctx, request.NamespacedName, widget); err != nil || !widget.DeletionTimestamp.IsZero() {
		// The garbage collector deletes the ConfigMap.
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	err := r.write(ctx, widget)
	if apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) {
		// The cache is behind: retry, without a condition.
		return ctrl.Result{}, err
	}
	if meta.SetStatusCondition(&widget.Status.Conditions, ready(widget, err)) {
		if err := r.client.Status().Update(ctx, widget); err != nil {
			return ctrl.Result{}, client.IgnoreNotFound(err)
		}
	}
	if errors.Is(err, errNameTaken) {
		// No retry helps: the deletion of the other ConfigMap requeues the Widget.
		return ctrl.Result{}, nil
	}
	return ctrl.Result{}, err
}

// write creates or updates the ConfigMap of a Widget.
func (r *reconciler) write(ctx context.Context, widget *widgetsv1.Widget) error {
	configMap := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: widget.Namespace, Name: widget.Name}}
	_, err := controllerutil.CreateOrUpdate(ctx, r.client, configMap, func() error {
		if configMap.ResourceVersion != "" && !metav1.IsControlledBy(configMap, widget) {
			return errNameTaken
		}
		configMap.Data = r.data(&widget.Spec)
		// It does not hold up the deletion of the Widget, which would take a permission more.
		return controllerutil.SetControllerReference(widget, configMap, r.client.Scheme(), controllerutil.WithBlockOwnerDeletion(false))
	})
	return err
}

// data returns the data of the ConfigMap of a Widget.
func (r *reconciler) data(spec *widgetsv1.WidgetSpec) map[string]string {
	data := map[string]string{keyText: spec.Text, keySize: strconv.Itoa(int(spec.Size))}
	if r.gate.Enabled(WidgetUppercase) {
		data[keyText] = strings.ToUpper(spec.Text)
	}
	if r.gate.Enabled(WidgetColor) && spec.Color != "" {
		data[keyColor] = spec.Color
	}
	return data
}

// ready returns the condition Ready after an attempt to write the ConfigMap.
func ready(widget *widgetsv1.Widget, err error) metav1.Condition {
	name := widget.Namespace + "/" + widget.Name
	condition := metav1.Condition{
		Type: widgetsv1.ConditionReady, Status: metav1.ConditionFalse, ObservedGeneration: widget.Generation,
	}
	switch {
	case err == nil:
		condition.Status, condition.Reason = metav1.ConditionTrue, widgetsv1.ReasonWritten
		condition.Message = fmt.Sprintf("ConfigMap %s is as spec says", name)
	case errors.Is(err, errNameTaken):
		condition.Reason = widgetsv1.ReasonNameTaken
		condition.Message = fmt.Sprintf("ConfigMap %s does not belong to the Widget and is left alone; delete it if it is not needed, or give the Widget another name", name)
	default:
		condition.Reason = widgetsv1.ReasonNotWritten
		condition.Message = fmt.Sprintf("ConfigMap %s could not be written, and is tried again: %v", name, err)
	}
	return condition
}
