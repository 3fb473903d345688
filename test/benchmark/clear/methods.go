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
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	storagemigrationv1 "k8s.io/api/storagemigration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
)

// turnOff turns the gate off as an administrator does: kube-apiserver starts again
// with the other value, and the rest is the server flow's.
func turnOff(ctx context.Context, w *world) error {
	begun := time.Now()
	if err := w.restart(ctx, false); err != nil {
		return err
	}
	w.now.unready = time.Since(begun)
	if err := w.observe(ctx); err != nil {
		return err
	}
	w.profile(ctx, "filling")
	return w.untilRests(ctx, false)
}

// migrationPeriod is how often a migration is asked how far it is.
const migrationPeriod = 250 * time.Millisecond

// migrate asks the storage version migrator to rewrite all StatefulSets.
func migrate(ctx context.Context, w *world) (err error) {
	client := w.Kube.StoragemigrationV1().StorageVersionMigrations()
	migration, err := client.Create(ctx, &storagemigrationv1.StorageVersionMigration{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "clear-"},
		Spec:       storagemigrationv1.StorageVersionMigrationSpec{Resource: metav1.GroupResource{Group: "apps", Resource: "statefulsets"}},
	}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, client.Delete(ctx, migration.Name, metav1.DeleteOptions{})) }()
	waiting, cancel := context.WithTimeout(ctx, patience(w.now.objects))
	defer cancel()
	return wait.PollUntilContextCancel(waiting, migrationPeriod, false, func(ctx context.Context) (bool, error) {
		now, err := client.Get(ctx, migration.Name, metav1.GetOptions{})
		if err != nil {
			return false, err
		}
		if failed := meta.FindStatusCondition(now.Status.Conditions, string(storagemigrationv1.MigrationFailed)); failed != nil && failed.Status == metav1.ConditionTrue {
			return false, fmt.Errorf("the migration failed: %s", failed.Message)
		}
		return meta.IsStatusConditionTrue(now.Status.Conditions, string(storagemigrationv1.MigrationSucceeded)), nil
	})
}

// plainPage is how many objects the plain client lists at once.
const plainPage = 500

// statefulSets is what the plain client patches.
var statefulSets = appsv1.SchemeGroupVersion.WithResource("statefulsets")

// removal is what the plain client sends.
var removal = []byte(`{"spec":{"updateStrategy":{"rollingUpdate":{"maxUnavailable":null}}}}`)

// patchAll lists all objects and patches each, without looking at them, checking
// anything or noting how far it got: the least that has to be done. All it wants of
// answers is the metadata, as clearing does.
func patchAll(ctx context.Context, w *world, workers int) error {
	client := w.plain.Resource(statefulSets).Namespace(namespace)
	patch := func(ctx context.Context, name string) error {
		_, err := client.Patch(ctx, name, types.MergePatchType, removal, metav1.PatchOptions{})
		return err
	}
	return spread(ctx, workers, plainPage, patch, func(ctx context.Context, give func(string) error) error {
		options := metav1.ListOptions{Limit: plainPage}
		for {
			page, err := client.List(ctx, options)
			if token := present(err); token != "" && token != options.Continue {
				options.Continue = token
				continue
			}
			if err != nil {
				return err
			}
			for i := range page.Items {
				if err := give(page.Items[i].Name); err != nil {
					return err
				}
			}
			if options.Continue = page.Continue; options.Continue == "" {
				return nil
			}
		}
	})
}

// spread lets workers handle what source gives them, of which so much may be given in
// advance. The first error ends all.
func spread[T any](ctx context.Context, workers, ahead int, handle func(context.Context, T) error, source func(ctx context.Context, give func(T) error) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	given := make(chan T, ahead)
	var working sync.WaitGroup
	for range workers {
		working.Go(func() {
			for one := range given {
				if ctx.Err() != nil {
					continue
				}
				if err := handle(ctx, one); err != nil {
					cancel(err)
				}
			}
		})
	}
	err := source(ctx, func(one T) error {
		select {
		case given <- one:
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	})
	close(given)
	working.Wait()
	if ctx.Err() != nil {
		// A source whose context ended says less than why.
		return context.Cause(ctx)
	}
	return err
}

// present returns the token with which a list continues at the present version, when etcd
// has compacted its first one: 100,000 patches take longer than the five minutes after
// which kube-apiserver compacts. "" for all other errors, and for none.
func present(err error) string {
	var status apierrors.APIStatus
	if !apierrors.IsResourceExpired(err) || !errors.As(err, &status) {
		return ""
	}
	return status.Status().Continue
}
