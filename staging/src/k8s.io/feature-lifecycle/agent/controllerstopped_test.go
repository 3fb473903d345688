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
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
)

// TestControllerStoppedIsWrittenOnceAndKept: also to a server that fails at first, and in
// all later reports. The next process of the instance has no such annotation.
func TestControllerStoppedIsWrittenOnceAndKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := run(t, nil)
		f.pass(3 * time.Second)
		var down atomic.Bool
		down.Store(true)
		f.server.PrependReactor("update", "featurereports", func(clienttesting.Action) (bool, runtime.Object, error) {
			return down.Load(), nil, apierrors.NewServiceUnavailable("down")
		})
		says := func() string { return f.report().Annotations[v1alpha1.AnnotationControllerStopped] }
		f.reporter.MarkControllerStopped()
		f.pass(3 * time.Second)
		if got := says(); got != "" {
			t.Fatalf("the server takes nothing, and the annotation is %q", got)
		}
		down.Store(false)
		f.pass(maxReportBackoff)
		if got := says(); got != "true" {
			t.Fatalf("the annotation is %q", got)
		}
		before := f.writes()
		f.reporter.MarkControllerStopped()
		f.pass(5 * time.Minute)
		if n := f.writes() - before; n != 0 {
			t.Errorf("it says so in %d writes more", n)
		}
		f.source.see(true, "A")
		f.pass(time.Minute)
		if got := f.report(); says() != "true" || !got.Spec.Features[0].Enabled {
			t.Errorf("later it says %+v, %+v", got.Annotations, got.Spec)
		}
		f.end()
		next, err := NewReporter(ReporterConfig{Namespace: "ns", Component: "comp", Instance: "i1", Source: f.source, Clients: Clients{Features: f.server, Kube: f.kube}})
		if err != nil {
			t.Fatal(err)
		}
		f.reporter = next
		f.start()
		defer f.end()
		f.pass(3 * time.Second)
		if got := says(); got != "" {
			t.Errorf("the next process's annotation is %q", got)
		}
	})
}

func TestControllerStoppedBeforeFirstReportIsInIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := prepare(t, nil)
		f.reporter.MarkControllerStopped()
		f.start()
		defer f.end()
		f.pass(3 * time.Second)
		if got := f.report().Annotations[v1alpha1.AnnotationControllerStopped]; got != "true" || f.writes() != 1 {
			t.Errorf("after %d writes the annotation is %q, want it with the first", f.writes(), got)
		}
	})
}
