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

package control

import (
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	utilversion "k8s.io/apimachinery/pkg/util/version"
	componentfeaturegate "k8s.io/component-base/featuregate"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/feature-lifecycle/lifecycle"
)

// FuzzFlags gives --central-features and --dynamic-features any text. They accept exactly
// what authors permit. Each refused name is in an error, with the flag.
func FuzzFlags(f *testing.F) {
	foundFlags(f)
	for _, seed := range [][2]string{
		{"Central,Dynamic", "Dynamic"}, {"", ""}, {"Central", "Central"}, {"Local", "Locked"}, {"Unknown", "dynamic"},
		{"Central,,Central", " Dynamic"}, {`"a,b"`, `"`}, {"A\nB", "\x00"}, {"Explicit", "Explicit"}, {"\xff", "AllAlpha"},
	} {
		f.Add(seed[0], seed[1])
	}
	f.Fuzz(func(t *testing.T, central, dynamic string) {
		var o Options
		flags := pflag.NewFlagSet("", pflag.ContinueOnError)
		o.AddFlags(flags)
		if err := flags.Parse([]string{"--central-features=" + central, "--dynamic-features=" + dynamic}); err != nil {
			if !strings.Contains(err.Error(), CentralFlag) && !strings.Contains(err.Error(), DynamicFlag) {
				t.Fatalf("the message names no flag: %v", err)
			}
			return
		}
		gate := componentfeaturegate.NewVersionedFeatureGate(utilversion.MajorMinor(1, 36))
		specs := map[componentfeaturegate.Feature]componentfeaturegate.FeatureSpec{"Locked": {LockToDefault: true, PreRelease: componentfeaturegate.GA}}
		for _, name := range []componentfeaturegate.Feature{"Central", "Dynamic", "Local", "Explicit"} {
			specs[name] = componentfeaturegate.FeatureSpec{PreRelease: componentfeaturegate.Beta}
		}
		if err := gate.Add(specs); err != nil {
			t.Fatal(err)
		}
		if err := gate.Set("Explicit=true"); err != nil {
			t.Fatal(err)
		}
		errs := o.Validate(Constraints{Namespace: "kube-system", Gate: gate, Declared: []lifecycle.Feature{
			{Name: "Central", Control: lifecycle.Central}, {Name: "Dynamic", Control: lifecycle.Dynamic}, {Name: "Explicit", Control: lifecycle.Dynamic}, {Name: "Locked", Control: lifecycle.Dynamic},
		}})
		var messages []string
		for _, err := range errs {
			messages = append(messages, err.Error())
		}
		refused := 0
		for flag, named := range map[string]map[string]bool{CentralFlag: setOf(o.Central), DynamicFlag: setOf(o.Dynamic)} {
			for name := range named {
				permitted := map[string][]string{CentralFlag: {"Central", "Dynamic", "Explicit"}, DynamicFlag: {"Dynamic"}}[flag]
				if slices.Contains(permitted, name) {
					continue
				}
				refused++
				if !slices.ContainsFunc(messages, func(m string) bool { return strings.HasPrefix(m, "--"+flag+":") && namesIt(m, name) }) {
					t.Fatalf("--%s accepts %q: %q", flag, name, messages)
				}
			}
		}
		if refused != len(errs) {
			t.Fatalf("%d names are refused with %d messages: %q", refused, len(errs), messages)
		}
		for _, name := range o.Names() {
			if o.Of(name) == v1alpha1.ControlLocal {
				t.Fatalf("%q is named and Local", name)
			}
		}
	})
}

// namesIt is true for a message that has a name, as it is or quoted.
func namesIt(message, name string) bool {
	return strings.Contains(message, " "+name+" ") || strings.Contains(message, strconv.Quote(name))
}

func setOf(names []string) map[string]bool {
	set := map[string]bool{}
	for _, name := range names {
		set[name] = true
	}
	return set
}
