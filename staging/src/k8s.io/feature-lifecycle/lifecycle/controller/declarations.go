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

package controller

import (
	"slices"

	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/feature-lifecycle/lifecycle"
	"k8s.io/feature-lifecycle/lifecycle/task"
	"k8s.io/feature-lifecycle/lifecycle/transition"
)

// declarations are what the authors declared, by feature.
type declarations map[string]lifecycle.Feature

// declared returns what the author of a feature declared.
func (d declarations) declared(name string) transition.Declared {
	feature := d[name]
	declared := transition.Declared{
		OnEnable:  feature.OnEnable.Names(),
		OnDisable: feature.OnDisable.Names(),
		Removes:   slices.ContainsFunc(feature.OnDisable, func(t task.Task) bool { return !t.Waits }),
		Unread:    len(unread(feature)) > 0,
	}
	for _, t := range feature.OnDisable {
		if !t.Waits && !t.Installs && t.Unread == "" {
			declared.Clears = append(declared.Clears, t.Description)
		}
	}
	for _, v := range feature.Versions {
		declared.Versions = append(declared.Versions, transition.VersionTasks{
			At: v.At, OnUpgrade: v.Upgrading().Names(), OnDowngrade: v.Downgrading().Names(),
		})
		declared.StartupBlocking = append(declared.StartupBlocking, v.Upgrading().StartupBlocking()...)
	}
	return declared
}

// taskOf returns a task that is declared for the transition under way.
func (d declarations) taskOf(feature *v1alpha1.Feature, name string) (task.Task, bool) {
	return d.task(feature.Name, feature.Status.State, name)
}

// task returns a task that is declared for the transition that a state belongs to.
func (d declarations) task(feature string, state v1alpha1.FeatureState, name string) (task.Task, bool) {
	declared := d[feature]
	if transition.OfVersion(state) {
		return declared.Versions.Task(name)
	}
	tasks := declared.OnDisable
	if goal, _ := transition.Goal(state); goal {
		tasks = declared.OnEnable
	}
	i := slices.IndexFunc(tasks, func(t task.Task) bool { return t.Name == name })
	if i < 0 {
		return task.Task{}, false
	}
	return tasks[i], true
}
