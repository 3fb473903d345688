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

package host

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"time"

	"github.com/moby/sys/mountinfo"
	"k8s.io/apimachinery/pkg/util/wait"
)

// settling is the time that the kernel and Docker have to remove what is no longer
// used: a network interface ends a moment after its container.
const settling = 20 * time.Second

// observation is what the machine has outside of all containers.
type observation struct{ mounts, interfaces []string }

func observe() (observation, error) {
	mounts, err := mountinfo.GetMounts(nil)
	if err != nil {
		return observation{}, fmt.Errorf("cannot list the machine's mounts: %w", err)
	}
	interfaces, err := net.Interfaces()
	if err != nil {
		return observation{}, fmt.Errorf("cannot list the machine's network interfaces: %w", err)
	}
	var o observation
	for _, m := range mounts {
		o.mounts = append(o.mounts, fmt.Sprintf("%s (%s)", m.Mountpoint, m.FSType))
	}
	for _, i := range interfaces {
		o.interfaces = append(o.interfaces, i.Name)
	}
	return o, nil
}

// changes names what is there now and was not before, and the reverse.
func (o observation) changes(observe func() (observation, error)) error {
	now, err := observe()
	if err != nil {
		return err
	}
	return errors.Join(difference("mount", o.mounts, now.mounts), difference("network interface", o.interfaces, now.interfaces))
}

// settle is the changes that stay.
func (o observation) settle(ctx context.Context, observe func() (observation, error)) error {
	var last error
	// The error of the wait says only that the changes stay.
	_ = poll(ctx, settling, func() bool {
		last = o.changes(observe)
		return last == nil
	})
	return last
}

// poll asks, with growing pauses, until it is done or the time is over.
func poll(ctx context.Context, limit time.Duration, done func() bool) error {
	ctx, stop := context.WithTimeout(ctx, limit)
	defer stop()
	pauses := wait.Backoff{Duration: 10 * time.Millisecond, Factor: 1.5, Cap: time.Second, Steps: 12}
	return pauses.DelayFunc().Until(ctx, true, false, func(context.Context) (bool, error) { return done(), nil })
}

// difference names each element that is in one list only.
func difference(kind string, before, after []string) error {
	var errs []error
	for _, name := range less(after, before) {
		errs = append(errs, fmt.Errorf("the %s %s was not there before and is left; remove it", kind, name))
	}
	for _, name := range less(before, after) {
		errs = append(errs, fmt.Errorf("the %s %s was there before and is not there now", kind, name))
	}
	return errors.Join(errs...)
}

// less returns the elements of a that b lacks; each counts as often as it occurs.
func less(a, b []string) (rest []string) {
	b = slices.Clone(b)
	for _, name := range a {
		if i := slices.Index(b, name); i >= 0 {
			b = slices.Delete(b, i, i+1)
		} else {
			rest = append(rest, name)
		}
	}
	return rest
}

// observed does something, then undoes what it has changed on the machine. The next run
// undoes u when this one is killed.
func observed(ctx context.Context, o Options, u undo, do func() error) error {
	before, err := o.observe()
	if err != nil {
		return err
	}
	if o.sharing, err = share(o.shared); err != nil {
		return err
	}
	was, err := o.sharing.join(func() (original, error) {
		values, err := o.noteSettings(ctx)
		return original{Settings: values, Dirs: absent(o.dirs...)}, err
	})
	if err != nil {
		return err
	}
	u.Settings, u.Dirs = was.Settings, was.Dirs
	maps.DeleteFunc(u.Settings, func(name, _ string) bool { return !o.counts(name) })
	if err := u.save(o.Dir); err != nil {
		return errors.Join(err, o.sharing.end(func() error { return nil }, o.Log))
	}
	err = do()
	after := context.WithoutCancel(ctx)
	left := u.run(after, o)
	if left == nil {
		// The next run could not undo changes that do not settle either.
		left = u.forget(o.Dir)
	}
	if left = errors.Join(left, before.settle(after, o.observe)); left != nil {
		left = fmt.Errorf("the machine is not as it was: %w", left)
	}
	return errors.Join(err, left)
}
