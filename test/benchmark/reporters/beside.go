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

package reporters

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"

	"k8s.io/kubernetes-features/test/benchmark/fleet"
	"k8s.io/kubernetes-features/test/benchmark/measure"
)

const (
	// notesNamespace has the ConfigMaps of processes.
	notesNamespace = "reporters"
	notesPrefix    = "/registry/configmaps/" + notesNamespace + "/"
	// noSystem makes kube-apiserver one without the parts of this repository.
	noSystem = "FeatureLifecycle=false"
)

// aside measures one size of what people do without this system: each process notes in
// a ConfigMap what it runs with. The server has no server flow, so what it does at
// rest before anybody writes is what a server without this system does.
func (r *run) aside(ctx context.Context, o *outcome) (err error) {
	if err := fleet.ShareConfigMaps(ctx, r.c.Kube, notesNamespace, "create", "update"); err != nil {
		return err
	}
	if err := r.beginning(ctx, o, r.noteAll); err != nil || r.past {
		return err
	}
	if err := r.atRest(ctx, o); err != nil {
		return err
	}
	if o.stored, err = measure.StoredBelow(ctx, r.c.Etcd, notesPrefix); err != nil {
		return err
	}
	o.rolled, err = r.counted(ctx, "restart", "all processes are restarted with another version", r.noteAgain)
	return err
}

// noteAll makes all processes write their ConfigMaps at once. They are not
// counted.
func (r *run) noteAll(ctx context.Context) (behind time.Duration, err error) {
	ctx, cancel := context.WithTimeout(ctx, fleet.PatienceFor(len(r.fleet.Processes())))
	defer cancel()
	r.arrivals, err = notes(ctx, r.fleet.Processes(), create)
	return 0, err
}

// noteAgain restarts all processes with a newer version, as many at a time as those that
// report: each writes what it runs with over what the one before it wrote.
func (r *run) noteAgain(ctx context.Context) (behind time.Duration, err error) {
	ctx, cancel := context.WithTimeout(ctx, fleet.PatienceFor(len(r.fleet.Processes())))
	defer cancel()
	newer := r.newer()
	for group := range r.groups() {
		for _, p := range group {
			p.Become(newer[p.Component])
		}
		if _, err := notes(ctx, group, update); err != nil {
			return 0, err
		}
	}
	return 0, nil
}

// notes lets processes write their ConfigMaps at once, and returns after which time each
// had.
func notes(ctx context.Context, processes []*fleet.Process, write write) (measure.Distribution, error) {
	group, ctx := errgroup.WithContext(ctx)
	var arrivals measure.Latencies
	begun := time.Now()
	for _, p := range processes {
		group.Go(func() error {
			if err := note(ctx, p, write); err != nil {
				return fmt.Errorf("the ConfigMap of %s: %w", p.Name(), err)
			}
			arrivals.Record(time.Since(begun))
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return measure.Distribution{}, err
	}
	return arrivals.Take(), nil
}

// write writes a ConfigMap.
type write func(ctx context.Context, client corev1client.ConfigMapInterface, object *corev1.ConfigMap) error

func create(ctx context.Context, client corev1client.ConfigMapInterface, object *corev1.ConfigMap) error {
	_, err := client.Create(ctx, object, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		// An answer was lost.
		return nil
	}
	return err
}

func update(ctx context.Context, client corev1client.ConfigMapInterface, object *corev1.ConfigMap) error {
	_, err := client.Update(ctx, object, metav1.UpdateOptions{})
	return err
}

// note writes what a process runs with, as people do it: client-go repeats what a busy
// server turns away ten times, and then the process tries again, until the context ends.
func note(ctx context.Context, p *fleet.Process, write write) error {
	found, err := json.Marshal(p.Findings())
	if err != nil {
		return err
	}
	ctx = p.As(ctx)
	pause := wait.Backoff{Duration: time.Second, Factor: 2, Jitter: 1, Cap: time.Minute, Steps: math.MaxInt32}
	for {
		err := write(ctx, p.Plain().CoreV1().ConfigMaps(notesNamespace), &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Name: p.Name()},
			Data:       map[string]string{"features": string(found)},
		})
		if err == nil {
			return nil
		}
		if ended := measure.Pause(ctx, pause.Step()); ended != nil {
			return errors.Join(ended, err)
		}
	}
}
