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
	"sync"
	"sync/atomic"

	"github.com/spf13/pflag"

	utilversion "k8s.io/apimachinery/pkg/util/version"
	"k8s.io/component-base/featuregate"
	"k8s.io/klog/v2"
)

// Gate is the layer. It is safe for concurrent use as far as the wrapped gate
// is.
type Gate struct {
	inner featuregate.MutableVersionedFeatureGate
	// made is the version that inner had when it was wrapped.
	made *utilversion.Version

	// values is what Enabled reads.
	values atomic.Pointer[snapshot]

	// mu guards mutations of inner together with the replacement of values, so
	// that no mutation is lost between the two, and the fields below.
	mu sync.Mutex
	// finalizing is true once Finalize was called, final once the values are.
	finalizing, final bool
	// beforeFinal are called once before the values become final, onAddMetrics once
	// after AddMetrics was called.
	beforeFinal, onAddMetrics []func()
	// remote are the values from outside of the process.
	remote remoteValues
	// subscriptions are notified of changes.
	subscriptions map[*subscription]bool
	// metrics is true once AddMetrics was called: the values are shown as metrics.
	metrics bool

	// news has room for one signal: something was queried for the first time, or
	// a value changed.
	news chan struct{}
}

var (
	_ featuregate.MutableVersionedFeatureGate           = &Gate{}
	_ featuregate.MutableFeatureGateWithLogger          = &Gate{}
	_ featuregate.MutableVersionedFeatureGateWithLogger = &Gate{}
)

// Wrap puts the layer over a gate. From then on the gate must only be changed
// through the layer. What was queried before counts as queried.
func Wrap(inner featuregate.MutableVersionedFeatureGate) *Gate {
	g := &Gate{inner: inner, made: inner.EmulationVersion(), news: make(chan struct{}, 1), subscriptions: map[*subscription]bool{}}
	g.values.Store(g.resolve())
	for _, key := range queried(inner) {
		if v := g.values.Load().find(key); v != nil && v.queried.CompareAndSwap(false, true) {
			g.signal()
		}
	}
	return g
}

// Enabled returns the value of a feature and notes that it was queried. It
// panics for a feature that is not known, as the wrapped gate does.
func (g *Gate) Enabled(key featuregate.Feature) bool {
	v := g.values.Load().find(key)
	if v == nil {
		return g.inner.Enabled(key)
	}
	if !v.forwarded.Load() {
		g.forwardQuery(key, v)
	}
	return v.enabled
}

// forwardQuery passes the first query of a feature to the wrapped gate. It is
// apart so that Enabled stays small.
func (g *Gate) forwardQuery(key featuregate.Feature, v *value) {
	if !v.forwarded.CompareAndSwap(false, true) {
		return
	}
	// A gate may be queried while it is being changed; the wrapped gate allows
	// that.
	g.inner.Enabled(key)
	if v.queried.CompareAndSwap(false, true) {
		g.signal()
	}
}

func (g *Gate) signal() {
	select {
	case g.news <- struct{}{}:
	default:
	}
}

// resolve reads all values from a copy of the wrapped gate, so that it is not
// queried: the copy's queries are not the binary's. Values from outside are set
// on the copy. It needs the lock, except in Wrap.
func (g *Gate) resolve() *snapshot {
	gate := g.inner.DeepCopy()
	overlaid := g.overlayLocked(gate)
	old := g.values.Load()
	known := gate.GetAllVersioned()
	result := newSnapshot(len(known))
	result.gate, result.overlaid = gate, overlaid
	for key := range known {
		v := &value{key: key, enabled: gate.Enabled(key), queried: &atomic.Bool{}}
		if before := old.find(key); before != nil {
			v.queried = before.queried
		}
		result.add(v)
	}
	return result
}

// change runs a mutation of the wrapped gate and replaces the snapshot before it
// returns, whether the mutation failed or not: upstream keeps part of what a
// failed Set was given.
func (g *Gate) change(mutate func() error) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	err := mutate()
	g.replaceLocked()
	return err
}

// replaceLocked puts a new snapshot in place, and returns the features that changed.
func (g *Gate) replaceLocked() (changed []featuregate.Feature) {
	old := g.values.Load()
	next := g.resolve()
	g.values.Store(next)
	changed = next.changed(old)
	if len(changed) > 0 {
		g.signal()
		g.notifyLocked(next, changed)
	}
	return changed
}

// effective is the wrapped gate, or a copy of it with the values from outside
// where there are some.
func (g *Gate) effective() featuregate.MutableVersionedFeatureGate {
	if values := g.values.Load(); values.overlaid {
		return values.gate
	}
	return g.inner
}

// Set implements pflag.Value and MutableFeatureGate.
func (g *Gate) Set(value string) error {
	return g.change(func() error { return g.inner.Set(value) })
}

// SetWithLogger is Set with the caller's logger.
func (g *Gate) SetWithLogger(logger klog.Logger, value string) error {
	return g.change(func() error {
		if inner, ok := g.inner.(featuregate.MutableFeatureGateWithLogger); ok {
			return inner.SetWithLogger(logger, value)
		}
		return g.inner.Set(value)
	})
}

// SetFromMap implements MutableFeatureGate.
func (g *Gate) SetFromMap(m map[string]bool) error {
	return g.change(func() error { return g.inner.SetFromMap(m) })
}

// SetFromMapWithLogger is SetFromMap with the caller's logger.
func (g *Gate) SetFromMapWithLogger(logger klog.Logger, m map[string]bool) error {
	return g.change(func() error {
		if inner, ok := g.inner.(featuregate.MutableFeatureGateWithLogger); ok {
			return inner.SetFromMapWithLogger(logger, m)
		}
		return g.inner.SetFromMap(m)
	})
}

// Add implements MutableFeatureGate.
func (g *Gate) Add(features map[featuregate.Feature]featuregate.FeatureSpec) error {
	return g.change(func() error { return g.inner.Add(features) })
}

// AddVersioned implements MutableVersionedFeatureGate.
func (g *Gate) AddVersioned(features map[featuregate.Feature]featuregate.VersionedSpecs) error {
	return g.change(func() error { return g.inner.AddVersioned(features) })
}

// AddDependencies implements MutableVersionedFeatureGate.
func (g *Gate) AddDependencies(features map[featuregate.Feature][]featuregate.Feature) error {
	return g.change(func() error { return g.inner.AddDependencies(features) })
}

// OverrideDefault implements MutableFeatureGate.
func (g *Gate) OverrideDefault(name featuregate.Feature, override bool) error {
	return g.change(func() error { return g.inner.OverrideDefault(name, override) })
}

// OverrideDefaultWithLogger is OverrideDefault with the caller's logger.
func (g *Gate) OverrideDefaultWithLogger(logger klog.Logger, name featuregate.Feature, override bool) error {
	return g.change(func() error {
		if inner, ok := g.inner.(featuregate.MutableFeatureGateWithLogger); ok {
			return inner.OverrideDefaultWithLogger(logger, name, override)
		}
		return g.inner.OverrideDefault(name, override)
	})
}

// OverrideDefaultAtVersion implements MutableVersionedFeatureGate.
func (g *Gate) OverrideDefaultAtVersion(name featuregate.Feature, override bool, version *utilversion.Version) error {
	return g.change(func() error { return g.inner.OverrideDefaultAtVersion(name, override, version) })
}

// OverrideDefaultAtVersionWithLogger is OverrideDefaultAtVersion with the
// caller's logger.
func (g *Gate) OverrideDefaultAtVersionWithLogger(logger klog.Logger, name featuregate.Feature, override bool, version *utilversion.Version) error {
	return g.change(func() error {
		if inner, ok := g.inner.(featuregate.MutableVersionedFeatureGateWithLogger); ok {
			return inner.OverrideDefaultAtVersionWithLogger(logger, name, override, version)
		}
		return g.inner.OverrideDefaultAtVersion(name, override, version)
	})
}

// SetEmulationVersion implements MutableVersionedFeatureGate.
func (g *Gate) SetEmulationVersion(emulation *utilversion.Version) error {
	return g.change(func() error { return g.inner.SetEmulationVersion(emulation) })
}

// SetEmulationVersionWithLogger is SetEmulationVersion with the caller's logger.
func (g *Gate) SetEmulationVersionWithLogger(logger klog.Logger, emulation *utilversion.Version) error {
	return g.change(func() error {
		if inner, ok := g.inner.(featuregate.MutableVersionedFeatureGateWithLogger); ok {
			return inner.SetEmulationVersionWithLogger(logger, emulation)
		}
		return g.inner.SetEmulationVersion(emulation)
	})
}

// SetEmulationVersionAndMinCompatibilityVersion implements
// MutableVersionedFeatureGate.
func (g *Gate) SetEmulationVersionAndMinCompatibilityVersion(emulation, minCompatibility *utilversion.Version) error {
	return g.change(func() error {
		return g.inner.SetEmulationVersionAndMinCompatibilityVersion(emulation, minCompatibility)
	})
}

// SetEmulationVersionAndMinCompatibilityVersionWithLogger is
// SetEmulationVersionAndMinCompatibilityVersion with the caller's logger.
func (g *Gate) SetEmulationVersionAndMinCompatibilityVersionWithLogger(logger klog.Logger, emulation, minCompatibility *utilversion.Version) error {
	return g.change(func() error {
		if inner, ok := g.inner.(featuregate.MutableVersionedFeatureGateWithLogger); ok {
			return inner.SetEmulationVersionAndMinCompatibilityVersionWithLogger(logger, emulation, minCompatibility)
		}
		return g.inner.SetEmulationVersionAndMinCompatibilityVersion(emulation, minCompatibility)
	})
}

// ResetFeatureValueToDefault implements MutableVersionedFeatureGate.
func (g *Gate) ResetFeatureValueToDefault(name featuregate.Feature) error {
	return g.change(func() error { return g.inner.ResetFeatureValueToDefault(name) })
}

// Close implements MutableFeatureGate.
func (g *Gate) Close() { g.inner.Close() }

// AddFlag adds the wrapped gate's flag, with the layer between: a value set on
// the command line has to replace the snapshot too.
func (g *Gate) AddFlag(fs *pflag.FlagSet) {
	scratch := pflag.NewFlagSet("", pflag.ContinueOnError)
	g.inner.AddFlag(scratch)
	scratch.VisitAll(func(f *pflag.Flag) {
		f.Value = &flagValue{Value: f.Value, gate: g}
		fs.AddFlag(f)
	})
}

// flagValue is the wrapped gate's flag value, set through the layer.
type flagValue struct {
	pflag.Value
	gate *Gate
}

func (v *flagValue) Set(text string) error {
	return v.gate.change(func() error { return v.Value.Set(text) })
}

// KnownFeatures implements FeatureGate.
func (g *Gate) KnownFeatures() []string { return g.inner.KnownFeatures() }

// Dependencies implements FeatureGate.
func (g *Gate) Dependencies() map[featuregate.Feature][]featuregate.Feature {
	return g.inner.Dependencies()
}

// Validate implements FeatureGate.
func (g *Gate) Validate() []error { return g.effective().Validate() }

// GetAll implements MutableFeatureGate.
func (g *Gate) GetAll() map[featuregate.Feature]featuregate.FeatureSpec { return g.inner.GetAll() }

// GetAllVersioned implements MutableVersionedFeatureGate.
func (g *Gate) GetAllVersioned() map[featuregate.Feature]featuregate.VersionedSpecs {
	return g.inner.GetAllVersioned()
}

// MadeFor returns the version that the wrapped gate had when it was wrapped: the one
// that it was made for, unless another one was set before. EmulationVersion is what it
// emulates now.
func (g *Gate) MadeFor() *utilversion.Version { return g.made }

// EmulationVersion implements MutableVersionedFeatureGate.
func (g *Gate) EmulationVersion() *utilversion.Version { return g.inner.EmulationVersion() }

// MinCompatibilityVersion implements MutableVersionedFeatureGate.
func (g *Gate) MinCompatibilityVersion() *utilversion.Version {
	return g.inner.MinCompatibilityVersion()
}

// ExplicitlySet implements MutableVersionedFeatureGate. A value from outside of
// the process is not set explicitly.
func (g *Gate) ExplicitlySet(name featuregate.Feature) bool { return g.inner.ExplicitlySet(name) }

// DeepCopy returns a copy of the wrapped gate without the layer: a query
// of a copy, to validate a configuration say, is no use of a feature. Values from
// outside of the process are set on the copy, explicitly.
func (g *Gate) DeepCopy() featuregate.MutableVersionedFeatureGate { return g.effective().DeepCopy() }

// DeepCopyAndReset returns a copy of the wrapped gate without the layer.
func (g *Gate) DeepCopyAndReset() featuregate.MutableVersionedFeatureGate {
	return g.inner.DeepCopyAndReset()
}

// String implements pflag.Value as far as the wrapped gate does. It lists values
// from outside of the process too.
func (g *Gate) String() string {
	if inner, ok := g.effective().(interface{ String() string }); ok {
		return inner.String()
	}
	return ""
}

// Type implements pflag.Value.
func (g *Gate) Type() string { return "mapStringBool" }

// AddMetrics implements MutableFeatureGate. Every binary calls it when its
// command line and configuration have been read: from then on the values are
// final. The wrapped gate queries every feature itself, which is no use.
func (g *Gate) AddMetrics() {
	g.Finalize()
	g.mu.Lock()
	g.effective().AddMetrics()
	g.metrics = true
	hooks := g.onAddMetrics
	g.onAddMetrics = nil
	g.mu.Unlock()
	for _, f := range hooks {
		f()
	}
}
