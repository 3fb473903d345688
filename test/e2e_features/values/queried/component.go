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

// Package queried holds that no question for a feature goes past the layer: not
// through the process's gates, not through the registry that parses
// --feature-gates, not through client-go's, and not through a gate that was
// captured while packages were initialized. Real components run with a spy below
// the layer; what upstream's own gate recorded has to be in the layer's record.
package queried

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/spf13/cobra"

	"k8s.io/apimachinery/pkg/util/sets"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/component-base/cli"
	"k8s.io/component-base/featuregate"
	"k8s.io/kubernetes-features/cmd/kube-apiserver/controlplane"
	"k8s.io/kubernetes-features/pkg/featurelifecycle/reporting"
	controllermanager "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	proxy "k8s.io/kubernetes/cmd/kube-proxy/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
	kubelet "k8s.io/kubernetes/cmd/kubelet/app"
)

// recordsDir names the directory in which components write what was asked.
const recordsDir = "KUBE_FEATURES_ASKED_DIR"

// record is what was asked of a process's gate.
type record struct {
	// Upstream is what the wrapped gate itself recorded; Layer what the layer
	// did.
	Upstream, Layer []string
}

// upstreamGate is all that upstream's gate is.
type upstreamGate interface {
	featuregate.MutableVersionedFeatureGate
	featuregate.MutableVersionedFeatureGateWithLogger
}

// spy is between the layer and the process's gate. It keeps AddMetrics, which
// asks for every feature, out of upstream's record.
type spy struct {
	upstreamGate
	// queriedFeatures is upstream's own set of features that were asked for
	// (component-base/featuregate/feature_gate.go). The layer looks for that
	// name.
	queriedFeatures *atomic.Value
}

func newSpy(gate upstreamGate) *spy {
	field := reflect.ValueOf(gate).Elem().FieldByName("queriedFeatures")
	return &spy{gate, (*atomic.Value)(unsafe.Pointer(field.UnsafeAddr()))}
}

func (s *spy) AddMetrics() {
	before := s.queriedFeatures.Load()
	s.upstreamGate.AddMetrics()
	s.queriedFeatures.Store(before)
}

// components are the binaries that this test's executable can be, by its name.
func components() map[string]func() int {
	main := func(component reporting.Component, build func() *cobra.Command) func() int {
		return func() int { return reporting.Main(component, build) }
	}
	return map[string]func() int{
		"kube-apiserver": func() int {
			reporting.Install()
			return cli.Run(controlplane.NewCommand())
		},
		"kube-controller-manager": main(reporting.Component{Name: "kube-controller-manager"}, controllermanager.NewControllerManagerCommand),
		"kube-scheduler":          main(reporting.Component{Name: "kube-scheduler"}, func() *cobra.Command { return scheduler.NewSchedulerCommand() }),
		"kubelet":                 main(reporting.Component{Name: "kubelet", Node: true}, func() *cobra.Command { return kubelet.NewKubeletCommand(context.Background()) }),
		"kube-proxy":              main(reporting.Component{Name: "kube-proxy", Node: true}, proxy.NewProxyCommand),
	}
}

// run runs a component with the spy below its layer, and writes what is asked
// down until it ends.
func run(name string, main func() int) int {
	gate, ok := utilfeature.DefaultMutableFeatureGate.(upstreamGate)
	if !ok {
		fmt.Fprintf(os.Stderr, "the process's gate is a %T\n", utilfeature.DefaultMutableFeatureGate)
		return 1
	}
	spy := newSpy(gate)
	utilfeature.DefaultMutableFeatureGate = spy
	layer := reporting.Install()
	go func() {
		for range time.Tick(200 * time.Millisecond) {
			r := record{}
			// The layer's record second: what is asked meanwhile is in both.
			for feature := range spy.queriedFeatures.Load().(sets.Set[featuregate.Feature]) {
				r.Upstream = append(r.Upstream, string(feature))
			}
			for _, o := range layer.Observations() {
				if o.Queried {
					r.Layer = append(r.Layer, o.Name)
				}
			}
			if err := r.write(filepath.Join(os.Getenv(recordsDir), name+".json")); err != nil {
				fmt.Fprintln(os.Stderr, "writing down what was asked:", err)
				os.Exit(1)
			}
		}
	}()
	return main()
}

func (r record) write(file string) error {
	data, err := json.Marshal(r)
	if err != nil {
		return err
	}
	if err := os.WriteFile(file+".new", data, 0o644); err != nil {
		return err
	}
	return os.Rename(file+".new", file)
}
