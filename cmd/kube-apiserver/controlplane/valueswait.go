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

package controlplane

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	typedv1alpha1 "k8s.io/feature-lifecycle/client/clientset/versioned/typed/features/v1alpha1"
	"k8s.io/feature-lifecycle/featuregate"
	"k8s.io/feature-lifecycle/lifecycle/control"
	"k8s.io/feature-lifecycle/lifecycle/transition"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes-features/pkg/featurelifecycle/reporting"
)

const (
	// valuesWaitTimeout limits the time for which the server is not ready
	// because its Features do not have the values for components yet. Only a
	// cluster's first server, or one with other flags than the last, has to
	// wait at all.
	valuesWaitTimeout = 20 * time.Second
	valuesWaitPeriod  = 100 * time.Millisecond
	// disagreementPatience is the time for which a Feature has to report that
	// servers differ or that it is held, once this server has reported and its
	// server flow runs. An earlier status is corrected sooner. The others will
	// then not agree before this server is ready, for example in a rolling
	// restart.
	disagreementPatience = 3 * time.Second
)

// valuesWait keeps the server from being ready until its Features have the
// values for the other components. These read them once, when they start, and a
// server that was restarted with another value would still give them the last
// one.
type valuesWait struct {
	decides  control.Options
	features typedv1alpha1.FeatureInterface
	// observe returns the server's own values; querying the gate would make the
	// server a user of the features.
	observe func() []featuregate.Observation
	// looking is closed once this server has reported and its server flow runs:
	// the server that handles a Feature can then know the configuration of all.
	looking <-chan struct{}

	// differs has the time since which each Feature cannot get this server's value.
	differs map[string]time.Time
}

func (h *lifecycleHooks) valuesWait() *valuesWait {
	return &valuesWait{
		decides:  h.control,
		features: h.own.features.FeaturesV1alpha1().Features(metav1.NamespaceSystem),
		observe:  reporting.Install().Observations,
		looking:  h.looking,
	}
}

// wait returns once every Feature has this server's values, or cannot have them until other servers
// have the same flags or a hold is released. It returns after valuesWaitTimeout in any case.
func (a *valuesWait) wait(ctx context.Context) {
	logger := klog.FromContext(ctx)
	a.differs = map[string]time.Time{}
	waiting, disputed := a.decides.Names(), map[string]string{}
	err := wait.PollUntilContextTimeout(ctx, valuesWaitPeriod, valuesWaitTimeout, true, func(ctx context.Context) (bool, error) {
		own := a.own()
		clear(disputed)
		waiting = slices.DeleteFunc(waiting, func(name string) bool {
			feature, err := a.features.Get(ctx, name, metav1.GetOptions{})
			switch {
			case err != nil:
				return false
			case a.hasValue(feature, own[name]):
				return true
			}
			if message := a.dispute(feature); message != "" {
				disputed[name] = message
			}
			return false
		})
		return len(waiting) == len(disputed), nil
	})
	if len(disputed) > 0 {
		logger.Info("Ready although Features do not have this server's values yet. Until they do, components that start take the Features' present values",
			"features", slices.Sorted(maps.Keys(disputed)), "because", disputed)
	}
	if err != nil && ctx.Err() == nil {
		logger.Error(err, "Features do not have this server's values yet; components that start now take the Features' present values, or their own. The conditions of the Features name the cause", "features", waiting)
	}
}

// own are the values that this server is set to; what it has taken from the API
// does not count.
func (a *valuesWait) own() map[string]bool {
	values := map[string]bool{}
	for _, o := range a.observe() {
		values[o.Name] = o.Enabled != o.Overridden
	}
	return values
}

// hasValue returns true if a Feature has the value for components, equal to this
// server's own. A value that is requested through the API does not depend on
// servers; components follow it.
func (a *valuesWait) hasValue(feature *v1alpha1.Feature, own bool) bool {
	status, control := &feature.Status, a.decides.Of(feature.Name)
	if status.Control != control || status.Configured == nil {
		return false
	}
	if control == v1alpha1.ControlDynamic && feature.Spec.Enabled != nil {
		return true
	}
	return status.Configured.Value == own
}

// dispute returns why a Feature does not have this server's value although
// servers have had the time to agree, "" if that is not known.
func (a *valuesWait) dispute(feature *v1alpha1.Feature) string {
	select {
	case <-a.looking:
	default:
		return ""
	}
	why := unanswerable(feature)
	if why == "" {
		delete(a.differs, feature.Name)
		return ""
	}
	since, seen := a.differs[feature.Name]
	switch {
	case !seen:
		a.differs[feature.Name] = time.Now()
		return ""
	case time.Since(since) < disagreementPatience:
		return ""
	}
	return why
}

// unanswerable returns why the server flow does not change status.configured of a
// Feature, "" if no cause is known (package transition decides it).
func unanswerable(feature *v1alpha1.Feature) string {
	consistent := meta.FindStatusCondition(feature.Status.Conditions, v1alpha1.ConditionConsistent)
	progressing := meta.FindStatusCondition(feature.Status.Conditions, v1alpha1.ConditionProgressing)
	switch {
	case consistent != nil && consistent.Status == metav1.ConditionFalse:
		return consistent.Message
	case feature.Spec.Paused:
		return "spec.paused holds the feature"
	case transition.OfVersion(feature.Status.State):
		return fmt.Sprintf("the feature is %s", feature.Status.State)
	case progressing != nil && progressing.Reason == v1alpha1.ReasonMixedVersions:
		return progressing.Message
	default:
		return ""
	}
}
