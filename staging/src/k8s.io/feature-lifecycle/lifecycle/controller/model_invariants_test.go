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
	"time"

	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/feature-lifecycle/lifecycle/tracker"
	"k8s.io/feature-lifecycle/lifecycle/transition"
	"k8s.io/feature-lifecycle/rollout"
)

// truth is what really happened to a feature, whatever servers know of it.
type truth struct {
	// goalSince is since when the stored state has or leads to its value.
	goalSince time.Duration
	// begun is when the transition under way began, waited when waiting for
	// uses was over in it, 0 before that.
	begun, waited time.Duration
	// pausedSince is since when the feature is paused, never if it is not.
	pausedSince time.Duration
	// dirtied is true when a live process has left something behind since then.
	dirtied bool
}

// seen is how long after it was stored every server has heard of something.
func (c *cluster) seen() time.Duration { return c.lag + handlerLag + slack }

// lateness is how late servers hear of what happened at a time, and how much
// later they act.
func (c *cluster) lateness(at time.Duration) (lag, patience time.Duration) {
	if c.healthy && at < c.healedAt {
		return c.ailing.lag, c.ailing.patience
	}
	return c.lag, c.patience
}

// admit checks a write of a status that is about to be stored.
func (c *cluster) admit(r *replica, before, after *v1alpha1.Feature) {
	b, a, name := before.Status, after.Status, after.Name
	final := a.State == v1alpha1.StateOn || a.State == v1alpha1.StateOff
	switch {
	case final && (len(a.Tasks) > 0 || a.Transition != nil):
		c.violate("S1: %s is %s with tasks %v", name, a.State, taskNames(a))
	case !final && a.State != "" && (len(a.Tasks) == 0 || a.Transition == nil):
		c.violate("S3: %s is %s and its tasks are lost", name, a.State)
	}
	begins := a.Transition != nil && (b.Transition == nil || b.Transition.ID != a.Transition.ID)
	if before.Spec.Paused && (begins || len(a.Tasks) < len(b.Tasks) || attempts(a) > attempts(b)) {
		c.violate("%s continues although it is paused", name)
	}
	switch {
	case begins:
		c.checkBegins(r, name, b, a)
	case b.Transition != nil:
		c.checkContinues(r, name, b, a)
	case b.State != a.State && b.State != "":
		c.violate("S1: %s changes from %s to %s without a transition", name, b.State, a.State)
	}
	if b.State == "" && a.State != "" {
		c.truths[name].goalSince = c.now
	}
}

// central is the feature whose value others take from the API.
const central = "B"

// storeValue stores a value, and checks it. It is what some stored version of its Feature
// specifies, so that no process takes what is not stored (S2), and never goes back to an
// older version.
func (c *cluster) storeValue(r *replica, before, value *v1alpha1.FeatureValue) {
	c.counts["values written"]++
	if !r.controller.leads(value.Name, r.controller.gather(value.Name, r.controller.config.Clock.Now()).Servers) {
		c.counts["values written for another server"]++
	}
	if before != nil && !newerVersion(value.FeatureVersion, before.FeatureVersion) {
		c.violate("%s replaces the value of %s of version %s by that of %s", r.id, value.Name, before.FeatureVersion, value.FeatureVersion)
	}
	specified := false
	for _, change := range c.etcd.log[featureKind] {
		if f, ok := change.object.(*v1alpha1.Feature); ok && f.Name == value.Name && f.ResourceVersion == value.FeatureVersion {
			want, known := rollout.ValueOf(f)
			specified = known && want != nil && rollout.SameValue(want, value)
		}
	}
	if !specified {
		c.violate("S2: %s writes the value %t of %s, which version %s of it does not specify", r.id, value.Value, value.Name, value.FeatureVersion)
	}
	c.etcd.put(valueKind, value, c.now)
	c.statusWrites++
}

// published returns whether the values that processes follow are those of Features.
func (c *cluster) published() bool {
	for _, name := range featureNames {
		want, known := rollout.ValueOf(c.etcd.feature(name))
		have := c.etcd.value(name)
		if known && (want == nil) != (have == nil) || want != nil && !rollout.SameValue(want, have) {
			return false
		}
	}
	return true
}

func attempts(s v1alpha1.FeatureStatus) int32 {
	if len(s.Tasks) == 0 || s.Tasks[0].Name == v1alpha1.TaskWaitForUses {
		return 0
	}
	return s.Tasks[0].Attempts
}

// checkBegins holds S4 and the beginning of S3.
func (c *cluster) checkBegins(r *replica, name string, b, a v1alpha1.FeatureStatus) {
	c.counts["transitions begun"]++
	c.checkAgreement(r, name)
	c.checkTrueAgreement(name, c.now-c.seen())
	if transition.OfVersion(a.State) {
		c.checkMoves(name, b, a)
		return
	}
	was, _ := transition.Goal(b.State)
	goal, _ := transition.Goal(a.State)
	if was == goal || transition.OfVersion(b.State) {
		c.violate("S3: the transition of %s to %s is forgotten", name, b.State)
	}
	want := []string{v1alpha1.TaskWaitForUses}
	if name == "A" && goal {
		want = append(want, install)
	} else if name == "A" {
		want = append(want, clearing...)
	}
	if !slices.Equal(want, taskNames(a)) {
		c.violate("S3: %s begins with tasks %v", name, taskNames(a))
	}
	*c.truths[name] = truth{begun: c.now, goalSince: c.now, pausedSince: never}
}

// checkMoves holds S3 and S4 for the beginning of a version transition: it leads
// to the version of the servers, replaces nothing but another of its kind, and
// keeps the value.
func (c *cluster) checkMoves(name string, b, a v1alpha1.FeatureStatus) {
	c.counts["version transitions begun"]++
	to := a.Transition.ToVersion
	if want := []string{v1alpha1.TaskWaitForUses, converting[to]}; name != "A" || !slices.Equal(want, taskNames(a)) {
		c.violate("S3: %s is %s to %s with tasks %v", name, a.State, to, taskNames(a))
	}
	was, ok := transition.Value(&b)
	if is, _ := transition.Value(&a); !ok || is != was {
		c.violate("S1: %s is %s and will be %s", name, b.State, a.Transition.FromState)
	}
	switch {
	case transition.OfVersion(b.State):
		c.counts["version transitions replaced"]++
		if b.Transition.ToVersion == to && !b.Transition.Interrupted {
			c.violate("S3: the transition of %s to %s is forgotten", name, to)
		}
	case b.Transition != nil:
		c.violate("S3: the transition of %s to %s is forgotten", name, b.State)
	}
	truth := c.truths[name]
	truth.begun, truth.waited = c.now, 0
}

// checkAgreement holds S4 in what the writer itself knows.
func (c *cluster) checkAgreement(r *replica, name string) {
	view := r.controller.gather(name, r.controller.config.Clock.Now())
	for _, s := range view.Servers {
		if !s.Reported || s.Gate.Enabled != view.Servers[0].Gate.Enabled || s.Version != view.Servers[0].Version {
			c.violate("S4: %s continues while %s knows that servers disagree: %+v", name, r.id, view.Servers)
		}
	}
}

// checkTrueAgreement holds S4 in what is so for long enough to be known: since the
// time given.
func (c *cluster) checkTrueAgreement(name string, old time.Duration) {
	f := slices.Index(featureNames, name)
	var first *replica
	for _, r := range c.servers {
		switch {
		case !r.up || r.upSince > old:
		case r.stored == nil && r.ending:
		case r.stored == nil:
			c.violate("S4: %s continues while %s has not reported", name, r.id)
		case r.stored[f].from > old:
		case first == nil:
			first = r
		case r.stored[f].value != first.stored[f].value:
			c.violate("S4: %s continues while %s and %s disagree", name, first.id, r.id)
		case r.storedVersion != first.storedVersion && max(r.storedVersionFrom, first.storedVersionFrom) <= old:
			c.violate("S4: %s continues while %s has %s and %s has %s", name, first.id, first.storedVersion, r.id, r.storedVersion)
		}
	}
}

// checkContinues holds S1 to S3 within a transition.
func (c *cluster) checkContinues(r *replica, name string, b, a v1alpha1.FeatureStatus) {
	was, is := taskNames(b), taskNames(a)
	if attempts(a) > attempts(b) && slices.Equal(was, is) {
		c.checkAgreement(r, name)
		c.counts["attempts"]++
	}
	if slices.Equal(was, is) {
		return
	}
	if len(was) == 0 || !slices.Equal(was[1:], is) {
		c.violate("S3: tasks of %s were %v and are %v", name, was, is)
		return
	}
	goal, _ := transition.Value(&b)
	truth := c.truths[name]
	if was[0] == v1alpha1.TaskWaitForUses && transition.OfVersion(b.State) {
		c.checkWaitedForServers(r, name)
		truth.waited = c.now
	} else if was[0] == v1alpha1.TaskWaitForUses {
		c.checkWaited(r, name, goal, b.Transition.StartTime.Time)
		truth.waited = c.now
	} else if !c.succeeded[success{r.id, r.life, b.Transition.ID, was[0]}] {
		c.violate("S3: %s is taken from the tasks of %s and was not done", was[0], name)
	}
	if len(is) > 0 {
		return
	}
	c.counts["transitions done"]++
	if state := map[bool]v1alpha1.FeatureState{true: v1alpha1.StateOn, false: v1alpha1.StateOff}[goal]; a.State != state {
		c.violate("S1: %s was %s and is %s", name, b.State, a.State)
	}
	if transition.OfVersion(b.State) {
		c.counts["version transitions done"]++
		if a.Version != b.Transition.ToVersion || len(a.StoredVersions) > 0 {
			c.violate("S1: %s was %s to %s and is stored in the form of %s and %v", name, b.State, b.Transition.ToVersion, a.Version, a.StoredVersions)
		}
		return
	}
	if name == "A" && !goal && !truth.dirtied {
		for _, task := range clearing {
			if c.left[task] > 0 {
				c.violate("S1: A is off and %s has left %d", task, c.left[task])
			}
		}
	}
}

// checkWaitedForServers holds S2 when waiting for uses ends in a version
// transition: every server has had its version for the settle period.
func (c *cluster) checkWaitedForServers(r *replica, name string) {
	if c.now < c.truths[name].begun+modelSettings.Settle-slack {
		c.violate("S2: waiting for servers ends for %s after %s", name, c.now-c.truths[name].begun)
	}
	if c.now < r.upSince+modelSettings.Settle-slack {
		c.violate("S2: waiting for servers ends for %s %s after %s came up", name, c.now-r.upSince, r.id)
	}
	c.checkAgreement(r, name)
	c.checkTrueAgreement(name, c.now-c.seen())
}

// checkWaited holds S2 when waiting for uses ends.
func (c *cluster) checkWaited(r *replica, name string, goal bool, started time.Time) {
	f := slices.Index(featureNames, name)
	now := r.controller.config.Clock.Now()
	begun := c.truths[name].begun
	if c.now < begun+modelSettings.Settle-slack {
		c.violate("S2: waiting for users of %s ends after %s", name, c.now-begun)
	}
	if c.now < r.upSince+modelSettings.Settle-slack {
		c.violate("S2: waiting for users of %s ends %s after %s came up", name, c.now-r.upSince, r.id)
	}
	view := r.controller.gather(name, now)
	if wait := tracker.Waiting(view.Instances, goal, started, modelSettings.Settings, now); len(wait.Opposing) > 0 {
		c.violate("S2: waiting for users of %s ends while %s knows of %v", name, r.id, wait.Opposing)
	}
	for _, u := range c.processes() {
		if u.stored != nil && u.up {
			if s := u.stored[f]; s.asked && s.value != goal && s.from < c.now-c.seen() {
				c.violate("S2: waiting for users of %s ends although %s has the other value since %s", name, u.reportName(), s.from)
			}
		}
		for _, s := range u.history[f] {
			from := max(s.from, begun)
			// A contradiction is noticed when its report was taken, and written
			// when in addition what was last written to the feature was.
			lag, patience := c.lateness(s.from)
			noticed := 2*(lag+handlerLag+slack) + c.batch() + 2*patience
			if s.asked && s.value != goal && s.to-from > noticed && c.failedWrite < s.from-lag && c.now < s.to+modelSettings.Settle-c.seen() {
				c.violate("S2: waiting for users of %s ends %s after %s changed its mind", name, c.now-s.to, u.reportName())
			}
		}
	}
}

// checkBegun holds S2 when an attempt begins.
func (c *cluster) checkBegun(j *job) {
	f := c.etcd.feature(j.feature)
	c.tracef("%s: %s of %s begins", j.server.id, j.task, j.feature)
	switch {
	case f.Status.Transition == nil || f.Status.Transition.ID != j.transition:
		c.violate("S2: %s runs for a transition of %s that is not stored", j.task, j.feature)
	case f.Status.Tasks[0].Name != j.task || c.truths[j.feature].waited == 0:
		c.violate("S2, S3: %s of %s runs while tasks are %v", j.task, j.feature, taskNames(f.Status))
	case f.Status.Tasks[0].Attempts == 0:
		c.violate("%s of %s runs and nothing says so", j.task, j.feature)
	}
}

// checkStopped holds that a server that has looked at a feature runs no attempt of it that,
// by what the server knows, must not run.
func (c *cluster) checkStopped(r *replica, name string) {
	for _, j := range c.jobs {
		if j.server != r || j.life != r.life || j.feature != name || j.ended || j.ctx.Err() != nil {
			continue
		}
		view := r.controller.gather(name, r.controller.config.Clock.Now())
		f, err := r.controller.lister.Get(name)
		switch {
		case j.attempt != r.attempts[name]:
			c.violate("%s runs in %s, whose runner has forgotten it", j.task, r.id)
		case !r.controller.leads(name, view.Servers):
			c.violate("%s runs in %s, which knows that it does not lead %s", j.task, r.id, name)
		case err == nil && f.Spec.Paused:
			c.violate("%s runs in %s, which knows that %s is paused", j.task, r.id, name)
		}
	}
}

// batch is for how long reports may be folded.
func (c *cluster) batch() time.Duration {
	if c.crowded {
		return longestBatch
	}
	return reportBatch
}

// checkClearing holds that nothing is removed that is in use.
func (c *cluster) checkClearing(j *job) {
	// A server hears of the state, looks, and what is on its way still arrives.
	heard := c.seen() + c.patience + c.lag + slack
	goal, _ := transition.Value(&c.etcd.feature(j.feature).Status)
	if since := c.truths[j.feature].goalSince; goal && c.now > since+heard {
		c.violate("%s runs in %s although %s is %s since %s", j.task, j.server.id, j.feature, c.state(j.feature), since)
	}
	if since := c.truths[j.feature].pausedSince; c.now > since+heard {
		c.violate("%s runs in %s although %s is paused since %s", j.task, j.server.id, j.feature, since)
	}
	c.checkTrueAgreement(j.feature, c.now-heard-c.batch())
}
