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

package clear

import (
	"cmp"
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/ptr"

	"k8s.io/kubernetes-features/test/benchmark/measure"
	"k8s.io/kubernetes-features/test/utils/localcluster"
)

const (
	// podPrefix is where etcd has Pods.
	podPrefix = "/registry/pods/" + namespace + "/"
	// withoutFlow makes a kube-apiserver that counts nothing.
	withoutFlow = "--runtime-config=features.k8s.io/v1alpha1=false"
)

// count is the processor time that a kube-apiserver needs after its start to count what
// features that are off left in a collection.
type count struct {
	what         string
	objects      int
	api, storage time.Duration
}

// sizes are those of both collections that are counted. One object at least is in each: its
// leftovers are how the end of counting is seen.
type sizes struct{ statefulSets, pods int }

// starts are the processor times of starts with the same objects.
type starts struct{ idle, api, storage time.Duration }

// beyond returns what a way of counting took, beyond a start that counts nothing, and
// beyond that difference for the fewest objects: a tick at least.
func (s starts) beyond(fewest starts, way func(starts) time.Duration) time.Duration {
	return max(way(s)-s.idle-(way(fewest)-fewest.idle), measure.Tick)
}

// count starts kube-apiserver with few objects and with many, in each way. The controller
// manager, which would fill its caches after each start, has ended.
func (w *world) count(ctx context.Context, n int) ([]count, error) {
	w.now = &run{objects: n}
	if err := w.Stop(ctx, localcluster.ControllerManager); err != nil {
		return nil, err
	}
	pod, err := w.podTemplate(ctx)
	if err != nil {
		return nil, fmt.Errorf("making a template of Pods: %w", err)
	}
	fewest, err := w.starts(ctx, pod, sizes{1, 1})
	if err != nil {
		return nil, err
	}
	var all []count
	for _, many := range []struct {
		what string
		sizes
	}{{"StatefulSets with the field", sizes{n, 1}}, {"Pods with one of all their fields", sizes{1, n}}} {
		took, err := w.starts(ctx, pod, many.sizes)
		if err != nil {
			return nil, err
		}
		one := count{
			what: many.what, objects: n,
			api:     took.beyond(fewest, func(s starts) time.Duration { return s.api }),
			storage: took.beyond(fewest, func(s starts) time.Duration { return s.storage }),
		}
		w.bed.Say("counting %d %s: %s of processor through the API, %s in storage", n, one.what, one.api, one.storage)
		all = append(all, one)
	}
	return all, nil
}

// starts starts kube-apiserver without counting, and in both ways of counting.
func (w *world) starts(ctx context.Context, pod *corev1.Pod, of sizes) (s starts, err error) {
	if _, err := load(ctx, w.Etcd, statefulSetsLike(w.template), of.statefulSets); err != nil {
		return s, err
	}
	if _, err := load(ctx, w.Etcd, podsLike(pod), of.pods); err != nil {
		return s, err
	}
	for _, way := range []struct {
		to     *time.Duration
		counts bool
		flags  []string
	}{
		{&s.idle, false, w.options.server("", withoutFlow)},
		{&s.api, true, w.options.server(api)},
		{&s.storage, true, w.options.server("")},
	} {
		w.SetArgs(localcluster.APIServer, way.flags...)
		if *way.to, err = w.start(ctx, of, way.counts); err != nil {
			return s, fmt.Errorf("counting %d StatefulSets and %d Pods, kube-apiserver with %q: %w", of.statefulSets, of.pods, way.flags, err)
		}
	}
	return s, nil
}

// start returns the processor time of a start with the gate off, until the server is quiet,
// beyond what it uses at rest in the same time.
func (w *world) start(ctx context.Context, of sizes, counts bool) (time.Duration, error) {
	if err := w.restart(ctx, false); err != nil {
		return 0, err
	}
	served := time.Now()
	if counts {
		if err := w.untilCounted(ctx, of); err != nil {
			return 0, err
		}
	}
	if err := w.untilQuiet(ctx, localcluster.APIServer); err != nil {
		return 0, err
	}
	quiet := time.Now()
	used := <-w.processor(ctx)
	if err := measure.Pause(ctx, w.options.Rest); err != nil {
		return 0, err
	}
	rested := <-w.processor(ctx)
	if used.err != nil || rested.err != nil {
		return 0, fmt.Errorf("reading the processor time of kube-apiserver: %w", cmp.Or(used.err, rested.err))
	}
	cores := (rested.cpu - used.cpu).Seconds() / time.Since(quiet).Seconds()
	return used.cpu - time.Duration(cores*float64(quiet.Sub(served))), nil
}

// untilCounted waits until this process of kube-apiserver shows that all objects have
// leftovers.
func (w *world) untilCounted(ctx context.Context, of sizes) error {
	ctx, cancel := context.WithTimeout(ctx, patience(w.now.objects))
	defer cancel()
	var sets, pods float64
	err := wait.PollUntilContextCancel(ctx, quietPeriod, false, func(ctx context.Context) (bool, error) {
		metrics, err := measure.Scrape(ctx, w.Kube.CoreV1().RESTClient())
		if err != nil {
			return false, err
		}
		found := func(feature string) float64 {
			return metrics.Sum("feature_lifecycle_dangling_objects", map[string]string{"feature": feature})
		}
		sets, pods = found(feature), found(ofPods)
		return sets == float64(of.statefulSets) && pods == float64(of.pods), nil
	})
	if err != nil {
		return fmt.Errorf("waiting until kube-apiserver has counted leftovers, of which it shows %v and %v: %w", sets, pods, err)
	}
	return nil
}

// podTemplate creates a Pod through the API and returns it as it is stored, with a field of a
// feature that is off. No service account controller runs.
func (w *world) podTemplate(ctx context.Context) (*corev1.Pod, error) {
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "default"}}
	if _, err := w.Kube.CoreV1().ServiceAccounts(namespace).Create(ctx, account, metav1.CreateOptions{}); err != nil {
		return nil, err
	}
	spec := small.template().Spec.Template.Spec
	spec.AutomountServiceAccountToken = ptr.To(false)
	client := w.Kube.CoreV1().Pods(namespace)
	created, err := client.Create(ctx, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "template", Labels: map[string]string{"app": "clear"}}, Spec: spec}, metav1.CreateOptions{})
	if err != nil {
		return nil, err
	}
	found, err := w.Etcd.Get(ctx, podPrefix+created.Name)
	if err != nil {
		return nil, err
	}
	if len(found.Kvs) != 1 {
		return nil, fmt.Errorf("etcd has no %s; the server stores Pods elsewhere", podPrefix+created.Name)
	}
	unknown, err := unwrap(found.Kvs[0].Value)
	if err != nil {
		return nil, err
	}
	pod := &corev1.Pod{}
	if err := pod.Unmarshal(unknown.Raw); err != nil {
		return nil, err
	}
	pod.Status.AllocatedResources = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("100m")}
	return pod, client.Delete(ctx, created.Name, metav1.DeleteOptions{})
}

// podsLike are copies of one.
func podsLike(template *corev1.Pod) copies {
	return copies{podPrefix, func() func(int) (string, []byte, error) {
		pod := template.DeepCopy()
		return func(i int) (string, []byte, error) {
			pod.Name, pod.UID = fmt.Sprintf("pod-%06d", i), uuid.NewUUID()
			data, err := wrap(corev1.SchemeGroupVersion.String(), "Pod", pod)
			return pod.Name, data, err
		}
	}}
}
