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
	_ "embed"
	"strings"
	"sync/atomic"
	"testing"

	utilversion "k8s.io/apimachinery/pkg/util/version"
	"k8s.io/component-base/featuregate"
)

// gates are the names of Kubernetes' gates at 1.37 (upstream's
// test/compatibility_lifecycle/reference), so that lookups are as they are in its binaries.
//
//go:embed testdata/gates.txt
var gates string

// The features that the benchmark queries: one per kind of value.
const (
	defaulted = featuregate.Feature("ContainerStopSignals")
	explicit  = featuregate.Feature("MaxUnavailableStatefulSet")
	central   = featuregate.Feature("GracefulNodeShutdown")
	dynamic   = featuregate.Feature("UserNamespacesSupport")
)

// realistic is upstream's gate with all of Kubernetes' gates.
func realistic(t testing.TB) featuregate.MutableVersionedFeatureGate {
	t.Helper()
	gate := featuregate.NewVersionedFeatureGate(utilversion.MustParse("1.37"))
	specs := map[featuregate.Feature]featuregate.VersionedSpecs{}
	for name := range strings.FieldsSeq(gates) {
		specs[featuregate.Feature(name)] = featuregate.VersionedSpecs{{Version: utilversion.MustParse("1.37"), PreRelease: featuregate.Alpha}}
	}
	if err := gate.AddVersioned(specs); err != nil {
		t.Fatal(err)
	}
	return gate
}

type enabler interface {
	Enabled(featuregate.Feature) bool
}

// lookup is what one would write first for a gate that may change: it loads a
// pointer and looks into a map.
type lookup struct {
	values atomic.Pointer[map[featuregate.Feature]bool]
}

func (l *lookup) Enabled(key featuregate.Feature) bool { return (*l.values.Load())[key] }

// load is less than any gate can do: it loads a pointer and looks for nothing.
type load struct {
	value atomic.Pointer[bool]
}

func (l *load) Enabled(featuregate.Feature) bool { return *l.value.Load() }

// BenchmarkEnabled compares the layer with the gate it wraps, with a map, and with no
// lookup at all, in one run: the names are what benchstat makes columns of
// (benchstat -col /gate), and what test/benchmark reads. Upstream's gate knows no
// values from outside of the process: beside those stands a value that was set.
func BenchmarkEnabled(b *testing.B) {
	own := Wrap(realistic(b))
	own.BeforeFinal(func() {
		own.SetRemote(map[featuregate.Feature]Remote{central: {Value: true}, dynamic: {Value: true, Dynamic: true}})
	})
	peer := realistic(b)
	for _, gate := range []featuregate.MutableVersionedFeatureGate{own, peer} {
		if err := gate.SetFromMap(map[string]bool{string(explicit): true}); err != nil {
			b.Fatal(err)
		}
	}
	if err := peer.SetFromMap(map[string]bool{string(central): true, string(dynamic): true}); err != nil {
		b.Fatal(err)
	}
	own.Finalize()
	inMap, values := &lookup{}, map[featuregate.Feature]bool{}
	for name := range strings.FieldsSeq(gates) {
		values[featuregate.Feature(name)] = own.Enabled(featuregate.Feature(name))
	}
	inMap.values.Store(&values)
	for _, value := range []struct {
		name    string
		feature featuregate.Feature
		want    bool
	}{{"default", defaulted, false}, {"explicit", explicit, true}, {"central", central, true}, {"dynamic", dynamic, true}} {
		for _, gate := range []struct {
			name string
			gate enabler
		}{{"upstream", peer}, {"layer", own}, {"lookup", inMap}, {"load", &load{}}} {
			if gate.name == "load" {
				gate.gate.(*load).value.Store(&value.want)
			}
			if gate.gate.Enabled(value.feature) != value.want {
				b.Fatalf("gate %s: the %s value is not %t", gate.name, value.name, value.want)
			}
			b.Run("value="+value.name+"/callers=one/gate="+gate.name, func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					gate.gate.Enabled(value.feature)
				}
			})
			b.Run("value="+value.name+"/callers=all/gate="+gate.name, func(b *testing.B) {
				b.ReportAllocs()
				b.RunParallel(func(pb *testing.PB) {
					for pb.Next() {
						gate.gate.Enabled(value.feature)
					}
				})
			})
		}
	}
}
