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
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/feature-lifecycle/lifecycle"
	"k8s.io/feature-lifecycle/lifecycle/task"
)

// job is one attempt at a task. Its goroutine belongs to the runner of a server;
// it does nothing but what the schedule orders, one order at a time.
type job struct {
	server     *replica
	life       int
	feature    string
	task       string
	transition string
	ctx        context.Context
	orders     chan order
	// attempt is what the runner knows it as.
	attempt *running
	// left is what is still to be done by a task that puts things in place.
	left int
	// waits is true while it waits for what blocks it, ended when it is over.
	waits, ended bool
	// canceled is when it was first seen to be canceled; never before that.
	canceled time.Duration
	// next is when it continues once faults have ended.
	next time.Duration
}

// order is what a job does next: tell of its progress, or end.
type order struct {
	progress *task.Progress
	err      error
}

var errKilled = errors.New("the server is gone")

// order lets a job do something, and returns when the runner knows of it. Only the
// end of a wait that brings nothing is not told.
func (j *job) order(o order, told bool) {
	j.orders <- o
	if told {
		<-j.server.c.told
	}
}

// declared are the tasks of the model: A has three, and one for each direction of
// a version, B none.
func (c *cluster) declared(r *replica) []lifecycle.Feature {
	tasks := func(prefix string, names ...string) (list lifecycle.Tasks) {
		for _, name := range names {
			list = append(list, task.Task{
				Name: name,
				Find: func(context.Context, task.Clients) ([]v1alpha1.ResourceLeftovers, error) {
					if n := c.left[name]; n > 0 {
						return []v1alpha1.ResourceLeftovers{{Resource: "widgets", Count: int64(n)}}, nil
					}
					return nil, nil
				},
				Run: func(ctx context.Context, _ task.Clients, attempt task.Attempt) error {
					return c.runJob(ctx, r, prefix+name, attempt)
				},
			})
		}
		return list
	}
	return []lifecycle.Feature{{
		Name: "A", OnEnable: tasks("", install), OnDisable: tasks("", clearing...),
		Versions: lifecycle.Versions{{At: "1.36", OnUpgrade: tasks("Upgrade/1.36/", "Convert"), OnDowngrade: tasks("Downgrade/1.36/", "Convert")}},
	}, {Name: "B"}}
}

// converting are the tasks of A's version transitions by where they lead.
var converting = map[string]string{"1.35": "Downgrade/1.36/Convert", "1.36": "Upgrade/1.36/Convert"}

const install = "Install"

var (
	clearing     = []string{"ClearA", "ClearB"}
	featureNames = []string{"A", "B"}
)

// runJob is what a declared task does in its goroutine.
func (c *cluster) runJob(ctx context.Context, r *replica, name string, attempt task.Attempt) error {
	j := &job{server: r, life: r.life, feature: attempt.Feature, task: name, transition: attempt.TransitionID,
		ctx: ctx, orders: make(chan order), left: 2, canceled: never}
	killed := r.killed
	select {
	case c.begun <- j:
	case <-killed:
		return errKilled
	}
	for {
		select {
		case o := <-j.orders:
			if o.progress == nil {
				return j.result(o.err, killed)
			}
			attempt.Report(*o.progress)
		case <-killed:
			return errKilled
		}
	}
}

// result gives a BlockedError the wait that the schedule decides about.
func (j *job) result(err error, killed <-chan struct{}) error {
	var blocked *task.BlockedError
	if !errors.As(err, &blocked) || blocked.Until == nil {
		return err
	}
	return &task.BlockedError{Message: blocked.Message, Until: func(context.Context) error {
		select {
		case o := <-j.orders:
			return o.err
		case <-killed:
			return errKilled
		}
	}}
}

// clears is true for a task that removes leftovers.
func (j *job) clears() bool { return slices.Contains(clearing, j.task) }

// advance does one step of the work. It returns true when nothing is left.
func (c *cluster) advance(j *job) bool {
	if !j.clears() {
		j.left = max(0, j.left-1)
		return j.left == 0
	}
	if c.left[j.task] > 0 {
		c.left[j.task]--
		c.tracef("%s: %s clears one, %d left", j.server.id, j.task, c.left[j.task])
		c.checkClearing(j)
	}
	return c.left[j.task] == 0
}

// endJob ends a job with an error, or nil when all is done.
func (c *cluster) endJob(j *job, err error) {
	c.tracef("%s: %s of %s ends: %v", j.server.id, j.task, j.feature, err)
	j.ended = true
	if err == nil {
		c.succeeded[success{j.server.id, j.life, j.transition, j.task}] = true
	}
	var blocked *task.BlockedError
	if errors.As(err, &blocked) && blocked.Until != nil {
		j.ended, j.waits = false, true
	}
	j.order(order{err: err}, true)
}

// release ends the wait of a job that is blocked.
func (c *cluster) release(j *job, err error) {
	c.tracef("%s: %s waits no longer: %v", j.server.id, j.task, err)
	j.waits, j.ended = false, true
	j.order(order{err: err}, err == nil && j.ctx.Err() == nil)
}

// stepJob lets a job do what the schedule says.
func (c *cluster) stepJob(j *job, what int) {
	if j.waits {
		c.release(j, j.ctx.Err())
		return
	}
	switch what {
	case 0, 1, 2:
		if c.advance(j) {
			c.endJob(j, nil)
		}
	case 3:
		c.advance(j)
		j.order(order{progress: &task.Progress{Done: 1, Total: 2, Message: "working", Checkpoint: "x"}}, true)
	case 4:
		c.endJob(j, fmt.Errorf("%s failed", j.task))
	case 5:
		c.endJob(j, &task.BlockedError{Message: "a widget refuses"})
	case 6:
		c.endJob(j, &task.BlockedError{Message: "a widget refuses", Until: func(context.Context) error { return nil }})
	}
}

// settleJobs notes which jobs were canceled, and ends those for which that has
// been so for long. A request on its way may still arrive.
func (c *cluster) settleJobs() {
	running := c.jobs[:0]
	for _, j := range c.jobs {
		if j.life != j.server.life || !j.server.up {
			j.ended = true
		}
		if !j.ended && j.ctx.Err() != nil && j.canceled == never {
			j.canceled = c.now
		}
		if !j.ended && c.now >= j.canceled+c.lag {
			if j.waits {
				c.release(j, j.ctx.Err())
			} else {
				c.endJob(j, j.ctx.Err())
			}
		}
		if !j.ended {
			running = append(running, j)
		}
	}
	c.jobs = running
}

// healthyJobs lets every job work for a second at a time and end well.
func (c *cluster) healthyJobs() {
	for _, j := range c.jobs {
		switch {
		case j.waits:
			c.release(j, j.ctx.Err())
		case j.next == 0:
			j.next = c.now + time.Second
		case c.now >= j.next:
			for !c.advance(j) {
			}
			c.endJob(j, nil)
		}
	}
}
