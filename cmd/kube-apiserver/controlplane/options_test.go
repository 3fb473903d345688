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
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"

	"k8s.io/apimachinery/pkg/runtime/schema"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/feature-lifecycle/lifecycle/control"
	"k8s.io/feature-lifecycle/lifecycle/transition"
	"k8s.io/kubernetes/cmd/kube-apiserver/app/options"
	"k8s.io/kubernetes/pkg/controlplane"
)

// TestAllOfUpstreamsFlagsAreThere compares with upstream's own options.
func TestAllOfUpstreamsFlagsAreThere(t *testing.T) {
	ours := map[string]*pflag.Flag{}
	opts := NewOptions()
	flags := opts.Flags()
	for _, fs := range flags.FlagSets {
		fs.VisitAll(func(f *pflag.Flag) { ours[f.Name] = f })
	}
	upstream := options.NewServerRunOptions().Flags()
	count := 0
	for _, fs := range upstream.FlagSets {
		fs.VisitAll(func(f *pflag.Flag) {
			count++
			if ours[f.Name] == nil || ours[f.Name].DefValue != f.DefValue {
				t.Errorf("--%s is not as upstream's", f.Name)
			}
			delete(ours, f.Name)
		})
	}
	if count < 100 {
		t.Fatalf("upstream has %d flags only; the comparison is empty", count)
	}
	for name, f := range ours {
		if !strings.HasPrefix(name, "feature-") && name != control.CentralFlag && name != control.DynamicFlag {
			t.Errorf("--%s is not upstream's and not the feature lifecycle's: %s", name, f.Usage)
		}
	}
	for _, name := range []string{"feature-settle-period", "feature-grace-period", "feature-require-full-coverage", control.CentralFlag, control.DynamicFlag} {
		if ours[name] == nil {
			t.Errorf("--%s is missing", name)
		}
	}
}

func TestPeriodsAreChecked(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*transition.Settings)
		says   string
	}{
		"the defaults":      {func(*transition.Settings) {}, ""},
		"no grace":          {func(s *transition.Settings) { s.Grace = 0 }, ""},
		"negative grace":    {func(s *transition.Settings) { s.Grace = -time.Second }, "--feature-grace-period is -1s and has to be 0 or longer"},
		"no settle period":  {func(s *transition.Settings) { s.Settle = 0 }, "--feature-settle-period is 0s and has to be longer than 0"},
		"a negative settle": {func(s *transition.Settings) { s.Settle = -1 }, "--feature-settle-period"},
		"what has no flag":  {func(s *transition.Settings) { s.MaxBackoff = 0 }, "Lifecycle.MaxBackoff is 0s"},
	} {
		settings := transition.DefaultSettings()
		tc.change(&settings)
		var text string
		for _, err := range validateSettings(settings) {
			text += err.Error()
		}
		if (text == "") != (tc.says == "") || !strings.Contains(text, tc.says) {
			t.Errorf("%s: got %q, want it to say %q", name, text, tc.says)
		}
	}
}

// TestFlagsCountAsTheyAre: a controller takes 0 for what was left out, and a flag is not.
func TestFlagsCountAsTheyAre(t *testing.T) {
	for name, change := range map[string]func(*transition.Settings){
		"the defaults": func(*transition.Settings) {},
		"no grace":     func(s *transition.Settings) { s.Grace = 0 },
		"another one":  func(s *transition.Settings) { s.Grace = time.Minute },
	} {
		settings := transition.DefaultSettings()
		change(&settings)
		if got := explicit(settings).OrDefault(); got != settings {
			t.Errorf("%s: the controller has %+v, want %+v", name, got, settings)
		}
	}
}

// TestEveryGroupHasAPriority: a group without one gets no APIService, and its
// place in discovery is left to chance.
func TestEveryGroupHasAPriority(t *testing.T) {
	got := priorities()
	for gv, enabled := range controlplane.DefaultAPIResourceConfigSource().GroupVersionConfigs {
		if _, ok := got[gv]; enabled && !ok {
			t.Errorf("%s is served by default and has no priority", gv)
		}
	}
	ours := got[schema.GroupVersion(v1alpha1.SchemeGroupVersion)]
	for gv, priority := range got {
		if gv.Group != v1alpha1.GroupName && priority.Group <= ours.Group {
			t.Errorf("%s has priority %d, not above ours, %d", gv, priority.Group, ours.Group)
		}
	}
	if core := got[schema.GroupVersion{Version: "v1"}]; core.Group != 18000 {
		t.Errorf("the core group has priority %d", core.Group)
	}
}
