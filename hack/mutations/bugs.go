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

// A Bug is a mutation that breaks an invariant of the design: Area names it. The test that finds it
// is compiled with the broken file in place of the file, so that no product binary has a
// switch for it.
type Bug struct {
	Mutation
	// Schedules is within how many random schedules the model finds it. A schedule that
	// does is in testdata/schedules of the model, under the name of the bug. It is 0 where
	// the model has no such thing, and a test of a package finds it.
	Schedules int
	// Package is the folder of that test below the root, Test its name.
	Package, Test string
}

const (
	model       = library + "lifecycle/controller"
	transitions = library + "lifecycle/transition/"
	trackers    = library + "lifecycle/tracker/"
)

// bugs are made from mistakes that systems like this one have made, and from faults of this
// one. Each invariant has two at least.
var bugs = []Bug{
	{Schedules: 200, Mutation: Mutation{
		Name: "state-early", Area: "S1", File: transitions + "transition.go",
		Old:   "\tif len(s.Status.Tasks) > 0 {\n\t\ts.event(false, EventTaskCompleted",
		New:   "\tif len(s.Status.Tasks) > 0 {\n\t\tif goal, _ := Value(&s.Status); len(s.Status.Tasks) == 1 {\n\t\t\ts.Status.State = finalState(goal)\n\t\t}\n\t\ts.event(false, EventTaskCompleted",
		Wrong: "the final state is written when the last task begins",
	}},
	{Schedules: 200, Mutation: Mutation{
		Name: "shortcut", Area: "S1", File: transitions + "transition.go",
		Old:   "\tBegin(&s.Status, goal, v1alpha1.TransitionConfiguration",
		New:   "\tif len(s.view.Declared.tasks(goal)) == 0 {\n\t\ts.Status.State = finalState(goal)\n\t\treturn\n\t}\n\tBegin(&s.Status, goal, v1alpha1.TransitionConfiguration",
		Wrong: "a feature without tasks changes its state without waiting for its users",
	}},
	{Schedules: 5000, Mutation: Mutation{
		Name: "value-of-today", Area: "S1", File: transitions + "transition.go",
		Old:   "\tgoal, ok := Value(&s.Status)\n\tif !ok {",
		New:   "\tgoal, ok := Goal(s.Status.State)\n\tif !ok {",
		Wrong: "a move to another version ends with the value that is configured by then, not with the one that it began with",
	}},
	{Schedules: 2000, Mutation: Mutation{
		Name: "no-settle-period", Area: "S2", File: transitions + "version.go",
		Old:   "\tif s.now.Before(end) {",
		New:   "\tif s.now.Before(notBefore) {",
		Wrong: "waiting for uses ends as soon as no user that is known of has the other value",
	}},
	{Schedules: 2000, Mutation: Mutation{
		Name: "uses-not-waited-for", Area: "S2", File: trackers + "aggregate.go",
		Old:   "\t\tcase i.Alive:\n\t\t\t*opposes = append(*opposes, i)",
		New:   "\t\tcase i.Alive && !i.Expected:\n\t\tcase i.Alive:\n\t\t\t*opposes = append(*opposes, i)",
		Wrong: "tasks run before all users agree: those that are not expected do not count",
	}},
	{Schedules: 5000, Mutation: Mutation{
		Name: "takeover-trusts", Area: "S2", File: transitions + "version.go",
		Old:   "\tif quiet.Before(s.view.WatchingSince) {",
		New:   "\tif quiet.Before(s.view.WatchingSince) && s.waiting() && s.mixed {",
		Wrong: "a server that takes over counts time in which it did not watch",
	}},
	{Schedules: 2000, Mutation: Mutation{
		Name: "failed-is-done", Area: "S3", File: transitions + "work.go",
		Old:   "\t\tcase Finished:\n",
		New:   "\t\tcase Finished, Failed:\n",
		Wrong: "a step that failed is skipped on retry",
	}},
	{Schedules: 200, Mutation: Mutation{
		Name: "last-task-first", Area: "S3", File: transitions + "transition.go",
		Old:   "\ts.Status.Tasks = s.Status.Tasks[1:]\n",
		New:   "\ts.Status.Tasks = s.Status.Tasks[:len(s.Status.Tasks)-1]\n",
		Wrong: "the last task is lost when the first is done",
	}},
	{Schedules: 2000, Mutation: Mutation{
		Name: "list-of-another-transition", Area: "S3", File: transitions + "transition.go",
		Old:   "\tstatus.Tasks = []v1alpha1.FeatureTask{{Name: v1alpha1.TaskWaitForUses}}\n\tfor _, name := range declared.tasks(goal) {",
		New:   "\tif len(status.Tasks) > 1 {\n\t\treturn\n\t}\n\tstatus.Tasks = []v1alpha1.FeatureTask{{Name: v1alpha1.TaskWaitForUses}}\n\tfor _, name := range declared.tasks(goal) {",
		Wrong: "a transition that replaces another one continues its list of tasks",
	}},
	{Schedules: 2000, Mutation: Mutation{
		Name: "mixed-versions", Area: "S4", File: transitions + "transition.go",
		Old:   "\tif s.mixed {\n\t\ts.wait = s.mixedVersions()",
		New:   "\tif s.mixed && s.began {\n\t\ts.wait = s.mixedVersions()",
		Wrong: "a transition begins while servers have different versions",
	}},
	// In the model a server reports as soon as it serves.
	{Package: library + "lifecycle/tracker", Test: "Test", Mutation: Mutation{
		Name: "unreported-server", Area: "S4", File: trackers + "servers.go",
		Old:   "\t\tif !lease.identity {\n",
		New:   "\t\tif !lease.identity || t.config.Servers != \"\" {\n",
		Wrong: "a server that serves and has not reported yet does not count",
	}},
	{Schedules: 5000, Mutation: Mutation{
		Name: "begun-continues", Area: "S4", File: transitions + "work.go",
		Old:   "\tcase !s.config.agreed && (!OfVersion(s.Status.State) || !removed(s.config, s.view)):\n",
		New:   "\tcase !s.config.agreed && s.waiting() && (!OfVersion(s.Status.State) || !removed(s.config, s.view)):\n",
		Wrong: "servers that disagree after waiting for uses do not hold the tasks",
	}},
	{Schedules: 5000, Mutation: Mutation{
		Name: "report-of-a-returned-process", Area: "S5", File: trackers + "retention.go",
		Old:   "return Deletion{report.Namespace, report.Name, metav1.Preconditions{UID: &report.UID, ResourceVersion: &report.ResourceVersion}}",
		New:   "return Deletion{report.Namespace, report.Name, metav1.Preconditions{UID: &report.UID}}",
		Wrong: "a report is deleted whatever its process has written since",
	}},
	// Nine minutes of random schedules did not find it.
	{Package: model, Test: "TestRenewedLeaseKept", Mutation: Mutation{
		Name: "report-before-lease", Area: "S5", File: model + "/expired.go",
		Old:   "; err != nil && !apierrors.IsNotFound(err) {\n\t\treturn err\n\t}\n\tdeletion := ",
		New:   "; err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {\n\t\treturn err\n\t}\n\tdeletion := ",
		Wrong: "a report is deleted although the Lease of its process was renewed and stays",
	}},
	{Package: "pkg/registry/features/feature", Test: "Test", Mutation: Mutation{
		Name: "status-of-administrators", Area: "S5", File: "pkg/registry/features/feature/strategy.go",
		Old:   "\tfeature.Status = before.Status\n",
		New:   "",
		Wrong: "an administrator's update of spec writes status",
	}},
	{Package: "pkg/registry/features/featurereport/storage", Test: "Test", Mutation: Mutation{
		Name: "report-of-another-node", Area: "S5", File: "pkg/registry/features/featurereport/storage/storage.go",
		Old:   "isNode && (report.Spec.NodeName != node || report.Spec.Instance != node)",
		New:   "isNode && report.Spec.NodeName != node && report.Spec.Instance != node",
		Wrong: "a node reports as another node",
	}},
	{Package: "pkg/featurelifecycle/reporting", Test: "Test", Mutation: Mutation{
		Name: "values-while-off", Area: "S6", File: "pkg/featurelifecycle/reporting/values.go",
		Old:   "\tif !p.gate.Enabled(features.FeatureLifecycle) {",
		New:   "\tif p.gate == nil && !p.gate.Enabled(features.FeatureLifecycle) {",
		Wrong: "a process takes values from the API with the system off",
	}},
	{Package: "cmd/kube-apiserver/controlplane", Test: "Test", Mutation: Mutation{
		Name: "flags-while-off", Area: "S6", File: "cmd/kube-apiserver/controlplane/control.go",
		Old:   "\tif !lifecycleEnabled {\n",
		New:   "\tif !lifecycleEnabled && gate == nil {\n",
		Wrong: "a server with the system off starts with flags that say who decides values",
	}},
	{Package: library + "lifecycle/task", Test: "Test", Mutation: Mutation{
		Name: "clear-without-version", Area: "S7", File: library + "lifecycle/task/clearpatch.go",
		Old:   "\t\t{Op: \"replace\", Path: \"/metadata/resourceVersion\", Value: object.GetResourceVersion()},\n",
		New:   "",
		Wrong: "a patch removes an element of a list that another client has just changed",
	}},
	{Package: library + "lifecycle/task", Test: "Test", Mutation: Mutation{
		Name: "clear-shifted", Area: "S7", File: library + "lifecycle/task/clearpatch.go",
		Old:   "\tslices.Reverse(places)\n",
		New:   "\tslices.Reverse(places[:0])\n",
		Wrong: "removing the first of several elements removes another one behind it",
	}},
	{Schedules: 15000, Mutation: Mutation{
		Name: "never-retried", Area: "L1", File: transitions + "work.go",
		Old:   "\t\tif due := s.due(task, current); s.now.Before(due) {\n\t\t\ts.requeueAt(due)\n",
		New:   "\t\tif due := s.due(task, current); s.now.Before(due) {\n",
		Wrong: "a task that failed is attempted again by chance",
	}},
	{Schedules: 2000, Mutation: Mutation{
		Name: "never-again", Area: "L1", File: transitions + "version.go",
		Old:   "\tif s.now.Before(end) {\n\t\ts.requeueAt(end)\n",
		New:   "\tif s.now.Before(end) {\n",
		Wrong: "the end of the settle period is noticed by chance",
	}},
	{Schedules: 10000, Mutation: Mutation{
		Name: "patience-of-days", Area: "L2", File: transitions + "work.go",
		Old:   "\tpause, most := s.settings.backoff(task.Attempts, last.Outcome), s.settings.longest(last.Outcome)\n",
		New:   "\tpause, most := 100*s.settings.backoff(task.Attempts, last.Outcome), s.settings.longest(last.Outcome)\n",
		Wrong: "a task that failed is attempted again much later than what it waited for is gone",
	}},
	{Schedules: 2000, Mutation: Mutation{
		Name: "settles-for-long", Area: "L2", File: transitions + "version.go",
		Old:   "\tend := quiet.Add(s.settings.Settle)\n",
		New:   "\tend := quiet.Add(8 * s.settings.Settle)\n",
		Wrong: "waiting for uses takes eight times the period that was set",
	}},
	{Package: model, Test: "TestL3AnnouncingWritesEachFeatureOnceAndARestartNothing", Mutation: Mutation{
		Name: "created-and-written", Area: "L3", File: transitions + "transition.go",
		Old:   "\ts.Status.StateSince = s.timestamp()\n\ts.Status.Version, s.Status.StoredVersions = s.version, nil\n",
		New:   "\ts.Status.StateSince = s.timestamp()\n",
		Wrong: "a Feature is written once more to say what was known when it was created",
	}},
	{Package: model, Test: "TestL3AnnouncingWritesEachFeatureOnceAndARestartNothing", Mutation: Mutation{
		Name: "stored-again", Area: "L3", File: model + "/reconciler.go",
		Old:   "\tif equality.Semantic.DeepEqual(feature.Status, decision.Status) {\n",
		New:   "\tif equality.Semantic.DeepEqual(feature, decision.Status) {\n",
		Wrong: "what is stored already is stored again",
	}},
}
