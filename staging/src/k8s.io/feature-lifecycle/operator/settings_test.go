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

package operator

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/feature-lifecycle/lifecycle/transition"
	"k8s.io/utils/ptr"
)

// TestUnsetSettingsGetDefaults checks each field.
func TestUnsetSettingsGetDefaults(t *testing.T) {
	for sentence, test := range map[string]struct {
		settings Settings
		change   func(*transition.Settings)
	}{
		"nothing is set":  {change: func(*transition.Settings) {}},
		"a settle period": {settings: Settings{Settle: 30 * time.Second}, change: func(s *transition.Settings) { s.Settle = 30 * time.Second }},
		"a grace period":  {settings: Settings{Grace: time.Hour}, change: func(s *transition.Settings) { s.Grace = time.Hour }},
		"no grace":        {settings: Settings{Grace: None}, change: func(s *transition.Settings) { s.Grace = 0 }},
		"nothing is kept": {settings: Settings{KeepUnknownMinors: None}, change: func(s *transition.Settings) { s.KeepUnknownMinors = 0 }},
		"pauses": {settings: Settings{MinBackoff: 2 * time.Second, MaxBackoff: 3 * time.Second, MaxBlockedBackoff: 4 * time.Second}, change: func(s *transition.Settings) {
			s.MinBackoff, s.MaxBackoff, s.MaxBlockedBackoff = 2*time.Second, 3*time.Second, 4*time.Second
		}},
		"a way to clean": {settings: Settings{HowToClean: "ask us"}, change: func(s *transition.Settings) { s.HowToClean = "ask us" }},
		"a part of a canary": {settings: Settings{Canary: CanarySettings{Count: 5, CrashWindow: time.Hour}}, change: func(s *transition.Settings) {
			s.Canary.Count, s.Canary.CrashWindow = 5, time.Hour
		}},
	} {
		t.Run(sentence, func(t *testing.T) {
			want := transition.DefaultSettings()
			// kube-apiserver does not clean for an operator.
			want.HowToClean = onAndOff
			test.change(&want)
			if diff := cmp.Diff(want, test.settings.flow().OrDefault()); diff != "" {
				t.Errorf("unexpected settings (-want +got):\n%s", diff)
			}
		})
	}
}

// TestSettingsReachTheServerFlow: a replica that is gone holds a transition for the grace
// period although nothing but the settle period was set.
func TestSettingsReachTheServerFlow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t)
		keepSpec(s.features)
		config := valid(t)
		config.Settings = Settings{Settle: 30 * time.Second}
		r, stop := s.running(config)
		other := valid(t)
		other.Instance = "b"
		gone, end := s.running(other)
		ask := func(value bool) {
			t.Helper()
			f, err := s.feature()
			if err != nil {
				t.Fatal(err)
			}
			f.Spec.Enabled = ptr.To(value)
			if _, err := s.features.FeaturesV1alpha1().Features("widgets").Update(t.Context(), f, metav1.UpdateOptions{}); err != nil {
				t.Fatal(err)
			}
		}
		state := func() v1alpha1.FeatureState {
			t.Helper()
			f, err := s.feature()
			if err != nil {
				t.Fatal(err)
			}
			return f.Status.State
		}
		ask(true)
		pass(2 * time.Minute)
		if got := state(); got != v1alpha1.StateOn {
			t.Fatalf("the feature is %s", got)
		}
		// It uses the feature, and its process is gone.
		if !other.Gate.Enabled(colors) {
			t.Error("the replica has the feature off")
		}
		pass(2 * time.Minute)
		if err := end(); err != nil {
			t.Fatal(err)
		}
		if err := gone.Abandon(); err != nil {
			t.Fatal(err)
		}
		pass(2 * leaseDuration)
		ask(false)
		pass(2 * time.Minute)
		if got := state(); got != v1alpha1.StateTurningOff {
			t.Errorf("within the grace period of a replica that is gone the feature is %s", got)
		}
		pass(5 * time.Minute)
		if got := state(); got != v1alpha1.StateOff {
			t.Errorf("after the grace period the feature is %s", got)
		}
		if err := errors.Join(stop(), r.Close(context.WithoutCancel(t.Context()))); err != nil {
			t.Error(err)
		}
	})
}
