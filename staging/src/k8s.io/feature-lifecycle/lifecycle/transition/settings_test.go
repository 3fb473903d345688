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
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestSettingsDefaulted has its default, field by field, and nothing else has.
func TestSettingsDefaulted(t *testing.T) {
	for sentence, test := range map[string]struct {
		settings Settings
		change   func(*Settings)
	}{
		"nothing is set":     {change: func(*Settings) {}},
		"all are":            {settings: DefaultSettings(), change: func(*Settings) {}},
		"a settle period":    {settings: Settings{Settle: 30 * time.Second}, change: func(s *Settings) { s.Settle = 30 * time.Second }},
		"no grace":           {settings: func() (s Settings) { s.Grace = None; return s }(), change: func(s *Settings) { s.Grace = 0 }},
		"full coverage":      {settings: func() (s Settings) { s.RequireFullCoverage = true; return s }(), change: func(s *Settings) { s.RequireFullCoverage = true }},
		"nothing is kept":    {settings: Settings{KeepUnknownMinors: None}, change: func(s *Settings) { s.KeepUnknownMinors = 0 }},
		"a part of a canary": {settings: Settings{Canary: CanarySettings{Percent: 50}}, change: func(s *Settings) { s.Canary.Percent = 50 }},
		"what cannot work":   {settings: Settings{Settle: -time.Second}, change: func(s *Settings) { s.Settle = -time.Second }},
	} {
		want := DefaultSettings()
		test.change(&want)
		if diff := cmp.Diff(want, test.settings.OrDefault()); diff != "" {
			t.Errorf("%s: unexpected settings (-want +got):\n%s", sentence, diff)
		}
	}
}

// TestInvalidSettings are named with their value and what they have to be.
func TestInvalidSettings(t *testing.T) {
	for sentence, test := range map[string]struct {
		change func(*Settings)
		want   string
	}{
		"the defaults":                 {change: func(*Settings) {}},
		"no grace":                     {change: func(s *Settings) { s.Grace = 0 }},
		"nothing is kept":              {change: func(s *Settings) { s.KeepUnknownMinors = 0 }},
		"pauses that do not grow":      {change: func(s *Settings) { s.MaxBackoff, s.MaxBlockedBackoff = s.MinBackoff, s.MinBackoff }},
		"a negative grace":             {change: func(s *Settings) { s.Grace = -time.Minute }, want: "Grace is -1m0s and has to be 0 or longer"},
		"no settle period":             {change: func(s *Settings) { s.Settle = 0 }, want: "Settle is 0s and has to be longer than 0: reports need time to arrive"},
		"no period of reports":         {change: func(s *Settings) { s.ReportPeriod = 0 }, want: "ReportPeriod is 0s and has to be longer than 0: processes report that they have queried a feature up to a minute later"},
		"no pause":                     {change: func(s *Settings) { s.MinBackoff = 0 }, want: "MinBackoff is 0s and has to be longer than 0: a task that fails must not be tried without a pause"},
		"a longest pause that is less": {change: func(s *Settings) { s.MaxBackoff = 0 }, want: "MaxBackoff is 0s and has to be at least MinBackoff, 1s"},
		"and of blocked tasks":         {change: func(s *Settings) { s.MaxBlockedBackoff = -1 }, want: "MaxBlockedBackoff is -1ns and has to be at least MinBackoff, 1s"},
		"less than no versions":        {change: func(s *Settings) { s.KeepUnknownMinors = -2 }, want: "KeepUnknownMinors is -2 and has to be 0 or more minor versions"},
		"a negative count":             {change: func(s *Settings) { s.Canary.Count = -1 }, want: "Canary.Count is -1 and has to be 1 or more instances"},
		"more than all":                {change: func(s *Settings) { s.Canary.Percent = 101 }, want: "Canary.Percent is 101 and has to be from 1 to 100"},
		"a negative factor":            {change: func(s *Settings) { s.Canary.Factor = -1 }, want: "Canary.Factor is -1 and has to be 1 or more"},
		"no patience":                  {change: func(s *Settings) { s.Canary.Patience = -1 }, want: "Canary.Patience is -1ns and has to be longer than 0"},
		"less than no crashes":         {change: func(s *Settings) { s.Canary.CrashLoop = -1 }, want: "Canary.CrashLoop is -1 and has to be 1 or more crashes"},
		"a window of crashes":          {change: func(s *Settings) { s.Canary.CrashWindow = -1 }, want: "Canary.CrashWindow is -1ns and has to be longer than 0"},
	} {
		settings := DefaultSettings()
		test.change(&settings)
		var got string
		for _, invalid := range settings.Validate() {
			got += invalid.Error()
		}
		if got != test.want {
			t.Errorf("%s: got %q, want %q", sentence, got, test.want)
		}
	}
}
