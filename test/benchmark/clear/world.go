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
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/metadata"

	"k8s.io/kubernetes-features/test/benchmark/measure"
	"k8s.io/kubernetes-features/test/benchmark/testbed"
	"k8s.io/kubernetes-features/test/utils/localcluster"
)

const (
	feature = "MaxUnavailableStatefulSet"
	// ofPods is a feature whose fields Pods have. It is off all the time.
	ofPods = "InPlacePodLevelResourcesVerticalScaling"
	// api is the value of kube-apiserver's flag with which fields are cleared by patches.
	api = "API"
	// patcher is the plain client's user: one like any, not of those whom priority and
	// fairness leaves alone.
	patcher = "patcher"
	// patienceAtLeast and patiencePerObject are how long a wait takes at most. The
	// slowest of all, the migrator, rewrites 50 small objects a second and more, and of
	// large ones 36.
	patienceAtLeast   = 5 * time.Minute
	patiencePerObject = 40 * time.Millisecond
)

// patience bounds every wait for what is done with so many objects.
func patience(objects int) time.Duration {
	return patienceAtLeast + time.Duration(objects)*patiencePerObject
}

// compacted is true for the error that the past is forgotten already.
func compacted(err error) bool { return errors.Is(err, rpctypes.ErrCompacted) }

// world is the cluster with its objects.
type world struct {
	*testbed.Cluster
	bed     *testbed.Bed
	options Options
	// template is an object as the server stored it.
	template *appsv1.StatefulSet
	// plain is the client that does nothing but patch.
	plain      metadata.Interface
	foreground *measure.Foreground
	// touching ends what Options.Touch wants.
	touching func()
	// on is what the gate is set to.
	on bool
	// server is kube-apiserver's process.
	server atomic.Int64
	// now is the run under way.
	now *run
	// profiles are those that are wanted, profiling is locked by the one that is taken.
	profiles  sync.WaitGroup
	profiling sync.Mutex
	// The processes under observation, nil while none is.
	apiserver, manager *measure.Process
}

// begin starts the cluster with the gate on. The controller manager runs what the
// migrator needs and nothing that writes StatefulSets.
func begin(ctx context.Context, bed *testbed.Bed, o Options) (_ *world, err error) {
	most := 0
	for _, n := range append(slices.Clone(o.Sizes), o.Counted) {
		most = max(most, n*o.kind.bytes)
	}
	c, err := bed.Start(ctx, localcluster.Config{
		Only:         []string{localcluster.Etcd, localcluster.APIServer, localcluster.ControllerManager},
		FeatureGates: "StorageVersionMigrator=true",
		Control:      gate(true),
		ExtraArgs: map[string][]string{
			localcluster.Etcd:              {fmt.Sprintf("--quota-backend-bytes=%d", quota(most))},
			localcluster.APIServer:         o.server(""),
			localcluster.ControllerManager: {"--controllers=garbage-collector-controller,storage-version-migrator-controller"},
		},
	})
	if err != nil {
		return nil, err
	}
	w := &world{Cluster: c, bed: bed, options: o, on: true}
	w.noteServer()
	defer func() {
		if err != nil {
			err = errors.Join(err, w.Close())
		}
	}()
	if _, err := c.Kube.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, metav1.CreateOptions{}); err != nil {
		return nil, err
	}
	if w.template, err = o.kind.take(ctx, c.Kube, c.Etcd); err != nil {
		return nil, fmt.Errorf("making a template of %s: %w", o.kind.name, err)
	}
	config, err := c.As(patcher)
	if err != nil {
		return nil, err
	}
	if w.plain, err = metadata.NewForConfig(config); err != nil {
		return nil, err
	}
	_, err = c.Kube.RbacV1().ClusterRoleBindings().Create(ctx, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: patcher},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: patcher}},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
	}, metav1.CreateOptions{})
	if err != nil {
		return nil, err
	}
	if o.Touch {
		if err := w.touch(ctx); err != nil {
			return nil, err
		}
	}
	user, err := c.As(measure.ForegroundUser)
	if err != nil {
		return nil, err
	}
	w.foreground, err = measure.StartForeground(ctx, c.Kube, user, o.Rate)
	return w, err
}

// Close ends everything.
func (w *world) Close() error {
	_, _, _ = w.observed()
	if w.foreground != nil {
		w.foreground.Stop()
	}
	if w.touching != nil {
		w.touching()
	}
	return w.Cluster.Close()
}

// touch begins to write a StatefulSet of another namespace once a second.
func (w *world) touch(ctx context.Context) error {
	const busy = "busy"
	if _, err := w.Kube.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: busy}}, metav1.CreateOptions{}); err != nil {
		return err
	}
	object := small.template()
	object.Namespace = busy
	client := w.Kube.AppsV1().StatefulSets(busy)
	if _, err := client.Create(ctx, object, metav1.CreateOptions{}); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	var touching sync.WaitGroup
	touching.Go(func() {
		wait.UntilWithContext(ctx, func(ctx context.Context) {
			// No client can write while the server restarts.
			_, _ = client.Patch(ctx, object.Name, types.MergePatchType, fmt.Appendf(nil, `{"metadata":{"annotations":{"touched":%q}}}`, time.Now()), metav1.PatchOptions{})
		}, time.Second)
	})
	w.touching = func() {
		cancel()
		touching.Wait()
	}
	return nil
}

func gate(on bool) localcluster.ControlOptions {
	return localcluster.ControlOptions{FeatureGates: fmt.Sprintf("%s=%t,%s=false", feature, on, ofPods)}
}

// server returns kube-apiserver's flags when fields are cleared in a way, with more.
func (o Options) server(through string, more ...string) []string {
	flags := []string{"--runtime-config=storagemigration.k8s.io/v1=true", "--feature-settle-period=" + o.Settle.String()}
	if through != "" {
		flags = append(flags, "--feature-clear-through="+through)
	}
	return append(flags, more...)
}

// restart starts kube-apiserver, and others, again with the gate as given.
func (w *world) restart(ctx context.Context, on bool, others ...string) error {
	w.on = on
	w.SetControl(gate(on))
	defer w.noteServer()
	return w.Restart(ctx, nil, append(others, localcluster.APIServer)...)
}

// noteServer remembers kube-apiserver's process; there is none when it did not start.
func (w *world) noteServer() {
	if pid, err := w.PID(localcluster.APIServer); err == nil {
		w.server.Store(int64(pid))
	}
}

// untilRests waits until the feature rests and nothing is left to do.
func (w *world) untilRests(ctx context.Context, on bool) error {
	ctx, cancel := context.WithTimeout(ctx, patience(w.now.objects))
	defer cancel()
	return w.UntilRests(ctx, feature, on)
}

// settle makes the gate, the state and the objects what a method begins with.
func (w *world) settle(ctx context.Context, m method, n int) error {
	w.SetArgs(localcluster.APIServer, w.options.server(m.through)...)
	if w.on != m.turnsOff {
		// The collection is empty meanwhile, so that nothing has to be cleared.
		if _, err := load(ctx, w.Etcd, statefulSetsLike(w.template), 0); err != nil {
			return err
		}
		if err := w.restart(ctx, m.turnsOff, localcluster.ControllerManager); err != nil {
			return err
		}
		if err := w.untilRests(ctx, m.turnsOff); err != nil {
			return err
		}
	}
	var err error
	if w.now.bytes, err = load(ctx, w.Etcd, statefulSetsLike(w.template), n); err != nil {
		return fmt.Errorf("writing the objects: %w", err)
	}
	if !m.turnsOff {
		// The others, too, work on a server that has just started, and are observed from
		// there on. So has the controller manager: after some restarts of the server in
		// a row it would wait up to a minute before it connects again.
		if err := w.restart(ctx, false, localcluster.ControllerManager); err != nil {
			return err
		}
		if err := w.observe(ctx); err != nil {
			return err
		}
		w.profile(ctx, "filling")
		if err := w.untilWatched(ctx); err != nil {
			return err
		}
	}
	if err := w.untilQuiet(ctx, localcluster.APIServer, localcluster.ControllerManager); err != nil {
		return err
	}
	live, err := measure.LiveMemory(ctx, w.Kube.CoreV1().RESTClient(), int(w.server.Load()))
	w.now.rested = live.Heap
	return err
}

const (
	// A cluster is quiet when its processes take less than this share of a core, the
	// foreground aside, for some seconds in a row.
	quietShare   = 0.15
	quietPeriod  = time.Second
	quietPeriods = 3
	// foregroundShare is what the foreground costs at most, in cores for one request
	// a second.
	foregroundShare = 0.006
)

// untilWatched waits until the controller manager watches StatefulSets, which is the only
// one that does: the migrator begins with that.
func (w *world) untilWatched(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, patience(w.now.objects))
	defer cancel()
	err := wait.PollUntilContextCancel(ctx, quietPeriod, true, func(ctx context.Context) (bool, error) {
		metrics, err := measure.Scrape(ctx, w.Kube.CoreV1().RESTClient())
		if err != nil {
			return false, err
		}
		return metrics.Sum("apiserver_longrunning_requests", map[string]string{"verb": "WATCH", "group": "apps", "resource": "statefulsets"}) > 0, nil
	})
	if err != nil {
		return fmt.Errorf("waiting until the controller manager watches StatefulSets: %w", err)
	}
	return nil
}

// untilQuiet waits until caches of components are filled: what happens at a start must not
// be counted as a method's.
func (w *world) untilQuiet(ctx context.Context, components ...string) error {
	ctx, cancel := context.WithTimeout(ctx, patience(w.now.objects))
	defer cancel()
	var last time.Duration
	quiet := 0
	limit := time.Duration((quietShare + foregroundShare*w.options.Rate) * float64(quietPeriod))
	return wait.PollUntilContextCancel(ctx, quietPeriod, true, func(context.Context) (bool, error) {
		var used time.Duration
		for _, name := range components {
			pid, err := w.PID(name)
			if err != nil {
				return false, err
			}
			cpu, err := measure.CPU(pid)
			if err != nil {
				return false, err
			}
			used += cpu
		}
		if quiet++; used-last > limit {
			quiet = 0
		}
		last = used
		return quiet >= quietPeriods, nil
	})
}

// observe begins to observe the processes. It is called when kube-apiserver has just
// started again with the gate off, whatever the method, so that filling its caches is in
// what everybody is said to need.
func (w *world) observe(ctx context.Context) error {
	for name, to := range map[string]**measure.Process{localcluster.APIServer: &w.apiserver, localcluster.ControllerManager: &w.manager} {
		pid, err := w.PID(name)
		if err != nil {
			return err
		}
		var heap func(context.Context) (int64, error)
		if name == localcluster.APIServer {
			heap = w.alive
		}
		if *to, err = measure.ObserveProcess(ctx, pid, heap); err != nil {
			return err
		}
	}
	return nil
}

// alive is kube-apiserver's heap that the last collection of garbage found alive, in
// bytes. Between collections the heap grows to about twice that, and resident memory with
// it, by when they happen to come.
func (w *world) alive(ctx context.Context) (int64, error) {
	const name = "go_gc_heap_live_bytes"
	metrics, err := measure.Scrape(ctx, w.Kube.CoreV1().RESTClient())
	if err != nil {
		return 0, err
	}
	alive := int64(metrics.Sum(name, nil))
	if alive == 0 {
		return 0, fmt.Errorf("kube-apiserver shows no %s", name)
	}
	return alive, nil
}

// observed ends the observation and returns what the processes used, if there is one.
func (w *world) observed() (apiserver, manager measure.Usage, err error) {
	if w.apiserver != nil {
		apiserver, err = w.apiserver.Stop()
	}
	if w.manager != nil {
		var managerErr error
		manager, managerErr = w.manager.Stop()
		err = errors.Join(err, managerErr)
	}
	w.apiserver, w.manager = nil, nil
	return apiserver, manager, err
}
