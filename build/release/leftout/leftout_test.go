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

package leftout

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// fake notes what a test was made to do.
type fake struct {
	testing.TB
	did []string
}

func (f *fake) Helper()      {}
func (f *fake) Name() string { return "TestX" }
func (f *fake) Errorf(format string, args ...any) {
	f.did = append(f.did, "error: "+fmt.Sprintf(format, args...))
}
func (f *fake) Fatalf(format string, args ...any) {
	f.did = append(f.did, "fatal: "+fmt.Sprintf(format, args...))
}
func (f *fake) Fatal(args ...any) { f.did = append(f.did, "fatal: "+fmt.Sprint(args...)) }
func (f *fake) Log(args ...any)   { f.did = append(f.did, "log: "+fmt.Sprint(args...)) }
func (f *fake) Skip(args ...any)  { f.did = append(f.did, "skip: "+fmt.Sprint(args...)) }

func TestLeftOutPackages(t *testing.T) {
	for _, c := range []struct {
		all, want string
		do        func(testing.TB, string)
	}{
		{"", "skip: no x", Skip},
		{"true", "fatal: no x, and KUBE_FEATURES_REQUIRE_ALL forbids", Skip},
		{"", "log: Left out: no x", Part},
		{"true", "error: no x, and KUBE_FEATURES_REQUIRE_ALL forbids", Part},
	} {
		list := filepath.Join(t.TempDir(), "list")
		t.Setenv("RELEASE_LEFT_OUT", list)
		t.Setenv("KUBE_FEATURES_REQUIRE_ALL", c.all)
		var f fake
		c.do(&f, "no x")
		if len(f.did) == 0 || !strings.HasPrefix(f.did[0], c.want) {
			t.Errorf("with KUBE_FEATURES_REQUIRE_ALL=%q: %v, want %q", c.all, f.did, c.want)
		}
		if c.all != "" {
			continue
		}
		content, err := os.ReadFile(list)
		if err != nil || string(content) != "TestX: no x\n" {
			t.Errorf("the list has %q: %v", content, err)
		}
	}
}
