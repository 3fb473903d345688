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

package featuregate

import (
	"cmp"
	"slices"
	"time"

	"k8s.io/component-base/featuregate"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
)

// Observation is what the layer knows of one feature.
type Observation struct {
	// Name is the gate's exact name.
	Name string
	// Enabled is its value now.
	Enabled bool
	// Queried is true once Enabled was called for it.
	Queried bool
	// Explicit is true when the value was set rather than derived from the
	// default or from AllAlpha and AllBeta.
	Explicit bool
	// Stage, Default and LockedToDefault are its specification at the
	// emulation version.
	Stage           v1alpha1.FeatureStage
	Default         bool
	LockedToDefault bool
	// Overridden is true when Enabled came from outside (SetRemote), and is not
	// what the process would use by itself.
	Overridden bool
	// SwitchTime is the moment at which the dynamic value from outside changes to the
	// other one, and the process takes that. It is zero unless that is known.
	SwitchTime time.Time
	// Control is the source that a server lets decide the value; the gate leaves it empty.
	Control v1alpha1.FeatureControl
}

// stages are upstream's pre-releases, which are values of an unexported type.
var stages = map[string]v1alpha1.FeatureStage{
	string(featuregate.PreAlpha):   v1alpha1.StagePreAlpha,
	string(featuregate.Alpha):      v1alpha1.StageAlpha,
	string(featuregate.Beta):       v1alpha1.StageBeta,
	string(featuregate.GA):         v1alpha1.StageGA,
	string(featuregate.Deprecated): v1alpha1.StageDeprecated,
}

// Observations returns what is known of every feature of the binary, sorted by
// name. Those that are newer than the emulation version are among them, off and
// pre-alpha: a cluster that goes down to that version has to turn them off, and
// this binary is the last that knows what they stored. AllAlpha and AllBeta are
// switches for features and none themselves, and are left out.
func (g *Gate) Observations() []Observation {
	g.mu.Lock()
	defer g.mu.Unlock()
	specs := g.inner.GetAll()
	values := g.values.Load()
	result := make([]Observation, 0, len(specs))
	for _, v := range values.slots {
		if v == nil || v.key == "AllAlpha" || v.key == "AllBeta" {
			continue
		}
		spec, exists := specs[v.key]
		if !exists {
			// Upstream leaves out what is newer than the emulation version. Code that queries it
			// finds it off.
			spec.PreRelease = featuregate.PreAlpha
		}
		result = append(result, Observation{
			Name:            string(v.key),
			Enabled:         v.enabled,
			Queried:         v.queried.Load(),
			Explicit:        g.inner.ExplicitlySet(v.key),
			Stage:           stages[string(spec.PreRelease)],
			Default:         spec.Default,
			LockedToDefault: spec.LockToDefault,
			Overridden:      g.overriddenLocked(v.key, v.enabled),
			SwitchTime:      g.switchTimeLocked(v.key, spec),
		})
	}
	slices.SortFunc(result, func(a, b Observation) int { return cmp.Compare(a.Name, b.Name) })
	return result
}

// overriddenLocked is true when a value from outside has changed a feature.
func (g *Gate) overriddenLocked(f featuregate.Feature, enabled bool) bool {
	_, remote := g.remote.overlay[f]
	return remote && g.inner.Enabled(f) != enabled
}

// switchTimeLocked returns the moment at which a feature follows a value from outside that
// changes then, zero if it does not.
func (g *Gate) switchTimeLocked(f featuregate.Feature, spec featuregate.FeatureSpec) time.Time {
	remote := g.remote.wanted[f]
	if _, taken := g.remote.overlay[f]; !taken || !remote.Dynamic || spec.LockToDefault {
		return time.Time{}
	}
	return remote.SwitchTime
}

// News receives a signal when a feature was queried for the first time or a value
// or its SwitchTime changed since the last signal was taken. It is meant for one receiver.
func (g *Gate) News() <-chan struct{} { return g.news }

// BeforeFinal calls f once when the values are about to become final: the last
// moment at which values from outside of the process may be set for features
// that are not dynamic (SetRemote). Code that waits for a server waits there. If
// the values are final already, f is never called.
func (g *Gate) BeforeFinal(f func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.beforeFinal = append(g.beforeFinal, f)
}

// OnAddMetrics calls f once when AddMetrics is called, at once if it was already.
// A binary of Kubernetes has read its command line and configuration by then, and
// has set up its logs: what runs beside the command starts there and not when the
// values are final, since klog must not be used while its logger is replaced.
func (g *Gate) OnAddMetrics(f func()) {
	g.mu.Lock()
	if !g.metrics {
		g.onAddMetrics = append(g.onAddMetrics, f)
		g.mu.Unlock()
		return
	}
	g.mu.Unlock()
	f()
}

// Finalize declares the values final. Binaries that call AddMetrics need not.
// Calling it again does nothing; it may return before the first call does.
func (g *Gate) Finalize() {
	g.mu.Lock()
	if g.finalizing {
		g.mu.Unlock()
		return
	}
	g.finalizing = true
	hooks := g.beforeFinal
	g.mu.Unlock()
	for _, f := range hooks {
		f()
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.finalLocked()
	g.beforeFinal = nil
}
