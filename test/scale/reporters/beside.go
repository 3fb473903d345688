/*
Copyright 2026 The Kubernetes Authors.

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

package reporters

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"

	"k8s.io/kubernetes-features/test/scale/fleet"
	"k8s.io/kubernetes-features/test/scale/measure"
	"k8s.io/kubernetes-features/test/scale/testbed"
)

const (
	// notesNamespace has the ConfigMaps of processes.
	notesNamespace = "reporters"
	notesPrefix    = "/registry/configmaps/" + notesNamespace + "/"
	// noSystem makes kube-apiserver one without the parts of this repository.
	noSystem = "FeatureLifecycle=false"
)

// beside measures one size of what people do without this system: each process notes in
// a ConfigMap what it runs with. The server has no server flow, so what it does at
// rest before anybody writes is what a server without this system does.
func beside(ctx context.Context, bed *testbed.Bed, options Options, templates map[string]fleet.Template, nodes int) (o outcome, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	k := kind{nodes: nodes, name: "ConfigMaps", gates: noSystem}
	r, err := newRun(ctx, bed, options, templates, k)
	if r != nil {
		defer func() {
			cancel()
			err = errors.Join(err, r.end())
		}()
	}
	if err != nil {
		return o, err
	}
	o.kind = k
	if err := fleet.ShareConfigMaps(ctx, r.c.Kube, notesNamespace, "create", "get", "update"); err != nil {
		return o, err
	}
	if err := r.beginning(ctx, &o, r.noteAll); err != nil {
		return o, err
	}
	if err := r.forget(ctx); err != nil {
		return o, err
	}
	if o.after, err = r.during(ctx, "at rest with ConfigMaps", r.rest); err != nil {
		return o, err
	}
	if o.resting, err = r.memory(ctx); err != nil {
		return o, err
	}
	o.stored, err = measure.StoredBelow(ctx, r.c.Etcd, notesPrefix)
	return o, err
}

// noteAll makes all processes write their ConfigMaps at once. Nobody counts them.
func (r *run) noteAll(ctx context.Context) (behind time.Duration, err error) {
	ctx, cancel := context.WithTimeout(ctx, fleet.PatienceFor(len(r.fleet.Processes())))
	defer cancel()
	group, ctx := errgroup.WithContext(ctx)
	var arrivals measure.Latencies
	begun := time.Now()
	for _, p := range r.fleet.Processes() {
		group.Go(func() error {
			if err := note(ctx, p); err != nil {
				return fmt.Errorf("the ConfigMap of %s: %w", p.Name(), err)
			}
			arrivals.Record(time.Since(begun))
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return 0, err
	}
	r.arrivals = arrivals.Take()
	return 0, nil
}

// note writes what a process runs with, as people do it: client-go repeats what a busy
// server turns away ten times, and then the process tries again.
func note(ctx context.Context, p *fleet.Process) error {
	found, err := json.Marshal(p.Observations())
	if err != nil {
		return err
	}
	var last error
	err = wait.ExponentialBackoffWithContext(p.As(ctx), wait.Backoff{Duration: time.Second, Factor: 2, Jitter: 1, Cap: time.Minute, Steps: 100}, func(ctx context.Context) (bool, error) {
		_, last = p.Plain().CoreV1().ConfigMaps(notesNamespace).Create(ctx, &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Name: p.Name()},
			Data:       map[string]string{"features": string(found)},
		}, metav1.CreateOptions{})
		// An answer may have been lost.
		return last == nil || apierrors.IsAlreadyExists(last), nil
	})
	if err != nil {
		return errors.Join(err, last)
	}
	return nil
}
