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

// Package task has the tasks that a feature's author can declare: what a
// transition does after its users agree. Each task finds leftovers without
// changing anything (Find) and removes them (Run). The server flow's controller
// calls both; authors use the constructors that package lifecycle re-exports.
//
// Every task is idempotent: two servers may run it at once, and a server that
// starts it again after a crash finds less to do. Nothing in this package writes
// a Feature.
package task

import (
	"context"
	"errors"
	"fmt"

	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"

	"k8s.io/client-go/dynamic"
)

// Clients are what tasks talk to the cluster with.
type Clients struct {
	// Dynamic reads and writes objects of any resource. It has to be without a
	// client-side rate limit: the server's priority and fairness decides.
	Dynamic dynamic.Interface
}

// Progress is how far a task got.
type Progress struct {
	// Done and Total count objects; Total grows while objects are found.
	Done, Total int64
	// Message says what the task is doing.
	Message string
}

// Task is one step of a transition, as data. The zero value is not valid; use a
// constructor.
type Task struct {
	// Name identifies the task among those of its feature. It is stored while a
	// transition is under way, so changing it strands transitions.
	Name string
	// Description says what the task does, for plans.
	Description string
	// Find counts what the task would look after. It writes nothing. Resources
	// without leftovers are left out.
	Find func(ctx context.Context, clients Clients) ([]v1alpha1.ResourceLeftovers, error)
	// Run does the task until nothing is left, and reports progress from time
	// to time; report may be called concurrently. A *BlockedError says that
	// somebody else has to act first. An error or a cancelled context leaves
	// the task to be run again.
	Run func(ctx context.Context, clients Clients, report func(Progress)) error
	// invalid is why the declaration is wrong, nil when it is not.
	invalid error
}

// Validate returns what is wrong with the declaration.
func (t Task) Validate() error {
	switch {
	case t.invalid != nil:
		return t.invalid
	case t.Name == "":
		return errors.New("task without a name; use one of the constructors")
	case t.Name == v1alpha1.TaskWaitForUses:
		return fmt.Errorf("task %s is written by the server flow itself; leave it out", t.Name)
	case t.Find == nil || t.Run == nil:
		return fmt.Errorf("task %s needs both Find and Run", t.Name)
	default:
		return nil
	}
}

// BlockedError says that a task cannot go on until somebody else acts. The
// message names what and how much.
type BlockedError struct {
	Message string
}

func (e *BlockedError) Error() string { return e.Message }
