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
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/component-base/metrics"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/feature-lifecycle/lifecycle/transition"
)

// collector shows the controllers of this process when metrics are read. So no series
// of a feature remains when another server takes over, nor of a controller that has
// ended. Series about single features exist only while they carry information: a
// cluster at rest has the state of each feature and its uses. It is safe for concurrent
// use.
type collector struct {
	metrics.BaseStableCollector

	mu sync.Mutex
	// controllers are those of each namespace, the newest last. Only that one is shown: a
	// registry fails when two have the same series.
	controllers map[string][]*Controller
}

func newCollector() *collector { return &collector{controllers: map[string][]*Controller{}} }

// add shows a controller until it is removed.
func (c *collector) add(controller *Controller) {
	c.mu.Lock()
	defer c.mu.Unlock()
	namespace := controller.config.Namespace
	c.controllers[namespace] = append(c.controllers[namespace], controller)
}

// remove shows a controller no longer.
func (c *collector) remove(controller *Controller) {
	c.mu.Lock()
	defer c.mu.Unlock()
	namespace := controller.config.Namespace
	left := slices.DeleteFunc(c.controllers[namespace], func(other *Controller) bool { return other == controller })
	if c.controllers[namespace] = left; len(left) == 0 {
		delete(c.controllers, namespace)
	}
}

// shown returns the controllers whose series are shown, one of each namespace.
func (c *collector) shown() []*Controller {
	c.mu.Lock()
	defer c.mu.Unlock()
	var newest []*Controller
	for _, controllers := range c.controllers {
		newest = append(newest, controllers[len(controllers)-1])
	}
	return newest
}

// DescribeWithStability implements the registry's interface.
func (c *collector) DescribeWithStability(ch chan<- *metrics.Desc) {
	for _, desc := range []*metrics.Desc{
		runningDesc, leaderDesc, reportsDesc, stateDesc, usesDesc, mismatchedDesc, conditionDesc, danglingDesc, startTimeDesc, tasksDesc, rolloutDesc,
	} {
		ch <- desc
	}
}

// CollectWithStability is called whenever metrics are read.
func (c *collector) CollectWithStability(ch chan<- metrics.Metric) {
	for _, controller := range c.shown() {
		controller.collect(func(desc *metrics.Desc, value float64, labels ...string) {
			labels = append([]string{controller.config.Namespace}, labels...)
			ch <- metrics.NewLazyConstMetric(desc, metrics.GaugeValue, value, labels...)
		})
	}
}

// collect shows the features of this controller. Gauge adds its namespace.
func (c *Controller) collect(gauge func(desc *metrics.Desc, value float64, labels ...string)) {
	for component, count := range c.tracker.Reports() {
		gauge(reportsDesc, float64(count), component)
	}
	running := 0.0
	if c.shown.running.Load() {
		running = 1
	}
	gauge(runningDesc, running)
	features := c.shown.all()
	gauge(leaderDesc, float64(len(features)))
	for name, feature := range features {
		status := feature.status
		gauge(stateDesc, 1, name, string(status.State))
		collectUses(gauge, name, status)
		for _, condition := range status.Conditions {
			if asksForAttention(condition.Type, condition.Status, condition.Reason) {
				gauge(conditionDesc, 1, name, condition.Type, condition.Reason)
			}
		}
		if t := status.Transition; t != nil {
			gauge(startTimeDesc, float64(t.StartTime.UnixMilli())/1000, name, string(status.State))
			gauge(tasksDesc, float64(len(status.Tasks)), name)
		}
		if r := status.Rollout; r != nil && !r.Halted {
			gauge(rolloutDesc, 1, name, valueLabel(&r.Value))
		}
		collectLeftovers(gauge, name, feature.leftovers)
	}
}

// asksForAttention returns true for a condition that is not as it should be.
// Progressing is False at rest and while a pause or a halt holds a feature. Clean is
// permanently Unknown where nothing is declared. Where something is, the search has
// failed unless it is under way. UpgradeSafe and DowngradeSafe matter only before a
// change of the version: a cluster at rest has features that the adjacent version does
// not.
func asksForAttention(kind string, status metav1.ConditionStatus, reason string) bool {
	switch kind {
	case v1alpha1.ConditionUpgradeSafe, v1alpha1.ConditionDowngradeSafe:
		return false
	case v1alpha1.ConditionProgressing:
		return reason != v1alpha1.ReasonComplete
	case v1alpha1.ConditionClean:
		return status == metav1.ConditionFalse || reason == v1alpha1.ReasonNotExamined || reason == v1alpha1.ReasonMisdeclared
	default:
		return status == metav1.ConditionFalse
	}
}

func collectUses(gauge func(*metrics.Desc, float64, ...string), name string, status *v1alpha1.FeatureStatus) {
	goal, hasGoal := transition.Value(status)
	counts, mismatched := map[[2]string]int32{}, map[string]int32{}
	for _, use := range status.Uses {
		count := use.Count
		if use.Enabled == nil {
			// Unreachable processes are not counted; they are expected.
			count = use.Expected
		}
		counts[[2]string{use.Component, valueLabel(use.Enabled)}] += count
		if hasGoal && use.Enabled != nil && *use.Enabled != goal && count > 0 {
			mismatched[use.Component] += count
		}
	}
	for key, count := range counts {
		gauge(usesDesc, float64(count), name, key[0], key[1])
	}
	for component, count := range mismatched {
		gauge(mismatchedDesc, float64(count), name, component)
	}
}

// collectLeftovers adds up what different tasks found in the same place.
func collectLeftovers(gauge func(*metrics.Desc, float64, ...string), name string, leftovers []transition.Finding) {
	counts := map[[2]string]int64{}
	for _, l := range leftovers {
		resource := schema.GroupResource{Group: l.Group, Resource: l.Resource}
		counts[[2]string{resource.String(), l.Field}] += l.Count
	}
	for key, count := range counts {
		gauge(danglingDesc, float64(count), name, key[0], key[1])
	}
}

// Values of the label enabled.
const (
	enabledTrue    = "true"
	enabledFalse   = "false"
	enabledUnknown = "unknown"
)

func valueLabel(enabled *bool) string {
	switch {
	case enabled == nil:
		return enabledUnknown
	case *enabled:
		return enabledTrue
	default:
		return enabledFalse
	}
}
