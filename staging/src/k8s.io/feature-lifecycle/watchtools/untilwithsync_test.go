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

package watchtools_test

import (
	"context"
	"errors"
	"fmt"
	goruntime "runtime"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"k8s.io/feature-lifecycle/watchtools"
)

// source is a server with some objects and one watch. Only lists return objects; the test
// sends the events.
type source struct {
	objects []corev1.ConfigMap
	events  *watch.FakeWatcher
}

func newSource(names ...string) *source {
	s := &source{events: watch.NewFakeWithOptions(watch.FakeOptions{ChannelSize: 10})}
	for _, name := range names {
		s.objects = append(s.objects, *object(name))
	}
	return s
}

func (s *source) listerWatcher() cache.ListerWatcher {
	return cache.ToListWatcherWithWatchListSemantics(&cache.ListWatch{
		ListWithContextFunc: func(context.Context, metav1.ListOptions) (runtime.Object, error) {
			return &corev1.ConfigMapList{ListMeta: metav1.ListMeta{ResourceVersion: "1"}, Items: s.objects}, nil
		},
		WatchFuncWithContext: func(context.Context, metav1.ListOptions) (watch.Interface, error) { return s.events, nil },
	}, noWatchList{})
}

// noWatchList declares that a watch does not start with the existing objects.
type noWatchList struct{}

func (noWatchList) IsWatchListSemanticsUnSupported() bool { return true }

func object(name string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name, ResourceVersion: "2"}}
}

func name(event watch.Event) string {
	return fmt.Sprint(event.Type, " ", event.Object.(*corev1.ConfigMap).Name)
}

func TestUntilWithSyncSeesExistingObjectsAndChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSource("a")
		s.events.Add(object("b"))
		s.events.Modify(object("a"))
		s.events.Delete(object("a"))
		s.events.Add(object("never seen"))
		var seen []string
		empty := func() (bool, error) {
			t.Error("ifEmpty was called")
			return false, nil
		}
		err := watchtools.UntilWithSync(t.Context(), s.listerWatcher(), &corev1.ConfigMap{}, empty, func(event watch.Event) (bool, error) {
			seen = append(seen, name(event))
			return event.Type == watch.Deleted, nil
		})
		if err != nil {
			t.Error(err)
		}
		if got, want := fmt.Sprint(seen), "[ADDED a ADDED b MODIFIED a DELETED a]"; got != want {
			t.Errorf("it saw %s, want %s", got, want)
		}
	})
}

// TestUntilWithSyncSeesDeletionDuringLostWatch: only the absence of the object shows it.
func TestUntilWithSyncSeesDeletionDuringLostWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSource("a")
		var seen []string
		err := watchtools.UntilWithSync(t.Context(), s.listerWatcher(), &corev1.ConfigMap{}, nil, func(event watch.Event) (bool, error) {
			seen = append(seen, name(event))
			if event.Type == watch.Deleted {
				return true, nil
			}
			s.objects = nil
			s.events.Error(&apierrors.NewResourceExpired("too old").ErrStatus)
			return false, nil
		})
		if got, want := fmt.Sprint(seen), "[ADDED a DELETED a]"; err != nil || got != want {
			t.Errorf("it saw %s, want %s; it returned %v", got, want, err)
		}
	})
}

func TestUntilWithSyncCallsIfEmptyOnEmptyList(t *testing.T) {
	refused := errors.New("nothing is too little")
	for what, answer := range map[string]struct {
		done bool
		err  error
	}{"enough": {done: true}, "an error": {err: refused}} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				err := watchtools.UntilWithSync(t.Context(), newSource().listerWatcher(), &corev1.ConfigMap{},
					func() (bool, error) { return answer.done, answer.err },
					func(watch.Event) (bool, error) { return false, errors.New("there are events") })
				if !errors.Is(err, answer.err) {
					t.Errorf("it returned %v, want %v", err, answer.err)
				}
			})
		})
	}
	t.Run("not enough", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s := newSource()
			asked := 0
			err := watchtools.UntilWithSync(t.Context(), s.listerWatcher(), &corev1.ConfigMap{},
				func() (bool, error) {
					asked++
					s.events.Add(object("a"))
					return false, nil
				},
				func(watch.Event) (bool, error) { return true, nil })
			if err != nil || asked != 1 {
				t.Errorf("it asked %d times whether nothing is enough, and returned %v", asked, err)
			}
		})
	})
}

func TestUntilWithSyncReturnsErrorOfCondition(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		refused := errors.New("not this one")
		calls := 0
		err := watchtools.UntilWithSync(t.Context(), newSource("a", "b").listerWatcher(), &corev1.ConfigMap{}, nil, func(watch.Event) (bool, error) {
			calls++
			return false, refused
		})
		if !errors.Is(err, refused) || calls != 1 {
			t.Errorf("after %d calls it returned %v", calls, err)
		}
	})
}

func TestUntilWithSyncEndsWithContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		why := errors.New("a key was pressed")
		ctx, cancel := context.WithCancelCause(t.Context())
		defer cancel(nil)
		time.AfterFunc(time.Minute, func() { cancel(why) })
		s := newSource("a")
		err := watchtools.UntilWithSync(ctx, s.listerWatcher(), &corev1.ConfigMap{}, nil, func(watch.Event) (bool, error) { return false, nil })
		if !wait.Interrupted(err) || !errors.Is(err, why) {
			t.Errorf("it returned %v", err)
		}
		if !s.events.IsStopped() {
			t.Error("the watch is open after it has returned")
		}
	})
}

// TestUntilWithSyncLeavesNoGoroutineWhenConditionExits: conditions of tests end the
// goroutine when they fail. Synctest fails for a goroutine that is left.
func TestUntilWithSyncLeavesNoGoroutineWhenConditionExits(t *testing.T) {
	for range 500 {
		synctest.Test(t, func(t *testing.T) {
			ended := make(chan struct{})
			go func() {
				defer close(ended)
				err := watchtools.UntilWithSync(t.Context(), newSource("a").listerWatcher(), &corev1.ConfigMap{}, nil, func(watch.Event) (bool, error) {
					goruntime.Goexit()
					return false, nil
				})
				t.Errorf("it returned %v instead of ending the goroutine", err)
			}()
			<-ended
		})
	}
}
