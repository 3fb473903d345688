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

package catalog

import (
	"errors"
	"fmt"
	"slices"

	"k8s.io/component-base/featuregate"
	"k8s.io/feature-lifecycle/lifecycle"
	"k8s.io/feature-lifecycle/lifecycle/task"
)

// Entry is the verdict on one gate: which data turning it off leaves behind,
// and how that ends. Every alpha or beta gate that is not locked has one.
type Entry struct {
	// Feature has the name, and the tasks that remove leftovers. The fields of
	// the tasks are those that the feature stores.
	lifecycle.Feature
	// Stateless explains why the feature leaves nothing in etcd. It is set if and
	// only if the feature stores nothing: no tasks and no Retained.
	Stateless string
	// Retained lists stored data that no task handles.
	Retained []Remainder
	// OtherCopies describes how copies of its fields end: in ControllerRevisions,
	// templates of ReplicaSets, last-applied annotations, managed fields, and
	// manifests that GitOps tools apply again. It is set for features with
	// fields.
	OtherCopies string
	// OnReapply describes the effect of a field, or an object, that is applied and
	// stored again although the gate is off. It is set if and only if the server
	// neither drops nor refuses it then.
	OnReapply string
	// Node describes leftovers of the feature on nodes, and how they end.
	Node string
	// Config names flags or fields of configuration files that are refused while
	// the gate is off. Such a gate cannot be set centrally.
	Config string
	// APIs lists resources that the gate needs and that kube-apiserver does not serve by
	// default at one or more of the versions that it can emulate.
	APIs []API
	// BootstrapRBAC is true when kube-apiserver adds rules to its bootstrap roles
	// while the gate is on. Reconciliation does not remove rules, since they
	// cannot be distinguished from an administrator's (upstream's
	// pkg/registry/rbac/rest/storage_rbac.go). So they stay in effect. Some
	// permit access to APIs that do not go with the gate.
	BootstrapRBAC bool
	// Controller names the controller that kube-controller-manager runs only while
	// the gate is on. Its ServiceAccount in kube-system, which the manager makes
	// (--use-service-account-credentials), stays, as do those of all controllers
	// that ever ran. Its role stays, too, and may permit much:
	// storage-version-migrator-controller may list and patch everything.
	// The manager's tokens of it expire. Permission to create tokens of
	// ServiceAccounts in kube-system grants the rights of every controller anyway.
	Controller string
}

// Remainder is data in etcd that stays, with the reason why that is right.
type Remainder struct {
	task.Field
	// Why explains how it ends, or why it does no harm.
	Why string
	// Unstored is true for what the type has and the API never stores.
	Unstored bool
	// With is another gate that stores it, too, and has to be turned off with
	// this one. That gate's entry describes how it ends.
	With featuregate.Feature
	// MediaType is the encoding of objects that remain, where no field does. The
	// resource is then that of their definitions.
	MediaType string
}

// These constants describe how copies end, for groups of features.
const (
	// appliedCopies: fields that only clients write and no controller copies.
	appliedCopies = "last-applied annotations and what GitOps tools apply again keep the field: the server drops it when it is applied to an object without it; managed fields lose it with the field, and name it again for a manager that applies it with the gate off, until it applies without it"
	// templateCopies: fields of pod templates that are waited for, and that the
	// server drops.
	templateCopies = "ReplicaSets' templates are waited for, too; ControllerRevisions of StatefulSets and DaemonSets keep the field in their data until revisionHistoryLimit ends them: a rollback to one, or the revision below a StatefulSet's partition, brings it back only while the gate is on, since the server drops it from an object without it; last-applied annotations likewise"
	// valueCopies: values of older fields of pod templates that are waited for,
	// and that the server refuses.
	valueCopies = "ReplicaSets' templates are waited for, too; ControllerRevisions of StatefulSets and DaemonSets keep the value in their data until revisionHistoryLimit ends them: a rollback to one is refused, and so are the pods of the revision below a StatefulSet's partition, so finish such a rollout first; applying it again from a last-applied annotation is refused, too"
	// statusCopies: fields of status, which are not copied.
	statusCopies = "status is not copied; managed fields lose the field with it"
)

// named returns a feature without tasks.
func named(name featuregate.Feature) lifecycle.Feature { return lifecycle.Feature{Name: name} }

// central returns a feature without tasks whose value may come from
// kube-apiserver. Binaries query it once their gates are final, and refuse
// nothing because of it.
func central(name featuregate.Feature) lifecycle.Feature {
	return lifecycle.Feature{Name: name, Control: lifecycle.Central}
}

// dynamic returns a feature without tasks whose value may change at any time. Code
// queries it each time and does not keep the result.
func dynamic(name featuregate.Feature) lifecycle.Feature {
	return lifecycle.Feature{Name: name, Control: lifecycle.Dynamic}
}

// Stores returns the fields and collections that the feature leaves in etcd.
func (e Entry) Stores() []task.Field {
	var stored []task.Field
	for _, t := range slices.Concat(e.OnEnable, e.OnDisable) {
		stored = append(stored, t.Fields...)
	}
	for _, r := range e.Retained {
		stored = append(stored, r.Field)
	}
	return stored
}

// validate returns the problems of the entry.
func (e Entry) validate() error {
	var problems []error
	problem := func(format string, args ...any) {
		problems = append(problems, fmt.Errorf("%s: "+format, append([]any{e.Name}, args...)...))
	}
	stores := e.Stores()
	switch {
	case e.Stateless == "" && len(stores) == 0 && len(e.OnEnable)+len(e.OnDisable) == 0:
		problem("declares no tasks and no Retained; explain in Stateless why it leaves nothing in etcd")
	case e.Stateless != "" && (len(stores) > 0 || len(e.OnEnable)+len(e.OnDisable) > 0):
		problem("is declared stateless (%q) and stores %v or has tasks", e.Stateless, stores)
	}
	for _, r := range e.Retained {
		if r.Why == "" {
			problem("%s %s remains without a Why", r.Resource, r.Path)
		}
	}
	if hasFields := slices.ContainsFunc(stores, func(f task.Field) bool { return f.Path != "" }); hasFields && e.OtherCopies == "" {
		problem("has fields; describe in OtherCopies what happens to copies elsewhere")
	}
	if e.Config != "" && e.Control != "" && e.Control != lifecycle.Local {
		problem("has configuration of its own (%s) and is %s; it has to stay Local", e.Config, e.Control)
	}
	return errors.Join(problems...)
}
