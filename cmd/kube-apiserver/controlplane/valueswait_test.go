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
	"context"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kubefake "k8s.io/client-go/kubernetes/fake"
	"k8s.io/feature-lifecycle/agent"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/feature-lifecycle/client/clientset/versioned/fake"
	"k8s.io/feature-lifecycle/featuregate"
	"k8s.io/feature-lifecycle/lifecycle/control"
	"k8s.io/kubernetes-features/pkg/featurelifecycle/reporting"
	controlplaneapiserver "k8s.io/kubernetes/pkg/controlplane/apiserver"
	"k8s.io/utils/ptr"
)

// saying makes a Feature whose status says something.
func saying(name string, control v1alpha1.FeatureControl, value bool, change ...func(*v1alpha1.Feature)) *v1alpha1.Feature {
	f := &v1alpha1.Feature{
		ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceSystem, Name: name},
		Status:     v1alpha1.FeatureStatus{Control: control, Configured: &v1alpha1.FeatureConfiguration{Value: value, Source: v1alpha1.SourceCommandLine}},
	}
	for _, c := range change {
		c(f)
	}
	return f
}

func disputed(f *v1alpha1.Feature) {
	meta.SetStatusCondition(&f.Status.Conditions, metav1.Condition{Type: v1alpha1.ConditionConsistent, Status: metav1.ConditionFalse,
		Reason: v1alpha1.ReasonServersDisagree, Message: "on in a, off in b"})
}

// held has each reason for which the server flow does not respond.
var held = map[string]func(*v1alpha1.Feature){
	"paused":    func(f *v1alpha1.Feature) { f.Spec.Paused = true },
	"upgrading": func(f *v1alpha1.Feature) { f.Status.State = v1alpha1.StateUpgrading },
	"mixed versions": func(f *v1alpha1.Feature) {
		meta.SetStatusCondition(&f.Status.Conditions, metav1.Condition{Type: v1alpha1.ConditionProgressing, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonMixedVersions, Message: "1.35 and 1.36"})
	},
}

func requested(value bool) func(*v1alpha1.Feature) {
	return func(f *v1alpha1.Feature) { f.Spec.Enabled = &value }
}

// TestReadyOnceFeaturesHaveValues measures how long a server that has Central
// on, and Dynamic off, is not ready. The status of the Features changes after a
// while.
func TestReadyOnceFeaturesHaveValues(t *testing.T) {
	const never = time.Hour
	resource := v1alpha1.SchemeGroupVersion.WithResource("features")
	both := control.Options{Central: []string{"Central"}, Dynamic: []string{"Dynamic"}}
	right := []*v1alpha1.Feature{saying("Central", v1alpha1.ControlCentral, true), saying("Dynamic", v1alpha1.ControlDynamic, false)}
	central := func(f *v1alpha1.Feature) []*v1alpha1.Feature { return []*v1alpha1.Feature{f, right[1]} }
	dynamic := func(f *v1alpha1.Feature) []*v1alpha1.Feature { return []*v1alpha1.Feature{right[0], f} }
	type wait struct {
		decides control.Options
		before  []*v1alpha1.Feature
		// correctedAfter is the time until the Features have this server's values;
		// looksAfter is the time until its server flow runs.
		correctedAfter, looksAfter time.Duration
		waits                      time.Duration
	}
	cases := map[string]wait{
		"nothing is named":                            {looksAfter: never, correctedAfter: never, waits: 0},
		"the Features say it already":                 {both, right, never, never, 0},
		"there are none yet":                          {both, nil, 2 * time.Second, time.Second, 2 * time.Second},
		"the control is another":                      {both, central(saying("Central", v1alpha1.ControlLocal, true)), 2 * time.Second, time.Second, 2 * time.Second},
		"nothing is configured":                       {both, central(saying("Central", v1alpha1.ControlCentral, true, func(f *v1alpha1.Feature) { f.Status.Configured = nil })), 2 * time.Second, time.Second, 2 * time.Second},
		"a central feature had another value":         {both, central(saying("Central", v1alpha1.ControlCentral, false)), 2 * time.Second, time.Second, 2 * time.Second},
		"a dynamic feature had another value":         {both, dynamic(saying("Dynamic", v1alpha1.ControlDynamic, true)), 2 * time.Second, time.Second, 2 * time.Second},
		"a dynamic feature has a requested value":     {both, dynamic(saying("Dynamic", v1alpha1.ControlDynamic, true, requested(true))), never, never, 0},
		"one that has just been requested":            {both, dynamic(saying("Dynamic", v1alpha1.ControlDynamic, false, requested(true))), never, never, 0},
		"a request is left over in a central feature": {both, central(saying("Central", v1alpha1.ControlCentral, false, requested(false))), 2 * time.Second, time.Second, 2 * time.Second},
		"no server answers":                           {both, nil, never, time.Second, valuesWaitTimeout},
		"servers differ, as they did before this one": {both, central(saying("Central", v1alpha1.ControlCentral, false, disputed)), never, time.Second, time.Second + disagreementPatience},
		"they differed until this one was there":      {both, central(saying("Central", v1alpha1.ControlCentral, false, disputed)), 2 * time.Second, time.Second, 2 * time.Second},
		"no flow corrects the earlier status":         {both, central(saying("Central", v1alpha1.ControlCentral, false, disputed)), never, never, valuesWaitTimeout},
		"one differs, of another nothing is known":    {both, central(saying("Central", v1alpha1.ControlCentral, false, disputed))[:1], never, time.Second, valuesWaitTimeout},
		"what it took from the API is not its own":    {both, []*v1alpha1.Feature{saying("Central", v1alpha1.ControlCentral, true), saying("Dynamic", v1alpha1.ControlDynamic, false)}, never, never, 0},
	}
	for name, hold := range held {
		cases[name+", with another value"] = wait{both, central(saying("Central", v1alpha1.ControlCentral, false, hold)), never, time.Second, time.Second + disagreementPatience}
		cases[name+", with the right value"] = wait{both, central(saying("Central", v1alpha1.ControlCentral, true, hold)), never, never, 0}
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				client := fake.NewClientset()
				features := client.FeaturesV1alpha1().Features(metav1.NamespaceSystem)
				write := func(list []*v1alpha1.Feature) {
					for _, f := range list {
						err := client.Tracker().Delete(resource, f.Namespace, f.Name)
						if err != nil && !apierrors.IsNotFound(err) {
							t.Error(err)
						}
						if err := client.Tracker().Add(f.DeepCopy()); err != nil {
							t.Error(err)
						}
					}
				}
				write(tc.before)
				looking := make(chan struct{})
				later := []*time.Timer{time.AfterFunc(tc.looksAfter, func() { close(looking) }), time.AfterFunc(tc.correctedAfter, func() { write(right) })}
				defer func() {
					for _, timer := range later {
						timer.Stop()
					}
				}()
				a := &valuesWait{
					decides: tc.decides, features: features, looking: looking,
					observe: func() []featuregate.Observation {
						return []featuregate.Observation{{Name: "Central", Enabled: true}, {Name: "Dynamic", Enabled: true, Overridden: true}, {Name: "Other", Enabled: true}}
					},
				}
				begun := time.Now()
				a.wait(t.Context())
				if got := time.Since(begun); got < tc.waits || got > tc.waits+2*valuesWaitPeriod {
					t.Errorf("ready after %s, want %s", got, tc.waits)
				}
			})
		})
	}
}

// TestAnEndingServerDoesNotWait for what its Features say.
func TestAnEndingServerDoesNotWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		a := &valuesWait{
			decides: control.Options{Central: []string{"Central"}}, features: fake.NewClientset().FeaturesV1alpha1().Features(metav1.NamespaceSystem),
			observe: func() []featuregate.Observation { return nil },
		}
		begun := time.Now()
		a.wait(ctx)
		if got := time.Since(begun); got != time.Second {
			t.Errorf("it went on after %s", got)
		}
	})
}

// TestReportNamesControl: this is where other servers read it.
func TestReportNamesControl(t *testing.T) {
	client := fake.NewClientset()
	decides := control.Options{Central: []string{atStart}, Dynamic: []string{"MaxUnavailableStatefulSet"}}
	reporter, err := newAgent(&lifecycleClients{features: client, kube: kubefake.NewSimpleClientset()}, "server-1", decides)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { reporting.Install().SetRemote(nil) })
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		reporter.Run(ctx)
	}()
	<-reporter.Started()
	cancel()
	<-ended
	report, err := client.FeaturesV1alpha1().FeatureReports(metav1.NamespaceSystem).Get(t.Context(), controlplaneapiserver.KubeAPIServer+".server-1", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]v1alpha1.FeatureControl{atStart: v1alpha1.ControlCentral, "MaxUnavailableStatefulSet": v1alpha1.ControlDynamic}
	listed := 0
	for _, f := range report.Spec.Features {
		if f.Control != want[f.Name] {
			t.Errorf("%s is %q, want %q", f.Name, f.Control, want[f.Name])
		}
		if f.Control != "" {
			listed++
		}
	}
	if all := len(reporting.Install().Observations()); listed != len(want) || len(report.Spec.Features) != all {
		t.Errorf("%d of %d features, %d of them with a control", len(report.Spec.Features), all, listed)
	}
}

// TestServerTakesRequestedValues, and only that (control.Options.Follows).
func TestServerTakesRequestedValues(t *testing.T) {
	const feature = "MaxUnavailableStatefulSet"
	for name, tc := range map[string]struct {
		source v1alpha1.FeatureValueSource
		wants  bool
	}{
		"through the API":   {v1alpha1.SourceAPI, true},
		"by servers' flags": {v1alpha1.SourceCommandLine, false},
	} {
		t.Run(name, func(t *testing.T) {
			client := fake.NewClientset(saying(feature, v1alpha1.ControlDynamic, true, func(f *v1alpha1.Feature) {
				f.Status.Configured.Source = tc.source
				f.Spec.Enabled = ptr.To(true)
			}))
			server, err := newAgent(&lifecycleClients{features: client, kube: kubefake.NewSimpleClientset()}, "server-1", control.Options{Dynamic: []string{feature}})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { reporting.Install().SetRemote(nil) })
			server.Load(t.Context())
			told := false
			for _, outcome := range reporting.Install().RemoteOutcomes() {
				told = told || outcome.Feature == feature
			}
			if told != tc.wants {
				t.Errorf("the gate is told %t", told)
			}
		})
	}
	// Without dynamic features the server takes no values: Load sends no request.
	client := fake.NewClientset()
	server, err := newAgent(&lifecycleClients{features: client, kube: kubefake.NewSimpleClientset()}, "server-1", control.Options{Central: []string{feature}})
	if err != nil {
		t.Fatal(err)
	}
	if origin := server.Load(t.Context()); origin != agent.FromNowhere || len(client.Actions()) > 0 {
		t.Errorf("without dynamic features: values from %s, and requests %v", origin, client.Actions())
	}
}
