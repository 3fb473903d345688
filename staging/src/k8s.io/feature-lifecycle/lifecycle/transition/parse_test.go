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

package transition

import (
	"testing"

	utilversion "k8s.io/apimachinery/pkg/util/version"
	"k8s.io/feature-lifecycle/lifecycle/tracker"
	"pgregory.net/rapid"
)

// checkParse compares parseVersion with the parser of apimachinery.
func checkParse(t rapid.TB, version string) {
	want, wantErr := utilversion.ParseMajorMinor(version)
	got, err := parseVersion(version)
	switch {
	case (err == nil) != (wantErr == nil):
		t.Errorf("%q: error %v, want %v", version, err, wantErr)
	case err == nil && (got.String() != want.String() || !got.EqualTo(want)):
		t.Errorf("%q: %s, want %s", version, got, want)
	}
}

func TestParseVersion(t *testing.T) {
	for _, version := range []string{
		"", "1", "1.", ".1", "1.36", "0.3", "v1.36", " 1.36 ", "1.036", "01.36", "+1.36", "1.+36", "-1.36", "1.-36",
		"1.36.0", "1.36-rc.1", "1.36+feature", "1..36", "1.99999999999999999999", "99999999999999999999.1", "latest",
	} {
		checkParse(t, version)
	}
	rapid.Check(t, func(t *rapid.T) {
		checkParse(t, rapid.StringMatching(`v?[0-9+-]{0,3}\.?[0-9.+-]{0,4}`).Draw(t, "version"))
	})
}

// BenchmarkNext decides about a feature at rest with three servers and declared
// versions, as most reconciles do.
func BenchmarkNext(b *testing.B) {
	f := feature("On")
	view := View{Declared: both, NewTransitionID: "t2", Servers: []tracker.Server{server("a", true), server("b", true), server("c", true)}}
	b.ReportAllocs()
	for b.Loop() {
		Next(f, view, settings, start)
	}
}
