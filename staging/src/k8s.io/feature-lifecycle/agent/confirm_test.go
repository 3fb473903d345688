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

package agent

import (
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clienttesting "k8s.io/client-go/testing"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
)

// confirming is a reporter whose server takes confirmations, or answers with an error.
type confirming struct {
	*fixture
	answer atomic.Pointer[error]
}

// answers makes the server answer confirmations with an error, nil for none.
func (c *confirming) answers(err error) {
	c.answer.Store(nil)
	if err != nil {
		c.answer.Store(&err)
	}
}

func runConfirming(t *testing.T, change func(*ReporterConfig)) *confirming {
	t.Helper()
	c := &confirming{fixture: prepare(t, change)}
	c.server.PrependReactor("create", "featurereports", func(action clienttesting.Action) (bool, runtime.Object, error) {
		if action.GetSubresource() != "confirmation" {
			return false, nil, nil
		}
		if err := c.answer.Load(); err != nil {
			return true, nil, *err
		}
		confirmation := action.(clienttesting.CreateAction).GetObject().(*v1alpha1.FeatureConfirmation).DeepCopy()
		report := c.report().DeepCopy()
		for i := range report.Spec.Features {
			for _, v := range confirmation.Spec.Values {
				if f := &report.Spec.Features[i]; f.Name == v.Name {
					f.Enabled, f.Overridden, f.SwitchTime = v.Enabled, v.Overridden, v.SwitchTime
				}
			}
		}
		report.ResourceVersion += "1"
		confirmation.ResourceVersion = report.ResourceVersion
		return true, confirmation, c.server.Tracker().Update(v1alpha1.SchemeGroupVersion.WithResource("featurereports"), report, "ns")
	})
	c.server.PrependReactor("update", "featurereports", func(action clienttesting.Action) (bool, runtime.Object, error) {
		// A server refuses it, and the process has to read the report.
		version := action.(clienttesting.UpdateAction).GetObject().(*v1alpha1.FeatureReport).ResourceVersion
		if stored := c.report().ResourceVersion; version != stored {
			t.Errorf("a report of version %q is sent, and %q is stored", version, stored)
		}
		return false, nil, nil
	})
	c.start()
	c.pass(time.Hour)
	c.server.ClearActions()
	return c
}

// requests are what the reporter has written since the last call, in order.
func (c *confirming) requests() (verbs []string) {
	for _, a := range c.server.Actions() {
		switch {
		case a.GetSubresource() != "":
			verbs = append(verbs, a.GetSubresource())
		case a.GetVerb() == "create", a.GetVerb() == "update":
			verbs = append(verbs, a.GetVerb())
		}
	}
	c.server.ClearActions()
	return verbs
}

func (c *confirming) wants(what string, enabled bool, want ...string) {
	c.t.Helper()
	if diff := cmp.Diff(want, c.requests()); diff != "" {
		c.t.Errorf("%s: unexpected writes (-want +got):\n%s", what, diff)
	}
	if got := c.report(); got.Spec.Features[0].Enabled != enabled {
		c.t.Errorf("%s: the report has %+v, want A=%t", what, got.Spec.Features, enabled)
	}
}

func onNode(c *ReporterConfig) { c.NodeName = "n1" }

// TestValuesAreConfirmed: changed values alone are sent as such, and later reports are
// based on what was confirmed.
func TestValuesAreConfirmed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := runConfirming(t, onNode)
		defer c.end()
		c.source.see(true, "A")
		c.pass(time.Second)
		c.wants("a value", true, "confirmation")
		c.source.see(false, "A")
		c.source.see(true, "B")
		c.pass(v1alpha1.ReportPeriod + batchJitter)
		if got := c.requests(); len(got) == 0 || got[len(got)-1] != "update" || c.names() != "A,B" {
			t.Errorf("a feature that was queried first, too: %v, %s; want the whole report at last", got, c.names())
		}
		last := c.report().ResourceVersion
		c.pass(checkPeriod + checkPeriod/5)
		c.wants("a check", false)
		if got := c.report().ResourceVersion; got != last {
			t.Errorf("the report has the version %s after a check, want %s", got, last)
		}
	})
}

// TestMomentIsConfirmed: that a process waits for it, and its value then.
func TestMomentIsConfirmed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := runConfirming(t, onNode)
		defer c.end()
		moment := time.Now().Add(time.Minute)
		c.source.wait(moment, "A")
		c.pass(time.Second)
		c.wants("a moment", false, "confirmation")
		if got, want := c.report().Spec.Features[0].SwitchTime, moment.UTC().Format(time.RFC3339); got != want {
			t.Errorf("the report has the moment %q, want %q", got, want)
		}
		c.source.see(true, "A")
		c.pass(time.Second)
		c.wants("at the moment", true, "confirmation")
		if got := c.report().Spec.Features[0].SwitchTime; got != "" {
			t.Errorf("the report still has the moment %q", got)
		}
	})
}

// TestWhatIsNotConfirmed is reported as a whole.
func TestWhatIsNotConfirmed(t *testing.T) {
	for name, change := range map[string]func(*ReporterConfig){
		"a process with a Lease": nil,
		"a server":               func(c *ReporterConfig) { c.NodeName, c.ListAll = "n1", true },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := runConfirming(t, change)
				defer c.end()
				c.source.see(true, "A")
				c.pass(time.Second)
				c.wants(name, true, "update")
			})
		})
	}
}

// TestRefusedConfirmations: the whole report follows at once, and a server without
// confirmations is not asked for some time.
func TestRefusedConfirmations(t *testing.T) {
	reports := v1alpha1.Resource("featurereports")
	for name, tc := range map[string]struct {
		answer error
		asks   bool
	}{
		"another process's report": {apierrors.NewConflict(reports, "comp.i1", errors.New("p2 has written it")), true},
		"an older server":          {apierrors.NewNotFound(reports, "comp.i1"), false},
		"an older role":            {apierrors.NewForbidden(reports, "comp.i1", errors.New("no")), false},
		"a server without posts":   {apierrors.NewMethodNotSupported(reports, "create"), false},
		"a stricter server":        {apierrors.NewInvalid(schema.GroupKind{Kind: "FeatureConfirmation"}, "comp.i1", nil), false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := runConfirming(t, onNode)
				defer c.end()
				c.answers(tc.answer)
				c.source.see(true, "A")
				c.pass(time.Second)
				c.wants("refused", true, "confirmation", "update")
				c.answers(nil)
				c.source.see(false, "A")
				c.pass(time.Second)
				next := "update"
				if tc.asks {
					next = "confirmation"
				}
				c.wants("the next value", false, next)
				c.pass(checkPeriod)
				c.server.ClearActions()
				c.source.see(true, "A")
				c.pass(time.Second)
				c.wants("later", true, "confirmation")
			})
		})
	}
}

// TestConfirmationsAreRetried: a server that is busy is sent no whole report instead.
func TestConfirmationsAreRetried(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := runConfirming(t, onNode)
		defer c.end()
		c.answers(apierrors.NewTooManyRequests("busy", 1))
		c.source.see(true, "A")
		c.pass(100 * time.Millisecond)
		c.wants("busy", false, "confirmation")
		c.answers(nil)
		c.pass(maxReportBackoff)
		c.wants("retried", true, "confirmation")
	})
}
