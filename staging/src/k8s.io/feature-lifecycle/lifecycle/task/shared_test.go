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

package task

import (
	"context"
	"errors"
	"fmt"
	goruntime "runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
)

var sprockets = schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "sprockets"}

// two serves widgets and sprockets, in pages of three.
func two() *wire {
	var list []runtime.Object
	for i := range 8 {
		w := widget(fmt.Sprintf("w%d", i), strings.Repeat("x", i%2))
		list = append(list, w)
		s := w.DeepCopy()
		s.SetKind("Sprocket")
		list = append(list, s)
	}
	fake := dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(),
		map[schema.GroupVersionResource]string{widgets: "WidgetList", sprockets: "SprocketList"}, list...)
	return &wire{server: &server{fake}, size: 3}
}

// together returns tasks of several features that read the same collections, in one
// order or another, or none.
func together() [][]Task {
	of := func(resource schema.GroupVersionResource) []Task {
		return []Task{ClearField(resource, "spec.field"), WaitForNone(resource, "a kept field", "spec.kept"), ClearField(resource, "spec.nothing")}
	}
	w, s := of(widgets), of(sprockets)
	return [][]Task{
		{w[0], s[0]}, {w[1], s[1]}, {w[2], s[2]}, {w[0]}, {s[1]}, {},
		{Func(Own{Name: "of one's own", Find: func(context.Context, Clients) ([]v1alpha1.ResourceLeftovers, error) { return nil, nil }})},
		{s[0], w[0]},
	}
}

// findings returns what the finders of some features find, by feature.
func findings(ctx context.Context, features [][]Task) (finders []func(Clients), found [][]v1alpha1.ResourceLeftovers, failed []error) {
	found, failed = make([][]v1alpha1.ResourceLeftovers, len(features)), make([]error, len(features))
	for i, tasks := range features {
		finders = append(finders, func(clients Clients) {
			for _, t := range tasks {
				some, err := t.Find(ctx, clients)
				found[i], failed[i] = append(found[i], some...), errors.Join(failed[i], err)
			}
		})
	}
	return finders, found, failed
}

func TestFindSharedFindsSameAsAlone(t *testing.T) {
	alone, shared := two(), two()
	finders, want, _ := findings(t.Context(), together())
	for _, find := range finders {
		find(alone.clients())
	}
	finders, got, failed := findings(t.Context(), together())
	FindShared(t.Context(), shared.clients(), finders)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("unexpected leftovers (-alone +together):\n%s", diff)
	}
	if err := errors.Join(failed...); err != nil {
		t.Error(err)
	}
	if want[0] == nil {
		t.Fatal("nothing was found at all")
	}
	// Three pages each. One finder comes to widgets only after sprockets, so they are
	// read twice.
	count := map[string]int{}
	for _, r := range shared.requests() {
		count[r.verb+" "+r.resource.Resource]++
	}
	if diff := cmp.Diff(map[string]int{"list widgets": 6, "list sprockets": 3, "get customresourcedefinitions": 10}, count); diff != "" {
		t.Errorf("unexpected requests (-want +got):\n%s", diff)
	}
	if n := len(alone.requests("list")); n != 3*10 {
		t.Errorf("alone they made %d requests for lists, want three for each of the ten", n)
	}
}

func TestUnreadableCollectionFailsItsFindersOnly(t *testing.T) {
	w := two()
	w.before = func(_ context.Context, r request) error {
		if r.resource == widgets.GroupResource() {
			return apierrors.NewForbidden(r.resource, "", errors.New("not yours"))
		}
		return nil
	}
	features := together()
	finders, found, failed := findings(t.Context(), features)
	FindShared(t.Context(), w.clients(), finders)
	for i, tasks := range features {
		wants := slices.ContainsFunc(tasks, func(t Task) bool {
			return slices.ContainsFunc(t.Fields, func(f Field) bool { return f.Resource == widgets.GroupResource() })
		})
		if wants != (failed[i] != nil) {
			t.Errorf("feature %d: it reads widgets: %t, and got %v", i, wants, failed[i])
		}
	}
	if len(found[0]) == 0 {
		t.Error("nothing was found in what can be read")
	}
}

func TestStoppedFinderDoesNotStopOthers(t *testing.T) {
	w := two()
	enough := errors.New("enough")
	var mu sync.Mutex
	seen := map[string]int{}
	reading := func(name string, most int) func(Clients) {
		return func(clients Clients) {
			err := forEachPage(t.Context(), clients, widgets, "", func(page *unstructured.UnstructuredList) error {
				mu.Lock()
				defer mu.Unlock()
				if seen[name] += len(page.Items); seen[name] >= most {
					return enough
				}
				return nil
			})
			if (most <= 8) != errors.Is(err, enough) || most > 8 && err != nil {
				t.Errorf("%s got %v", name, err)
			}
		}
	}
	FindShared(t.Context(), w.clients(), []func(Clients){reading("one page", 1), reading("two pages", 4), reading("all", 100)})
	if diff := cmp.Diff(map[string]int{"one page": 3, "two pages": 6, "all": 8}, seen); diff != "" {
		t.Error(diff)
	}
	w = two()
	seen = map[string]int{}
	FindShared(t.Context(), w.clients(), []func(Clients){reading("a", 1), reading("b", 1)})
	// The reader is a page ahead, and no more than that is read without a reader.
	if n := len(w.requests()); n > 2 {
		t.Errorf("%d pages were read after the first was enough for all", n-1)
	}
}

// TestCanceledFinderStopsAlone checks that others proceed, whichever came first, and
// also while it waits for others.
func TestCanceledFinderStopsAlone(t *testing.T) {
	for _, canceled := range []int{0, 1, 2} {
		for _, when := range []string{"before it is read", "at the first page", "at the second page"} {
			w := two()
			ended, cancel := context.WithCancel(t.Context())
			var pages atomic.Int64
			w.before = func(context.Context, request) error {
				if n := pages.Add(1); when == "at the first page" && n == 1 || when == "at the second page" && n == 2 {
					cancel()
				}
				return nil
			}
			errs, seen := make([]error, 3), make([]int, 3)
			var finders []func(Clients)
			for i := range 3 {
				ctx := t.Context()
				if i == canceled {
					ctx = ended
				}
				finders = append(finders, func(clients Clients) {
					if i == canceled && when == "before it is read" {
						cancel()
					}
					errs[i] = forEachPage(ctx, clients, widgets, "", func(page *unstructured.UnstructuredList) error {
						seen[i] += len(page.Items)
						return nil
					})
				})
			}
			FindShared(t.Context(), w.clients(), finders)
			for i := range 3 {
				if i != canceled && (errs[i] != nil || seen[i] != 8) {
					t.Errorf("the context of %d ends %s: %d saw %d and got %v", canceled, when, i, seen[i], errs[i])
				}
			}
			if when == "before it is read" && !errors.Is(errs[canceled], context.Canceled) {
				t.Errorf("it got %v", errs[canceled])
			}
			cancel()
		}
	}
}

// TestWaitingFinderEndsWithItsContext: the other one neither reads nor ends.
func TestWaitingFinderEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		w, free := two(), make(chan bool)
		reads := func(ctx context.Context, clients Clients) error {
			return forEachPage(ctx, clients, widgets, "", func(*unstructured.UnstructuredList) error { return nil })
		}
		FindShared(t.Context(), w.clients(), []func(Clients){
			func(Clients) { <-free },
			func(clients Clients) {
				if err := reads(ctx, clients); !errors.Is(err, context.DeadlineExceeded) || len(w.requests()) > 0 {
					t.Errorf("it got %v after %d requests", err, len(w.requests()))
				}
				close(free)
				// It runs again, and may read something else.
				if err := reads(t.Context(), clients); err != nil || len(w.requests()) != 3 {
					t.Errorf("then it got %v after %d requests", err, len(w.requests()))
				}
			},
		})
	})
}

// TestIdleFinderNotWaitedForForever checks that those that wait for the same still read
// it together.
func TestIdleFinderNotWaitedForForever(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, free, begun := two(), make(chan bool), time.Now()
		seen := make([]int, 2)
		finders := []func(Clients){func(clients Clients) {
			<-free
			if err := forEachPage(t.Context(), clients, sprockets, "", func(*unstructured.UnstructuredList) error { return nil }); err != nil {
				t.Error(err)
			}
		}}
		look := func(clients Clients, resource schema.GroupVersionResource, visit func(n int)) {
			if err := forEachPage(t.Context(), clients, resource, "", func(page *unstructured.UnstructuredList) error { visit(len(page.Items)); return nil }); err != nil {
				t.Error(err)
			}
		}
		var done atomic.Int64
		for i := range seen {
			finders = append(finders, func(clients Clients) {
				<-time.After(time.Duration(i) * time.Minute)
				look(clients, widgets, func(n int) { seen[i] += n })
				if took := time.Since(begun); took != patience {
					t.Errorf("%d waited for %s, want %s", i, took, patience)
				}
				// It is known by now which finder is idle.
				look(clients, widgets, func(int) {})
				if took := time.Since(begun); took > 2*patience {
					t.Errorf("%d has read both after %s", i, took)
				}
				if done.Add(1) == 2 {
					close(free)
				}
			})
		}
		FindShared(t.Context(), w.clients(), finders)
		if diff := cmp.Diff([]int{8, 8}, seen); diff != "" {
			t.Error(diff)
		}
		if n := len(w.requests()); n < 9 || n > 12 {
			t.Errorf("%d pages were read, want three of sprockets, three of widgets together and once or twice more", n)
		}
	})
}

// TestPatienceRestartsWithEachRead: one that hangs after it has read is waited for
// from then on, and one that waits for a slow server does not hang.
func TestPatienceRestartsWithEachRead(t *testing.T) {
	all := func(t *testing.T, clients Clients, resources ...schema.GroupVersionResource) {
		for _, resource := range resources {
			if err := forEachPage(t.Context(), clients, resource, "", func(*unstructured.UnstructuredList) error { return nil }); err != nil {
				t.Error(err)
			}
		}
	}
	t.Run("it hangs later", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			free, begun := make(chan bool), time.Now()
			FindShared(t.Context(), two().clients(), []func(Clients){
				func(clients Clients) {
					all(t, clients, widgets)
					<-free
				},
				func(clients Clients) {
					<-time.After(time.Minute)
					all(t, clients, widgets, sprockets)
					if took := time.Since(begun); took != time.Minute+patience {
						t.Errorf("it read the second collection after %s, want %s", took, time.Minute+patience)
					}
					close(free)
				},
			})
		})
	})
	t.Run("the server is slow", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			w := two()
			w.before = func(context.Context, request) error {
				<-time.After(patience - time.Second)
				return nil
			}
			both := func(clients Clients) {
				<-time.After(time.Minute)
				all(t, clients, widgets, sprockets)
			}
			FindShared(t.Context(), w.clients(), []func(Clients){both, both, func(clients Clients) { all(t, clients, sprockets) }})
			if n := len(w.requests()); n != 6 {
				t.Errorf("%d pages were read, want three of each collection", n)
			}
		})
	})
}

// slowStorage needs a minute for each page.
type slowStorage struct{ *storage }

func (s slowStorage) List(ctx context.Context, resource schema.GroupResource, limit int64, from string) ([]StoredObject, string, error) {
	<-time.After(time.Minute)
	return s.storage.List(ctx, resource, limit, from)
}

func (s slowStorage) ListHolding(ctx context.Context, field RemovedField, limit int64, from string) ([]StoredObject, string, error) {
	<-time.After(time.Minute)
	return s.storage.ListHolding(ctx, field, limit, from)
}

// TestWalksThroughStorageHoldUpNoOthers: they wait for a first page alone, after which the
// finder may read the API with them.
func TestWalksThroughStorageHoldUpNoOthers(t *testing.T) {
	for name, walk := range map[string]Task{"of all objects": ClearUnreadable(widgets.GroupResource()), "of those that hold a field": ClearRemovedField(hue)} {
		for _, pages := range []int{1, 10} {
			synctest.Test(t, func(t *testing.T) {
				var stored []StoredObject
				for i := range pages * storedPageSize {
					stored = append(stored, StoredObject{Name: fmt.Sprintf("w%04d", i)})
				}
				w, begun := two(), time.Now()
				clients := w.clients()
				clients.Storage = slowStorage{store(stored...)}
				var walked, read time.Duration
				FindShared(t.Context(), clients, []func(Clients){
					func(clients Clients) {
						if _, err := walk.Find(t.Context(), clients); err != nil {
							t.Error(err)
						}
						walked = time.Since(begun)
						if pages == 1 {
							if _, err := find(t.Context(), clients, widgets, "", func(*unstructured.Unstructured) bool { return true }); err != nil {
								t.Error(err)
							}
						}
					},
					func(clients Clients) {
						if _, err := find(t.Context(), clients, widgets, "", func(*unstructured.Unstructured) bool { return true }); err != nil {
							t.Error(err)
						}
						read = time.Since(begun)
					},
				})
				if want := time.Duration(pages) * time.Minute; walked != want || read != time.Minute {
					t.Errorf("a walk %s in %d pages took %s, want %s; the other finder had read after %s, want %s", name, pages, walked, want, read, time.Minute)
				}
				if n := len(w.requests("list")); n != 3 {
					t.Errorf("a walk %s in %d pages: widgets were read in %d pages, want 3: once", name, pages, n)
				}
			})
		}
	}
}

// TestReadCanceledWithoutReaders checks that a server that does not answer is not
// waited for when all readers have stopped.
func TestReadCanceledWithoutReaders(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := two()
		w.before = func(ctx context.Context, _ request) error { <-ctx.Done(); return ctx.Err() }
		begun := time.Now()
		var finders []func(Clients)
		for i := range 3 {
			finders = append(finders, func(clients Clients) {
				ctx, cancel := context.WithTimeout(t.Context(), time.Duration(i+1)*time.Minute)
				defer cancel()
				_, err := find(ctx, clients, widgets, "", func(*unstructured.Unstructured) bool { return true })
				if took := time.Since(begun); !errors.Is(err, context.DeadlineExceeded) || took != time.Duration(i+1)*time.Minute {
					t.Errorf("%d got %v after %s", i, err, took)
				}
			})
		}
		FindShared(t.Context(), w.clients(), finders)
	})
}

// TestFinderGoexitDoesNotStopOthers checks a finder that ends in the middle of a page.
func TestFinderGoexitDoesNotStopOthers(t *testing.T) {
	w, seen := two(), 0
	var stray Clients
	FindShared(t.Context(), w.clients(), []func(Clients){
		func(clients Clients) {
			stray = clients
			_, _ = find(t.Context(), clients, widgets, "", func(*unstructured.Unstructured) bool { goruntime.Goexit(); return true })
		},
		func(clients Clients) {
			_, err := find(t.Context(), clients, widgets, "", func(*unstructured.Unstructured) bool { seen++; return true })
			if err != nil || seen != 8 {
				t.Errorf("the other one saw %d and got %v", seen, err)
			}
		},
	})
	// What it has begun may continue.
	if found, err := find(t.Context(), stray, widgets, "", func(*unstructured.Unstructured) bool { return true }); err != nil || found[0].Count != 8 {
		t.Errorf("when it has ended it finds %v, %v", found, err)
	}
}
