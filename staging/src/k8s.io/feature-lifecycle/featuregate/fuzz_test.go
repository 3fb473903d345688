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
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	utilversion "k8s.io/apimachinery/pkg/util/version"
	"k8s.io/component-base/featuregate"
)

// FuzzFlag sets --feature-gates to any text: the layer says and does what upstream's
// gate says and does.
func FuzzFlag(f *testing.F) {
	foundFlag(f)
	for _, seed := range []string{
		"Alpha=true,Beta=false", "Alpha", "=", ",", "Alpha=true,,", " Alpha = true ", "AllAlpha=true,Alpha=false", "AllBeta=false", "Locked=false",
		"New=true", "Dependent=true,Beta=false", "Unknown=true", "Alpha=true=false", "Alpha=T,Beta=0", "\xff=true", "Alpha=\x00", "AllAlpha=perhaps",
	} {
		f.Add(seed, true)
	}
	f.Fuzz(func(t *testing.T, text string, older bool) {
		plain, layered := upstream(t), featuregate.MutableVersionedFeatureGate(Wrap(upstream(t)))
		var results [2]string
		for i, gate := range []featuregate.MutableVersionedFeatureGate{plain, layered} {
			err := gate.Set(text)
			var emulated error
			if older {
				emulated = gate.SetEmulationVersion(utilversion.MustParse("1.35"))
			}
			results[i] = fmt.Sprint(err, emulated)
		}
		// Upstream goes through maps: of several problems, any may be returned.
		if strings.Count(text, "=") < 2 && results[0] != results[1] {
			t.Fatalf("%q: upstream says %s, the layer %s", text, results[0], results[1])
		}
		if (results[0] == "<nil> <nil>") != (results[1] == "<nil> <nil>") {
			t.Fatalf("%q: upstream says %s, the layer %s", text, results[0], results[1])
		}
		if results[0] != "<nil> <nil>" {
			return
		}
		if diff := cmp.Diff(picture(plain), picture(layered)); diff != "" {
			t.Fatalf("%q (-upstream +layer):\n%s", text, diff)
		}
	})
}

// FuzzRemote gives a gate values from the API, in any order with what else happens
// to it: it is never in a state that upstream refuses, and returns the truth about each
// value.
func FuzzRemote(f *testing.F) {
	foundRemote(f)
	for _, seed := range []string{
		"RAlpha=true", "RAlpha=true,Beta=false*;F;R", "RBeta=false;RDependent=false*,Beta=false*;F;RBeta=true*", "SBeta=true;RBeta=false;F",
		"RAllAlpha=true,AllBeta=false*", "RLocked=false,Unknown=true,New=true*", "AAlpha;RAlpha=true;F;RAlpha=true*", "E;RNew=true;F", "R=true;R\xff=false",
		"RDependent=true*;F;SBeta=false", "F;RDependent=false*;RBeta=false*,Dependent=true*",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, script string) {
		gate := Wrap(upstream(t))
		steps := strings.Split(script, ";")
		for _, step := range steps[:min(len(steps), 20)] {
			if step == "" {
				continue
			}
			switch text := step[1:]; step[0] {
			case 'S':
				_ = gate.Set(text)
			case 'A':
				if gate.GetAll()[featuregate.Feature(text)].PreRelease != "" || text == "Alpha" {
					gate.Enabled(featuregate.Feature(text))
				}
			case 'E':
				_ = gate.SetEmulationVersion(utilversion.MustParse("1.35"))
			case 'F':
				gate.AddMetrics()
			case 'R':
				checkRemote(t, gate, text)
			}
		}
	})
}

// checkRemote gives a gate values that are written <name>=<value>, with * behind those
// that are dynamic.
func checkRemote(t *testing.T, gate *Gate, text string) {
	t.Helper()
	values := map[featuregate.Feature]Remote{}
	for _, entry := range strings.Split(text, ",") {
		name, value, _ := strings.Cut(entry, "=")
		values[featuregate.Feature(name)] = Remote{Value: strings.HasPrefix(value, "true"), Dynamic: strings.HasSuffix(value, "*")}
	}
	valid := len(gate.Validate()) == 0
	outcomes := gate.SetRemote(values)
	if problems := gate.Validate(); valid && len(problems) > 0 {
		t.Fatalf("%q leaves a gate that is refused: %v", text, problems)
	}
	known := gate.GetAll()
	for name, wanted := range values {
		i := slices.IndexFunc(outcomes, func(o Outcome) bool { return o.Feature == name })
		if i < 0 {
			t.Fatalf("%q: nothing is said of %q", text, name)
		}
		o := outcomes[i]
		if o.Wanted != wanted.Value || o.Dynamic != wanted.Dynamic || o.Reason == "" || (o.Reason != OutcomeInEffect) != (o.Message != "") {
			t.Fatalf("%q: of %q is said %+v", text, name, o)
		}
		if _, ok := known[name]; !ok {
			if o.Reason == OutcomeInEffect {
				t.Fatalf("%q: %q is not known and in effect", text, name)
			}
			continue
		}
		if now := gate.Enabled(name); now != o.Enabled || (o.Reason == OutcomeInEffect) != (now == o.Wanted) {
			t.Fatalf("%q: %q is %t, and said is %+v", text, name, now, o)
		}
	}
	if !slices.IsSortedFunc(outcomes, func(a, b Outcome) int { return strings.Compare(string(a.Feature), string(b.Feature)) }) {
		t.Fatalf("%q: the outcomes are not sorted", text)
	}
}
