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

package transition

import (
	"context"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	clientv3 "go.etcd.io/etcd/client/v3"
)

const (
	// namespace has the StatefulSets, prefix is where etcd has them.
	namespace = "transition"
	prefix    = "/registry/statefulsets/" + namespace + "/"
	// workers is how many requests are under way at once: more are no faster (benchmark
	// clear).
	workers = 16

	// peerNamespace has what the script writes.
	peerNamespace = "script"
	decision      = "state"
	// period is how often the script looks, page how many objects it lists at once, as
	// kubectl does.
	period = time.Second
	page   = 500
)

// removal is what clears the field.
var removal = []byte(`{"spec":{"updateStrategy":{"rollingUpdate":{"maxUnavailable":null}}}}`)

// stored is an object as etcd has it.
type stored struct{ key, value string }

// clean lets so many StatefulSets have the field while the feature is on, and
// measures how it is turned off.
func (w *world) clean(ctx context.Context, objects int) (ending, error) {
	if _, err := w.transit(ctx, clears, true); err != nil {
		return ending{}, fmt.Errorf("turning %s on: %w", clears, err)
	}
	if err := w.fill(ctx, objects); err != nil {
		return ending{}, fmt.Errorf("making StatefulSets: %w", err)
	}
	e, err := w.transit(ctx, clears, false)
	if err != nil {
		return e, err
	}
	left, err := w.withField(ctx)
	if err == nil && len(left) > 0 {
		err = fmt.Errorf("%s is off, and %d StatefulSets have the field", clears, len(left))
	}
	return e, err
}

// fill makes the collection so many objects that have the field. They are created
// through the API the first time, while the gate is on, and put back into etcd later.
func (w *world) fill(ctx context.Context, objects int) error {
	if len(w.stored) < objects {
		if err := w.create(ctx, objects); err != nil {
			return err
		}
		found, err := w.Etcd.Get(ctx, prefix, clientv3.WithPrefix())
		if err != nil {
			return err
		}
		w.stored = nil
		for _, kv := range found.Kvs {
			w.stored = append(w.stored, stored{string(kv.Key), string(kv.Value)})
		}
	}
	if _, err := w.Etcd.Delete(ctx, prefix, clientv3.WithPrefix()); err != nil {
		return err
	}
	for _, one := range w.stored[:objects] {
		if _, err := w.Etcd.Put(ctx, one.key, one.value); err != nil {
			return err
		}
	}
	with, err := w.withField(ctx)
	if err == nil && len(with) != objects {
		err = fmt.Errorf("%d StatefulSets have the field, not %d", len(with), objects)
	}
	return err
}

// create replaces all objects by so many new ones.
func (w *world) create(ctx context.Context, objects int) error {
	if _, err := w.Etcd.Delete(ctx, prefix, clientv3.WithPrefix()); err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(workers)
	for i := range objects {
		group.Go(func() error {
			_, err := w.Kube.AppsV1().StatefulSets(namespace).Create(ctx, statefulSet(i), metav1.CreateOptions{})
			return err
		})
	}
	return group.Wait()
}

// statefulSet wants no replicas: no pods belong to it.
func statefulSet(number int) *appsv1.StatefulSet {
	labels := map[string]string{"app": namespace}
	return &appsv1.StatefulSet{
		ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("set-%06d", number), Labels: labels},
		Spec: appsv1.StatefulSetSpec{
			Replicas:    ptr.To[int32](0),
			ServiceName: namespace,
			Selector:    &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "registry.k8s.io/pause:3.10"}}},
			},
			UpdateStrategy: appsv1.StatefulSetUpdateStrategy{
				Type:          appsv1.RollingUpdateStatefulSetStrategyType,
				RollingUpdate: &appsv1.RollingUpdateStatefulSetStrategy{MaxUnavailable: ptr.To(intstr.FromInt32(2))},
			},
		},
	}
}

// withField are the names of the StatefulSets that have the field.
func (w *world) withField(ctx context.Context) (names []string, err error) {
	for options := (metav1.ListOptions{Limit: page}); ; {
		list, err := w.Kube.AppsV1().StatefulSets(namespace).List(ctx, options)
		if err != nil {
			return nil, err
		}
		for _, set := range list.Items {
			if update := set.Spec.UpdateStrategy.RollingUpdate; update != nil && update.MaxUnavailable != nil {
				names = append(names, set.Name)
			}
		}
		if options.Continue = list.Continue; options.Continue == "" {
			return names, nil
		}
	}
}

// preparePeer makes what the script writes.
func (w *world) preparePeer(ctx context.Context) error {
	_, err := w.Kube.CoreV1().ConfigMaps(peerNamespace).Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: decision}}, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}

// decide is the one write with which the script says what the state is.
func (w *world) decide(ctx context.Context, state string) error {
	_, err := w.Kube.CoreV1().ConfigMaps(peerNamespace).Patch(ctx, decision, types.MergePatchType, fmt.Appendf(nil, `{"data":{"state":%q}}`, state), metav1.PatchOptions{})
	return err
}

// script measures what an administrator would write: look at all reports every
// second, and when all processes have the value, clear the field from all objects,
// look whether it is gone, and write down that the feature is off. The feature itself
// is at rest meanwhile, so this system does nothing: one process reports another value
// for a while, and all the others have had the right one for long. Phase is how long
// after a look the last report comes, less than the period.
func (w *world) script(ctx context.Context, s setting, on bool, phase time.Duration) (e ending, err error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	feature := plain
	if s.objects != none {
		feature = clears
		if err := w.fill(ctx, s.objects); err != nil {
			return e, err
		}
	}
	processes := w.fleet.Processes()
	last := processes[len(processes)-1]
	if _, err := report(ctx, last, feature, !on); err != nil {
		return e, err
	}
	looked, done := make(chan struct{}), make(chan error, 1)
	var polling sync.WaitGroup
	polling.Go(func() { done <- w.poll(ctx, feature, on, looked, &e) })
	// It writes into e: with an error, too, it has to have ended.
	defer func() {
		cancel()
		polling.Wait()
	}()
	select {
	case <-looked:
	case err := <-done:
		return e, fmt.Errorf("it ended before the last report: %w", err)
	}
	select {
	case <-time.After(phase):
	case <-ctx.Done():
		return e, ctx.Err()
	}
	answered, err := report(ctx, last, feature, on)
	if err != nil {
		return e, err
	}
	if err := <-done; err != nil {
		return e, err
	}
	e.took = time.Since(answered)
	return e, nil
}

// poll is the script. Looked is closed after its first look.
func (w *world) poll(ctx context.Context, feature string, on bool, looked chan struct{}, e *ending) error {
	ticker := time.NewTicker(period)
	defer ticker.Stop()
	for first := true; ; first = false {
		others, err := w.others(ctx, feature, on)
		if err != nil {
			return err
		}
		if !first && others == 0 {
			break
		}
		if first {
			if others != 1 {
				return fmt.Errorf("%d processes have another value than %t at the first look, not 1", others, on)
			}
			close(looked)
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	if feature == clears {
		begun := time.Now()
		if err := w.removeAll(ctx); err != nil {
			return err
		}
		e.cleaning = time.Since(begun)
	}
	return w.decide(ctx, fmt.Sprintf("%s=%t", feature, on))
}

// others is how many reports say that their process has another value.
func (w *world) others(ctx context.Context, feature string, on bool) (count int, err error) {
	for options := (metav1.ListOptions{Limit: page}); ; {
		list, err := w.Features.FeaturesV1alpha1().FeatureReports(metav1.NamespaceSystem).List(ctx, options)
		if err != nil {
			return 0, err
		}
		for i := range list.Items {
			for _, f := range list.Items[i].Spec.Features {
				if f.Name == feature && f.Queried && f.Enabled != on {
					count++
				}
			}
		}
		if options.Continue = list.Continue; options.Continue == "" {
			return count, nil
		}
	}
}

// removeAll clears the field from all objects that have it, until none is
// left.
func (w *world) removeAll(ctx context.Context) error {
	names, err := w.withField(ctx)
	if err != nil {
		return err
	}
	group, patching := errgroup.WithContext(ctx)
	group.SetLimit(workers)
	for _, name := range names {
		group.Go(func() error {
			_, err := w.Kube.AppsV1().StatefulSets(namespace).Patch(patching, name, types.MergePatchType, removal, metav1.PatchOptions{})
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	left, err := w.withField(ctx)
	if err == nil && len(left) > 0 {
		err = fmt.Errorf("%d objects still have the field", len(left))
	}
	return err
}
