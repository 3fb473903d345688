//go:build linux

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

package disruption

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes/scheme"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/kubernetes-features/test/e2e_features/framework"
)

const (
	reportsKey     = "/registry/featurereports/" + systemNS + "/"
	autoscalersKey = "/registry/horizontalpodautoscalers/" + objectNS + "/"
	// promised is what convergence (L2) may take; the table says how often it took more.
	promised = time.Minute
	// healing is the time that the fault of a process that crashed last may last: who took its
	// place has so long to say what it uses (uses.Settings.ReportPeriod), and a minute
	// begins for L2 once it has.
	healing = 70 * time.Second
	// tooLong is the time at which a run fails for it at once: a loaded machine gets more.
	tooLong = 3 * time.Minute
	// tooLate is the time at which a run fails for uses that are wrong: such a process has a minute more.
	tooLate = 4 * time.Minute
	// seldom bounds how many pauses may take more than healing and what is promised: one of so many,
	// rounded up.
	seldom = 5
)

// Names of counters: of pauses, and of what the controller manager writes.
const (
	observed = "autoscalers that the controller manager observed"
	rests    = "pauses of all faults"
	slow     = "pauses of all faults after which states took more than the minute of L2"
	late     = "pauses of all faults after which they took more than that and what a crash takes to heal"
)

// often says that convergence was late after more than a few pauses, "" when it was not.
func often(pauses, late int) string {
	if most := (pauses + seldom - 1) / seldom; late > most {
		return fmt.Sprintf("L2: states took more than %s after %d of %d pauses, want %d at most", healing+promised, late, pauses, most)
	}
	return ""
}

// converge ends all faults, waits until the cluster has recovered, and judges what
// happened since the last time. It returns false when it did not recover.
func (w *world) converge() bool {
	w.quiet.Lock()
	defer w.quiet.Unlock()
	if err := w.recovered(); err != nil {
		w.t.Error(err)
		return false
	}
	w.judge()
	return !w.t.Failed()
}

// recovered waits until states are as configured, nothing is left of what is off,
// and uses are right.
func (w *world) recovered() error {
	begun := time.Now()
	if err := w.whole(w.t.Context()); err != nil {
		return fmt.Errorf("after the faults had ended: %w", err)
	}
	if err := w.release(w.t.Context(), rand.New(rand.NewPCG(w.seed, 3))); err != nil {
		return err
	}
	err := w.until("L2: after the faults had ended", func(ctx context.Context) (string, error) {
		if err := w.tidy(ctx); err != nil {
			return "", err
		}
		return w.misstated(ctx)
	})
	if err != nil {
		return err
	}
	w.excuses.end()
	states := time.Since(begun)
	if err := w.until("after the faults had ended", w.miscounted); err != nil {
		return err
	}
	counted := time.Since(begun)
	w.stats.mu.Lock()
	w.stats.longest, w.stats.right = max(w.stats.longest, states), max(w.stats.right, counted)
	w.stats.mu.Unlock()
	w.stats.count(rests)
	if states > promised {
		w.stats.count(slow)
	}
	if states > healing+promised {
		w.stats.count(late)
	}
	w.said("all faults paused: states as configured after %.1f s, uses right after %.1f s", states.Seconds(), counted.Seconds())
	switch {
	case !w.long():
		// A short run shows that states converge, not how fast: machines are busy.
		return nil
	case states > tooLong:
		return fmt.Errorf("L2: states were as configured %s after the faults had ended", states)
	case counted > tooLate:
		return fmt.Errorf("uses were right %s after the faults had ended", counted)
	default:
		return nil
	}
}

// tidy asks for the removal of what is left of a feature that is off, as an
// administrator does. There may be something only after a server has had the
// feature on meanwhile: one that disagreed, or was frozen for so long that the others
// went on without it.
func (w *world) tidy(ctx context.Context) error {
	for _, name := range append(slices.Clone(dynamics), static) {
		versions := w.history(name).Since(0)
		v := versions[len(versions)-1]
		if v.Status.State != v1alpha1.StateOff || !meta.IsStatusConditionFalse(v.Status.Conditions, v1alpha1.ConditionClean) {
			continue
		}
		why := w.excuses.of(name, versions)
		if why == "" {
			return fmt.Errorf("S1: %s is Off and not clean, and no server had it on that was not waited for: %+v", name, v.Status.Conditions)
		}
		begun := time.Now()
		_, err := w.kept().features.FeaturesV1alpha1().Features(systemNS).CreateCleanup(ctx, name, &v1alpha1.FeatureCleanup{}, metav1.CreateOptions{})
		if err == nil {
			if w.excuses.first(name) {
				w.stats.count("clean-ups of " + name + " that were asked for, since " + why)
			}
		} else if !w.passes(request{w.kept().name, begun}, err) {
			return fmt.Errorf("asking for what is left of %s to be removed: %w", name, err)
		}
	}
	return nil
}

// until waits until nothing is wrong any more. No fault is under way, so no component may
// end meanwhile.
func (w *world) until(when string, wrong func(context.Context) (string, error)) error {
	last, told := "", time.Now()
	err := wait.PollUntilContextTimeout(w.t.Context(), 500*time.Millisecond, framework.Patience, true, func(ctx context.Context) (bool, error) {
		err := w.whole(ctx)
		if err != nil {
			return false, err
		}
		last, err = wrong(ctx)
		if last != "" && time.Since(told) > 30*time.Second {
			told = time.Now()
			w.said("%s, still: %s", when, last)
		}
		return last == "" && err == nil, err
	})
	if err != nil {
		return fmt.Errorf("%s: %s (%w)", when, last, err)
	}
	return nil
}

// misstated returns what is not as it should be of the Features, "" for nothing.
func (w *world) misstated(ctx context.Context) (string, error) {
	var wrong []string
	for _, name := range w.features() {
		v := w.history(name).Last()
		if what := notSettled(v); what != "" {
			wrong = append(wrong, name+" "+what)
		}
	}
	for _, name := range append(slices.Clone(dynamics), static) {
		if v, want := w.history(name).Last(), w.wants(name); !arrived(want)(v) || v.Status.Configured == nil || v.Status.Configured.Value != want {
			wrong = append(wrong, fmt.Sprintf("%s is %s, configured %+v, asked for is %t", name, v.Status.State, v.Status.Configured, want))
		}
	}
	if len(wrong) > 0 {
		return strings.Join(wrong, "; "), nil
	}
	return w.dangling(ctx)
}

// notSettled returns what is wrong with a Feature in itself.
func notSettled(v framework.FeatureVersion) string {
	if !framework.AtRest(v) || v.Status.Transition != nil {
		return fmt.Sprintf("is %s with tasks %+v and conditions %+v", v.Status.State, v.Status.Tasks, v.Status.Conditions)
	}
	for _, kind := range []string{v1alpha1.ConditionConsistent, v1alpha1.ConditionUsesMatch, v1alpha1.ConditionClean, v1alpha1.ConditionKnown} {
		if c := meta.FindStatusCondition(v.Status.Conditions, kind); c != nil && c.Status == metav1.ConditionFalse {
			return fmt.Sprintf("is not %s: %s, %s", kind, c.Reason, c.Message)
		}
	}
	return ""
}

// dangling returns which objects have a field of a feature that is off.
func (w *world) dangling(ctx context.Context) (string, error) {
	if !w.wants(static) {
		sets, err := framework.StoredStatefulSets(ctx, w.etcd)
		if err != nil {
			return "", err
		}
		for name, set := range sets {
			if framework.HasMaxUnavailable(set.StatefulSet) {
				return fmt.Sprintf("%s is Off and StatefulSet %s has the field", static, name), nil
			}
		}
	}
	if w.wants(dynamics[0]) {
		return "", nil
	}
	response, err := w.etcd.Get(ctx, autoscalersKey, clientv3.WithPrefix())
	if err != nil {
		return "", err
	}
	for _, kv := range response.Kvs {
		has, err := hasObserved(kv)
		if err != nil {
			return "", err
		}
		if has {
			return fmt.Sprintf("%s is Off and %s has the field", dynamics[0], kv.Key), nil
		}
	}
	return "", nil
}

// hasObserved returns true for a stored autoscaler whose status has the field of dynamics[0].
func hasObserved(kv *mvccpb.KeyValue) (bool, error) {
	stored, _, err := scheme.Codecs.UniversalDeserializer().Decode(kv.Value, nil, nil)
	if err != nil {
		return false, fmt.Errorf("%s: %w", kv.Key, err)
	}
	scaler, ok := stored.(*autoscalingv2.HorizontalPodAutoscaler)
	if !ok {
		return false, fmt.Errorf("%s is a %T", kv.Key, stored)
	}
	return scaler.Status.ObservedGeneration != nil, nil
}

// followAutoscalers counts autoscalers into whose status the controller manager wrote the
// field. Unless there are some, nothing shows that it is removed.
func (w *world) followAutoscalers() {
	followKeys(w.t, w.etcd, autoscalersKey, func(event *clientv3.Event) {
		if event.Type != clientv3.EventTypePut {
			return
		}
		is, err := hasObserved(event.Kv)
		was := false
		if err == nil && event.PrevKv != nil {
			was, err = hasObserved(event.PrevKv)
		}
		if err != nil {
			w.t.Error(err)
			return
		}
		if is && !was {
			w.stats.count(observed)
		}
	})
}

// violations returns how a part of a history breaks S1 to S3.
func violations(versions []framework.FeatureVersion) (all []string) {
	for invariant, check := range map[string]func([]framework.FeatureVersion) string{"S1": framework.FalseState, "S2": framework.EarlyTask, "S3": framework.LostTask} {
		if what := check(versions); what != "" {
			all = append(all, invariant+": "+what)
		}
	}
	return all
}

// judge checks S1 to S3 in what was stored of every Feature since the last time,
// and forgets it.
func (w *world) judge() {
	for _, name := range w.features() {
		versions := w.history(name).Since(max(w.checked[name]-1, 0))
		for _, what := range violations(versions) {
			w.t.Errorf("%s: %s", name, what)
		}
		w.stats.mu.Lock()
		if n := len(framework.Transitions(versions)); n > 0 {
			w.stats.transitions[name] += n
		}
		w.stats.mu.Unlock()
	}
	w.clearings.judge(w.t, w.history(static).Since(0))
	for _, name := range w.features() {
		history := w.history(name)
		w.checked[name] = history.Mark()
		history.Drop(w.checked[name] - 1)
	}
}
