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

package agent

import (
	"context"
	"errors"
	"fmt"
	"time"

	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/feature-lifecycle/client/clientset/versioned"
	"k8s.io/feature-lifecycle/featuregate"
	"k8s.io/utils/clock"

	componentfeaturegate "k8s.io/component-base/featuregate"
)

// defaultResyncPeriod is the longest pause between two lists if none is configured.
const defaultResyncPeriod = 10 * time.Minute

// Gate takes the values. *featuregate.Gate implements it.
type Gate interface {
	SetRemote(values map[componentfeaturegate.Feature]featuregate.Remote) []featuregate.Outcome
	RemoteOutcomes() []featuregate.Outcome
}

// SyncerConfig configures a Syncer.
type SyncerConfig struct {
	// Namespace contains the Features: kube-system for Kubernetes' own.
	Namespace string
	// Component and Instance identify the process in canaries, as in its report.
	Component, Instance string
	// Gate takes the values.
	Gate Gate
	// Connect returns a client, whose configuration should be one of ClientConfig. It is
	// called until it succeeds. An error that wraps ErrNoServer ends that, and an error
	// that wraps ErrConfiguration ends the wait of Load.
	Connect func() (versioned.Interface, error)
	// Reconnect is called before each list. It returns true if another client has to
	// replace the one that Connect returned, such as that of a node that has its own
	// identity by now; nil means never.
	Reconnect func() bool
	// File has the last known values, for a process that starts without a server; "" means
	// none. The file exists only while there is a value.
	File string
	// LoadTimeout is the time that Load waits for the server; the last attempt may take a
	// second more. 0 means one attempt, and some more within 5 seconds at a server that
	// has too many requests.
	LoadTimeout time.Duration
	// ResyncPeriod is the longest pause between two lists; 0 means 10 minutes.
	ResyncPeriod time.Duration
	// AlwaysWatch keeps the watch of dynamic features open while there are none, so that
	// the first one is followed at once. It is for components with few instances.
	AlwaysWatch bool
	// Policy is what happens when a static value is outdated; "" means PolicyReport.
	Policy ChangePolicy
	// RestartWindow spreads restarts: each process waits for a random part of it.
	RestartWindow time.Duration
	// Restart ends the process in order. It is called once, from Run.
	Restart func()
	// Ready returns why the server that answered may not know the central values yet. Load
	// waits for it as for an answer. No process restarts, and nothing is saved, for the
	// answer of a server that was never ready. nil means that all servers are ready.
	Ready func(context.Context, versioned.Interface) error
	// Filter returns true for the Features that count, by their spec and status; nil means
	// all. A process with a Filter watches Features, and not the smaller FeatureValues.
	Filter func(*v1alpha1.Feature) bool
	// Clock is the time; nil means the real one.
	Clock clock.WithTicker
}

// complete validates the configuration and sets defaults.
func (c *SyncerConfig) complete() error {
	if c.Namespace == "" || c.Component == "" || c.Instance == "" {
		return errors.New("syncing feature values needs Namespace, Component and Instance")
	}
	if c.Gate == nil || c.Connect == nil {
		return fmt.Errorf("syncing feature values for %s.%s needs Gate and Connect", c.Component, c.Instance)
	}
	if c.Policy == "" {
		c.Policy = PolicyReport
	}
	if c.Policy == PolicyRestart && c.Restart == nil {
		return fmt.Errorf("syncing feature values for %s.%s needs Restart for the policy %s", c.Component, c.Instance, PolicyRestart)
	}
	if c.ResyncPeriod <= 0 {
		c.ResyncPeriod = defaultResyncPeriod
	}
	if c.Clock == nil {
		c.Clock = clock.RealClock{}
	}
	return nil
}
