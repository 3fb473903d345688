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

// A Mutation breaks one line of the product. The tests have to notice.
type Mutation struct {
	// Name identifies the mutation on the command line and in the table.
	Name string
	// Area is the part of the product that the line belongs to.
	Area string
	// File is the path of the file from the root of the repository.
	File string
	// Old occurs exactly once in the file and is replaced by New.
	Old, New string
	// Wrong is the resulting behavior of the product.
	Wrong string
}

const library = "staging/src/k8s.io/feature-lifecycle/"

// mutations are spread over the areas. Each is a mistake that compiles.
var mutations = []Mutation{
	{
		Name: "layer-queried", Area: "layer", File: library + "featuregate/observe.go",
		Old:   "Queried:         v.queried.Load(),",
		New:   "Queried:           true,",
		Wrong: "every known gate counts as a use",
	},
	{
		Name: "layer-changed", Area: "layer", File: library + "featuregate/snapshot.go",
		Old:   "if old := before.find(v.key); old != nil && old.enabled != v.enabled {",
		New:   "if old := before.find(v.key); old != nil && !old.enabled && v.enabled {",
		Wrong: "subscribers are not told when a feature turns off",
	},
	{
		Name: "layer-overridden", Area: "layer", File: library + "featuregate/observe.go",
		Old:   "return remote && g.inner.Enabled(f) != enabled",
		New:   "return remote",
		Wrong: "a central value that equals the local one is reported as overriding it",
	},
	{
		Name: "report-difference", Area: "report", File: library + "agent/difference.go",
		Old:   "d.other = d.other || before != f",
		New:   "d.other = d.other || !listed",
		Wrong: "a feature that is consulted for the first time is never reported",
	},
	{
		Name: "report-renewal", Area: "report", File: library + "agent/lease.go",
		Old:   "lease.Spec.RenewTime = &now",
		New:   "lease.Spec.RenewTime = lease.Spec.AcquireTime",
		Wrong: "the Lease of a live process is never renewed",
	},
	{
		Name: "report-owner", Area: "report", File: library + "agent/lease.go",
		Old:   "r.config.LeaseNamespace != r.config.Namespace {",
		New:   "r.config.LeaseNamespace == r.config.Namespace {",
		Wrong: "the Lease of an operator outlives its owner",
	},
	{
		Name: "transition-mixed", Area: "transition", File: library + "lifecycle/transition/transition.go",
		Old:   "\tif s.mixed {\n\t\ts.wait = s.mixedVersions()",
		New:   "\tif s.mixed && s.began {\n\t\ts.wait = s.mixedVersions()",
		Wrong: "a transition starts while servers have different versions (S4)",
	},
	{
		Name: "transition-state-early", Area: "transition", File: library + "lifecycle/transition/transition.go",
		Old:   "if len(s.Status.Tasks) > 0 {\n\t\ts.event(false, EventTaskCompleted",
		New:   "if len(s.Status.Tasks) > 1 {\n\t\ts.event(false, EventTaskCompleted",
		Wrong: "the final state is written before the last task ran (S1)",
	},
	{
		Name: "transition-version", Area: "transition", File: library + "lifecycle/transition/transition.go",
		Old:   "s.Status.Version, s.Status.StoredVersions = t.ToVersion, nil",
		New:   "s.Status.StoredVersions = nil",
		Wrong: "a move to another version ends without its version",
	},
	{
		Name: "uses-opposing", Area: "transition", File: library + "lifecycle/tracker/aggregate.go",
		Old:   "\t\tcase i.Alive:\n\t\t\t*opposes = append(*opposes, i)",
		New:   "\t\tcase i.Alive && i.Expected:\n\t\t\t*opposes = append(*opposes, i)",
		Wrong: "tasks run while an unexpected live process has the other value (S2)",
	},
	{
		Name: "task-version-guard", Area: "tasks", File: library + "lifecycle/task/clearpatch.go",
		Old:   "\t\t{Op: \"replace\", Path: \"/metadata/resourceVersion\", Value: object.GetResourceVersion()},\n",
		New:   "",
		Wrong: "a patch removes an element of a list that another client has just changed (S7)",
	},
	{
		Name: "task-order", Area: "tasks", File: library + "lifecycle/task/clearpatch.go",
		Old:   "\tslices.Reverse(places)\n",
		New:   "\tslices.Reverse(places[:0])\n",
		Wrong: "removing the first of several elements shifts those behind it",
	},
	{
		Name: "task-last-object", Area: "tasks", File: library + "lifecycle/task/waitfornone.go",
		Old:   "if using.total == 0 {",
		New:   "if using.total <= 1 {",
		Wrong: "a feature is Off while one object uses it",
	},
	{
		Name: "registry-status", Area: "registry", File: "pkg/registry/features/feature/strategy.go",
		Old:   "\tfeature.Status = before.Status\n",
		New:   "",
		Wrong: "an administrator's update of spec writes status (S5)",
	},
	{
		Name: "registry-node", Area: "registry", File: "pkg/registry/features/featurereport/storage/storage.go",
		Old:   "isNode && (report.Spec.NodeName != node || report.Spec.Instance != node)",
		New:   "isNode && report.Spec.NodeName != node && report.Spec.Instance != node",
		Wrong: "a node reports as another node (S5)",
	},
	{
		Name: "registry-dynamic", Area: "registry", File: "pkg/registry/features/feature/strategy.go",
		Old:   "before.Spec.Enabled != nil && *before.Spec.Enabled == *feature.Spec.Enabled {",
		New:   "before.Spec.Enabled != nil {",
		Wrong: "a value of a feature that is not dynamic can be changed through the API",
	},
	{
		Name: "values-bucket", Area: "values", File: library + "rollout/rollout.go",
		Old:   "Bucket(feature, instance.Name) < percent",
		New:   "Bucket(feature, instance.Name) <= percent",
		Wrong: "a canary includes more instances than its percentage",
	},
	{
		Name: "values-halted", Area: "values", File: library + "rollout/rollout.go",
		Old:   "\tif Halted(status) {\n",
		New:   "\tif Halted(status) && !dynamic {\n",
		Wrong: "instances keep the value of a canary that was halted",
	},
	{
		Name: "values-held-moment", Area: "values", File: library + "rollout/rollout.go",
		Old:   "\tif limited && !unanswered && !r.MomentHeld {\n",
		New:   "\tif limited && !unanswered {\n",
		Wrong: "instances switch at a moment that the server holds",
	},
	{
		Name: "values-moment-come", Area: "values", File: library + "lifecycle/transition/moment.go",
		Old:   "\tcase !come || current.UnhealthySince != nil:\n",
		New:   "\tcase !come && rollout.Limits(observed):\n",
		Wrong: "a suspected canary is for all at its moment",
	},
	{
		Name: "values-moment-called-off", Area: "values", File: library + "lifecycle/tracker/aggregate.go",
		Old:   "\t\tcase i.Enabled == wanted && i.SwitchTime == \"\":\n",
		New:   "\t\tcase i.Enabled == wanted:\n",
		Wrong: "tasks run while users will take the other value by themselves",
	},
	{
		Name: "plugin-generation", Area: "plugin", File: "pkg/kubectl/feature/wait.go",
		Old:   "(c.ObservedGeneration == 0 || c.ObservedGeneration >= f.Generation)",
		New:   "(c.ObservedGeneration == 0 || c.ObservedGeneration >= f.Generation-1)",
		Wrong: "wait ends with a condition that answers an earlier request",
	},
	{
		Name: "plugin-blockers", Area: "plugin", File: "pkg/kubectl/feature/plan.go",
		Old:   "case len(plan.Status.Blockers) > 0:",
		New:   "case len(plan.Status.Blockers) > 1:",
		Wrong: "plan exits with 0 although an object blocks the change",
	},
}
