//go:build linux

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

package fleet

import (
	"context"
	"net"
	"os"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilversion "k8s.io/apimachinery/pkg/util/version"
	clienttesting "k8s.io/client-go/testing"
	testingclock "k8s.io/utils/clock/testing"

	"k8s.io/feature-lifecycle/agent"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/feature-lifecycle/client/clientset/versioned"
	"k8s.io/feature-lifecycle/client/clientset/versioned/fake"
)

// TestFollowersSendRequestsOfSyncers: Look stands in for them.
func TestFollowersSendRequestsOfSyncers(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	sent := make(chan metav1.ListOptions)
	client := fake.NewClientset()
	client.PrependReactor("list", "features", func(action clienttesting.Action) (bool, runtime.Object, error) {
		select {
		case sent <- action.(clienttesting.ListActionImpl).ListOptions:
		case <-ctx.Done():
		}
		return true, &v1alpha1.FeatureList{ListMeta: metav1.ListMeta{ResourceVersion: "5"}}, nil
	})
	clock := testingclock.NewFakeClock(time.Now())
	syncer, err := agent.NewSyncer(agent.SyncerConfig{
		Namespace: metav1.NamespaceSystem, Component: Kubelet, Instance: "node", Gate: emptyGate(utilversion.MustParseMajorMinor("1.36")),
		Connect: func() (versioned.Interface, error) { return client, nil }, Clock: clock,
	})
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		syncer.Load(ctx)
		syncer.Run(ctx)
	}()
	for _, seen := range []string{"", "5"} {
		var got metav1.ListOptions
		for asked := false; !asked; {
			select {
			case got = <-sent:
				asked = true
			case <-ctx.Done():
				t.Fatal("the syncer does not list")
			case <-time.After(10 * time.Millisecond):
				clock.Step(time.Second)
			}
		}
		if diff := cmp.Diff(lookOptions(seen), got); diff != "" {
			t.Errorf("having seen %q (-Look +syncer):\n%s", seen, diff)
		}
	}
	cancel()
	<-ended
}

// TestLookingAtRestOutlivesAServerInTrouble: a syncer retries later, and so does its
// stand-in.
func TestLookingAtRestOutlivesAServerInTrouble(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	client := fake.NewClientset()
	asked, told := 0, false
	client.PrependReactor("list", "features", func(action clienttesting.Action) (bool, runtime.Object, error) {
		// One after the other: the fake holds a lock meanwhile.
		version := action.(clienttesting.ListActionImpl).ListOptions.ResourceVersion
		switch asked++; {
		case version != "" && asked <= 3:
			t.Errorf("look %d says %q, and nothing was answered before", asked, version)
		case version == "5":
			told = true
			cancel()
		case asked == 1:
			return true, nil, apierrors.NewServiceUnavailable("starting")
		case asked == 2:
			return true, nil, &net.OpError{Op: "dial", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}
		}
		return true, &v1alpha1.FeatureList{ListMeta: metav1.ListMeta{ResourceVersion: "5"}}, nil
	})
	// So many that each has its turn soon.
	f := &Fleet{processes: slices.Repeat([]*Process{{clients: &clients{values: client}}}, 20_000)}
	if err := f.Look(ctx); err != nil {
		t.Error(err)
	}
	if !told {
		t.Errorf("none of %d looks says what was answered before", asked)
	}
	if err := (&Fleet{}).Look(ctx); err != nil {
		t.Errorf("a fleet without processes: %v", err)
	}
}

// TestLookingAtRestSeesAServerThatIsNotThere: nothing would be measured.
func TestLookingAtRestSeesAServerThatIsNotThere(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	client := fake.NewClientset()
	asked := 0
	client.PrependReactor("list", "features", func(clienttesting.Action) (bool, runtime.Object, error) {
		// So many do not run at once: the first have had their answers.
		if asked++; asked == 100 {
			cancel()
		}
		return true, nil, apierrors.NewServiceUnavailable("gone")
	})
	f := &Fleet{processes: slices.Repeat([]*Process{{clients: &clients{values: client}}}, 20_000)}
	if err := f.Look(ctx); !apierrors.IsServiceUnavailable(err) {
		t.Errorf("the error is %v", err)
	}
}
