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

package lifecycletest_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	clienttesting "k8s.io/client-go/testing"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/feature-lifecycle/client/clientset/versioned/fake"
	"k8s.io/feature-lifecycle/lifecycle"
	"k8s.io/feature-lifecycle/lifecycle/task"
	"k8s.io/feature-lifecycle/lifecycletest"
)

// patience is what no cycle of fakes needs.
const patience = 5 * time.Minute

// cycleCase is a feature with tasks, and the fixture with a status and a second
// object that nothing uses.
func cycleCase(t *testing.T, tasks ...task.Task) *lifecycletest.Case {
	t.Helper()
	objects, err := lifecycletest.Parse([]byte(fixture + `
status: {seen: true, colors: 1}
---
apiVersion: example.com/v1
kind: Widget
metadata: {name: plain, namespace: default}
spec: {size: 1}
`))
	if err != nil {
		t.Fatal(err)
	}
	return &lifecycletest.Case{Feature: lifecycle.Feature{Name: "Colors", OnDisable: tasks}, Fixture: "Colors.yaml", Objects: objects}
}

// patched returns a function that patches an object.
func patched(object, patch string) func(context.Context, *lifecycletest.Kit) error {
	return func(ctx context.Context, kit *lifecycletest.Kit) error {
		_, err := kit.Dynamic.Resource(widgets).Namespace("default").Patch(ctx, object, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
		return err
	}
}

func TestCycleReportsProblems(t *testing.T) {
	color := lifecycle.ClearField(widgets, "spec.color")
	deleted := func(ctx context.Context, kit *lifecycletest.Kit) error {
		return kit.Dynamic.Resource(widgets).Namespace("default").Delete(ctx, "round", metav1.DeleteOptions{})
	}
	for name, test := range map[string]struct {
		tasks []task.Task
		// settled is what happens before the objects are looked at, after what
		// happens when the feature is off.
		settled, after func(context.Context, *lifecycletest.Kit) error
		resources      []schema.GroupVersionResource
		// stranger is true where another owner's object is there before, with a shape.
		stranger bool
		// want are what problems say, one each.
		want []string
	}{
		"a feature that is finished": {tasks: []task.Task{color}},
		"the fields of all tasks may go": {
			tasks: []task.Task{color, lifecycle.ClearField(widgets, "spec.size")},
		},
		"resources are those that were named": {
			tasks:     []task.Task{color},
			resources: []schema.GroupVersionResource{widgets},
		},
		"a feature without tasks changes nothing": {
			resources: []schema.GroupVersionResource{widgets},
			after:     patched("round", `{"spec":{"color":null}}`),
			want:      []string{"Colors: widgets.example.com default/round changed elsewhere"},
		},
		"something is left": {
			tasks: []task.Task{color},
			after: patched("round", `{"spec":{"color":"blue"}}`),
			want:  []string{"Colors: 1 widgets still have what task ClearField/widgets.example.com/spec.color looks after: default/round"},
		},
		"something else changed": {
			tasks: []task.Task{color},
			after: patched("round", `{"spec":{"size":4}}`),
			want:  []string{"widgets.example.com default/round changed elsewhere than in what its tasks look after"},
		},
		"an object changed that does not use the feature": {
			tasks: []task.Task{color},
			after: patched("plain", `{"metadata":{"labels":{"a":"b"}}}`),
			want:  []string{"widgets.example.com default/plain changed elsewhere"},
		},
		"what was there before the look does not count": {
			tasks:   []task.Task{color},
			settled: patched("round", `{"metadata":{"finalizers":["example.com/operator"]}}`),
		},
		"operators may write their status": {
			tasks: []task.Task{color},
			after: patched("round", `{"status":{"seen":false}}`),
		},
		"a status counts where a task touches it": {
			tasks: []task.Task{color, lifecycle.ClearField(widgets, "status.colors")},
			after: patched("round", `{"status":{"seen":false}}`),
			want:  []string{"widgets.example.com default/round changed elsewhere"},
		},
		"an object is gone": {
			tasks: []task.Task{color},
			after: deleted,
			want:  []string{"Colors: widgets.example.com default/round is gone, and no task is declared that removes it"},
		},
		"a task of the author's own says what it touches": {
			tasks: []task.Task{lifecycle.Func(task.Own{
				Name: "own", Description: "removes the size",
				Find: func(ctx context.Context, clients task.Clients) ([]v1alpha1.ResourceLeftovers, error) {
					list, err := clients.Dynamic.Resource(widgets).List(ctx, metav1.ListOptions{})
					if err != nil {
						return nil, err
					}
					var sized []unstructured.Unstructured
					for _, item := range list.Items {
						if _, ok, _ := unstructured.NestedInt64(item.Object, "spec", "size"); ok {
							sized = append(sized, item)
						}
					}
					return task.Leftovers(widgets.GroupResource(), "spec.size", sized), nil
				},
				Run: func(ctx context.Context, clients task.Clients, _ task.Attempt) error {
					for _, name := range []string{"round", "plain"} {
						if err := patched(name, `{"spec":{"size":null}}`)(ctx, &lifecycletest.Kit{Dynamic: clients.Dynamic}); err != nil {
							return err
						}
					}
					return nil
				},
			})},
		},
		"the fixture lacks the field": {
			tasks: []task.Task{color, lifecycle.ClearField(widgets, "spec.shape")},
			want:  []string{"task ClearField/widgets.example.com/spec.shape finds nothing of the fixture; add an object to Colors.yaml"},
		},
		"the fixture lacks the field, and an object of another owner has it": {
			tasks:    []task.Task{color, lifecycle.ClearField(widgets, "spec.shape")},
			stranger: true,
			want:     []string{"task ClearField/widgets.example.com/spec.shape finds nothing of the fixture; add an object to Colors.yaml"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			c := cycleCase(t, test.tasks...)
			kit, restart := fakes(c.Feature)
			if test.settled != nil {
				kit.Settle = func(ctx context.Context, _ *lifecycletest.Case) error { return test.settled(ctx, kit) }
			}
			set := func(ctx context.Context, enabled bool) error {
				if err := restart(ctx, enabled); err != nil || enabled || test.after == nil {
					return err
				}
				return test.after(ctx, kit)
			}
			// The first leaves nothing that the second would find.
			for range 2 {
				if test.stranger {
					shaped, err := lifecycletest.Parse([]byte("apiVersion: example.com/v1\nkind: Widget\nmetadata: {name: stranger, namespace: default}\nspec: {shape: round}\n"))
					if err == nil {
						_, err = kit.Dynamic.Resource(widgets).Namespace("default").Create(ctx, shaped[0], metav1.CreateOptions{})
					}
					if err != nil {
						t.Fatal(err)
					}
				}
				problems, err := kit.Cycle(ctx, c, set, test.resources...)
				if err != nil {
					t.Fatal(err)
				}
				if len(problems) != len(test.want) {
					t.Fatalf("%d problems, want %d: %q", len(problems), len(test.want), problems)
				}
				for i, want := range test.want {
					if !strings.Contains(problems[i], want) {
						t.Errorf("problem %d does not say %q: %s", i, want, problems[i])
					}
				}
				if test.stranger {
					if err := kit.Dynamic.Resource(widgets).Namespace("default").Delete(ctx, "stranger", metav1.DeleteOptions{}); err != nil {
						t.Fatal(err)
					}
				}
				if list, err := kit.Dynamic.Resource(widgets).List(ctx, metav1.ListOptions{}); err != nil || len(list.Items) > 0 {
					t.Errorf("the cycle leaves objects: %v, %v", list, err)
				}
			}
		})
	}
}

// installed is what a feature installs, in the place of a definition.
const installed = `apiVersion: example.com/v1
kind: Widget
metadata: {name: made, namespace: default}
spec: {size: 7}
`

// applies makes a fake server take what is applied, which fakes otherwise do for objects
// that are there.
func applies(kit *lifecycletest.Kit) {
	objects := kit.Dynamic.(*dynamicfake.FakeDynamicClient)
	objects.PrependReactor("patch", "widgets", func(action clienttesting.Action) (bool, runtime.Object, error) {
		patch := action.(clienttesting.PatchActionImpl)
		if patch.GetPatchType() != types.ApplyPatchType {
			return false, nil, nil
		}
		applied := &unstructured.Unstructured{}
		if err := applied.UnmarshalJSON(patch.GetPatch()); err != nil {
			return true, nil, err
		}
		is, err := objects.Tracker().Get(widgets, patch.GetNamespace(), patch.GetName())
		dry := len(patch.PatchOptions.DryRun) > 0
		if apierrors.IsNotFound(err) {
			applied.SetUID(types.UID(patch.GetName()))
			if !dry {
				err = objects.Tracker().Create(widgets, applied, patch.GetNamespace())
			}
			return true, applied, err
		}
		if err != nil {
			return true, nil, err
		}
		would := is.(*unstructured.Unstructured).DeepCopy()
		would.Object["spec"] = applied.Object["spec"]
		if dry {
			return true, would, nil
		}
		return true, would, objects.Tracker().Update(widgets, would, patch.GetNamespace())
	})
}

// TestCycleOfInstalledFixture: a feature that installs something when it is turned on needs
// no fixture, and one that does when it is turned off has that looked at in the end.
func TestCycleOfInstalledFixture(t *testing.T) {
	install, remove := lifecycle.Apply("made", []byte(installed)), lifecycle.Remove("made", []byte(installed))
	for sentence, test := range map[string]struct {
		on, off lifecycle.Tasks
		after   func(context.Context, *lifecycletest.Kit) error
		want    []string
	}{
		"installed while it is on":  {on: lifecycle.Tasks{install}, off: lifecycle.Tasks{remove}},
		"installed while it is off": {on: lifecycle.Tasks{remove}, off: lifecycle.Tasks{install}},
		"installed for good":        {off: lifecycle.Tasks{install}},
		"nothing to remove":         {off: lifecycle.Tasks{remove}, want: []string{"Colors: task Remove/made finds nothing, and there is no fixture; write objects"}},
		"changed by others": {on: lifecycle.Tasks{remove}, off: lifecycle.Tasks{install}, after: patched("made", `{"spec":{"size":8}}`),
			want: []string{"Colors: 1 widgets are not as task Apply/made installs them: default/made"}},
		"removed by others": {on: lifecycle.Tasks{remove}, off: lifecycle.Tasks{install}, after: func(ctx context.Context, kit *lifecycletest.Kit) error {
			return kit.Dynamic.Resource(widgets).Namespace("default").Delete(ctx, "made", metav1.DeleteOptions{})
		}, want: []string{"Colors: 1 widgets are not as task Apply/made installs them: default/made"}},
		"made again by others": {on: lifecycle.Tasks{install}, off: lifecycle.Tasks{remove}, after: func(ctx context.Context, kit *lifecycletest.Kit) error {
			return install.Run(ctx, task.Clients{Dynamic: kit.Dynamic, Mapper: kit.Mapper}, task.Attempt{Report: func(task.Progress) {}})
		}, want: []string{"Colors: 1 widgets still have what task Remove/made looks after: default/made"}},
	} {
		t.Run(sentence, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			c := &lifecycletest.Case{Feature: lifecycle.Feature{Name: "Colors", OnEnable: test.on, OnDisable: test.off}}
			kit, restart := fakes(c.Feature)
			applies(kit)
			set := func(ctx context.Context, enabled bool) error {
				if enabled {
					for _, t := range test.on {
						if err := t.Run(ctx, task.Clients{Dynamic: kit.Dynamic, Mapper: kit.Mapper}, task.Attempt{Report: func(task.Progress) {}}); err != nil {
							return err
						}
					}
				}
				if err := restart(ctx, enabled); err != nil || enabled || test.after == nil {
					return err
				}
				return test.after(ctx, kit)
			}
			for range 2 {
				problems, err := kit.Cycle(ctx, c, set)
				if err != nil {
					t.Fatal(err)
				}
				if len(problems) != len(test.want) {
					t.Fatalf("%d problems, want %d: %q", len(problems), len(test.want), problems)
				}
				for i, want := range test.want {
					if !strings.Contains(problems[i], want) {
						t.Errorf("problem %d does not say %q: %s", i, want, problems[i])
					}
				}
			}
		})
	}
}

// TestCycleOfEnabledFeature: what turning it on installs is there then, with a fixture, too.
func TestCycleOfEnabledFeature(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	install := lifecycle.Apply("made", []byte(installed))
	c := cycleCase(t, lifecycle.ClearField(widgets, "spec.color"), lifecycle.Remove("made", []byte(installed)))
	c.Feature.OnEnable = lifecycle.Tasks{install}
	kit, restart := fakes(c.Feature)
	applies(kit)
	set := func(ctx context.Context, enabled bool) error {
		if enabled {
			if err := install.Run(ctx, task.Clients{Dynamic: kit.Dynamic, Mapper: kit.Mapper}, task.Attempt{Report: func(task.Progress) {}}); err != nil {
				return err
			}
		}
		return restart(ctx, enabled)
	}
	if err := set(ctx, true); err != nil {
		t.Fatal(err)
	}
	if problems, err := kit.Cycle(ctx, c, set); err != nil || len(problems) > 0 {
		t.Errorf("%q, %v", problems, err)
	}
}

// TestCycleReleases: an object that was removed since it held the feature is no
// problem, and the feature is Off only after that.
func TestCycleReleases(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	waits := lifecycle.WaitForNone(widgets, "a color", "spec.color")
	c := cycleCase(t, waits)
	kit, restart := fakes(c.Feature)
	features := kit.Features.FeaturesV1alpha1().Features(kit.Namespace)
	kit.Dynamic.(*dynamicfake.FakeDynamicClient).PrependReactor("delete", "widgets", func(action clienttesting.Action) (bool, runtime.Object, error) {
		f, err := features.Get(ctx, "Colors", metav1.GetOptions{})
		if err == nil && action.(clienttesting.DeleteAction).GetName() == "round" {
			f.Status = v1alpha1.FeatureStatus{State: v1alpha1.StateOff}
			_, err = features.UpdateStatus(ctx, f, metav1.UpdateOptions{})
		}
		return false, nil, err
	})
	problems, err := kit.Cycle(ctx, c, func(ctx context.Context, enabled bool) error {
		if enabled {
			return restart(ctx, true)
		}
		f, err := features.Get(ctx, "Colors", metav1.GetOptions{})
		if err != nil {
			return err
		}
		f.Status.State = v1alpha1.StateTurningOff
		f.Status.Tasks = []v1alpha1.FeatureTask{{Name: waits.Name, Message: "waiting for 1 widgets.example.com using a color: default/round"}}
		meta.SetStatusCondition(&f.Status.Conditions, metav1.Condition{Type: v1alpha1.ConditionProgressing, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonBlocked})
		_, err = features.UpdateStatus(ctx, f, metav1.UpdateOptions{})
		return err
	})
	if err != nil || len(problems) > 0 {
		t.Errorf("problems %q, error %v", problems, err)
	}
}

// TestCycleThatDoesNotEnd: the error says which step it was, and the objects are
// deleted also then.
func TestCycleThatDoesNotEnd(t *testing.T) {
	broken := errors.New("broken")
	v2 := schema.GroupVersionResource{Group: widgets.Group, Version: "v2", Resource: widgets.Resource}
	for name, test := range map[string]struct {
		breaks func(c *lifecycletest.Case, kit *lifecycletest.Kit, set func(ctx context.Context, enabled bool) error) func(ctx context.Context, enabled bool) error
		want   string
	}{
		"it cannot be turned on": {
			breaks: func(*lifecycletest.Case, *lifecycletest.Kit, func(context.Context, bool) error) func(context.Context, bool) error {
				return func(context.Context, bool) error { return broken }
			},
			want: "turning Colors on: broken",
		},
		"it cannot be turned off": {
			breaks: func(_ *lifecycletest.Case, _ *lifecycletest.Kit, set func(context.Context, bool) error) func(context.Context, bool) error {
				return func(ctx context.Context, enabled bool) error {
					if !enabled {
						return broken
					}
					return set(ctx, enabled)
				}
			},
			want: "turning Colors off: broken",
		},
		"controllers are not done": {
			breaks: func(_ *lifecycletest.Case, kit *lifecycletest.Kit, set func(context.Context, bool) error) func(context.Context, bool) error {
				kit.Settle = func(context.Context, *lifecycletest.Case) error { return broken }
				return set
			},
			want: "waiting until controllers are done with the objects of Colors.yaml: broken",
		},
		"tasks read two versions": {
			breaks: func(c *lifecycletest.Case, _ *lifecycletest.Kit, set func(context.Context, bool) error) func(context.Context, bool) error {
				c.Feature.OnDisable = append(c.Feature.OnDisable, lifecycle.Func(task.Own{Name: "own", Description: "reads another version", Find: func(_ context.Context, clients task.Clients) ([]v1alpha1.ResourceLeftovers, error) {
					clients.Dynamic.Resource(v2)
					return nil, nil
				}}))
				return set
			},
			want: "the tasks of Colors read widgets.example.com in the versions v1 and v2",
		},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			c := cycleCase(t, lifecycle.ClearField(widgets, "spec.color"))
			kit, restart := fakes(c.Feature)
			_, err := kit.Cycle(ctx, c, test.breaks(c, kit, restart))
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error %v, want one that says %q", err, test.want)
			}
			if list, err := kit.Dynamic.Resource(widgets).List(ctx, metav1.ListOptions{}); err != nil || len(list.Items) > 0 {
				t.Errorf("the cycle leaves objects: %v, %v", list, err)
			}
		})
	}
}

// TestUnuseKeepsObjectsOfOthers: an object of the same name was there before, or
// came later.
func TestUnuseKeepsObjectsOfOthers(t *testing.T) {
	c := cycleCase(t)
	kit, _ := fakes(c.Feature)
	others := kit.Dynamic.Resource(widgets).Namespace("default")
	if _, err := others.Create(t.Context(), c.Objects[1], metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := kit.Use(t.Context(), c); !apierrors.IsAlreadyExists(err) {
		t.Fatalf("the second object was there already: %v", err)
	}
	for range 2 {
		if err := kit.Unuse(t.Context(), c); err != nil {
			t.Fatal(err)
		}
		if _, err := others.Get(t.Context(), "round", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
			t.Errorf("what Use created: %v", err)
		}
		if _, err := others.Get(t.Context(), "plain", metav1.GetOptions{}); err != nil {
			t.Errorf("what others created: %v", err)
		}
	}
}

// TestUnuseNamesRemainingObjects: another owner's finalizer keeps an object.
func TestUnuseNamesRemainingObjects(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := cycleCase(t)
		kit, _ := fakes(c.Feature)
		if err := kit.Use(t.Context(), c); err != nil {
			t.Fatal(err)
		}
		if err := patched("round", `{"metadata":{"finalizers":["example.com/held"]}}`)(t.Context(), kit); err != nil {
			t.Fatal(err)
		}
		kit.Dynamic.(*dynamicfake.FakeDynamicClient).PrependReactor("delete", "widgets", func(action clienttesting.Action) (bool, runtime.Object, error) {
			return action.(clienttesting.DeleteAction).GetName() == "round", nil, nil
		})
		err := kit.Unuse(t.Context(), c)
		if err == nil || !strings.Contains(err.Error(), "deleting Widget default/round: it is still there") || !strings.Contains(err.Error(), "example.com/held") {
			t.Errorf("error %v, want one that names the object and its finalizer", err)
		}
	})
}

// TestAsk waits for a Feature that an operator makes when it starts.
func TestAsk(t *testing.T) {
	for name, test := range map[string]struct {
		// control is that of the Feature a minute later, "" for none.
		control v1alpha1.FeatureControl
		want    string
	}{
		"a dynamic feature":                  {control: v1alpha1.ControlDynamic},
		"a central feature":                  {control: v1alpha1.ControlCentral, want: "command lines decide the value of Colors"},
		"a feature of command lines":         {control: v1alpha1.ControlLocal, want: "command lines decide the value of Colors; start what decides it with --dynamic-features=Colors"},
		"there is no operator, or no server": {want: "there is no Feature widgets/Colors"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), patience)
				defer cancel()
				server := fake.NewClientset()
				features := server.FeaturesV1alpha1().Features("widgets")
				created := make(chan error, 1)
				time.AfterFunc(time.Minute, func() {
					if test.control == "" {
						created <- nil
						return
					}
					_, err := features.Create(ctx, &v1alpha1.Feature{
						ObjectMeta: metav1.ObjectMeta{Name: "Colors", Namespace: "widgets"}, Status: v1alpha1.FeatureStatus{Control: test.control},
					}, metav1.CreateOptions{})
					created <- err
				})
				kit := &lifecycletest.Kit{Features: server, Namespace: "widgets"}
				err := kit.Ask(ctx, "Colors", true)
				if err := <-created; err != nil {
					t.Fatal(err)
				}
				if test.want != "" {
					if err == nil || !strings.Contains(err.Error(), test.want) {
						t.Errorf("error %v, want one that says %q", err, test.want)
					}
					return
				}
				if err != nil {
					t.Fatal(err)
				}
				f, err := features.Get(ctx, "Colors", metav1.GetOptions{})
				if err != nil || f.Spec.Enabled == nil || !*f.Spec.Enabled {
					t.Errorf("spec.enabled is %v, want true: %v", f.Spec.Enabled, err)
				}
			})
		})
	}
}
