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
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilversion "k8s.io/apimachinery/pkg/util/version"
	"k8s.io/client-go/kubernetes"
	"k8s.io/feature-lifecycle/client/clientset/versioned"
	"k8s.io/feature-lifecycle/featuregate"
	"k8s.io/utils/clock"
)

// Source provides what a reporter observes. *featuregate.Gate implements it.
type Source interface {
	Observations() []featuregate.Observation
	News() <-chan struct{}
	EmulationVersion() *utilversion.Version
}

// Clients are what a reporter needs to reach the server. Their configuration should be one
// of ClientConfig.
type Clients struct {
	// Features writes the report.
	Features versioned.Interface
	// Kube reads the Node and renews the Lease.
	Kube kubernetes.Interface
}

// ReporterConfig configures a Reporter.
type ReporterConfig struct {
	// Namespace contains the report: kube-system for Kubernetes' own processes.
	Namespace string
	// Component and Instance identify the process. The name of the report is
	// <component>.<instance>.
	Component, Instance string
	// NodeName is the node of a node component, "" for other processes. The report then
	// belongs to the Node, is deleted with it, and the process counts as alive while the
	// Node is Ready.
	NodeName string
	// BinaryVersion is the version of the binary, for example v1.36.3.
	BinaryVersion string
	// ListAll reports every gate that the process knows. Servers set it.
	ListAll bool
	// LeaseNamespace contains the small Lease, with the name of the report, that a
	// process without NodeName renews; "" means Namespace. It is kube-feature-lease for
	// reports in kube-system, except that of kube-apiserver.
	LeaseNamespace string
	// Owner returns the owner of the report, and of its Lease if that is in the same
	// namespace, so that they are garbage-collected with it. It is called before the first
	// report, once the server is known to take reports, until it returns no error. Its
	// errors are handled like those of a report that could not be written. A process with
	// NodeName must not set it; nil means no owner.
	Owner func(context.Context) (*metav1.OwnerReference, error)
	// Source is the process's feature gate.
	Source Source
	// Clients reach the server. They may be left out if Connect is set.
	Clients Clients
	// Connect returns Clients, for a process that gets its way to the server late. Run
	// calls it until it succeeds; an error that wraps ErrNoServer ends Run.
	Connect func() (Clients, error)
	// Peers returns how many processes have to report a feature's value when it changes
	// for all of them at once, as Syncer.Peers does. They pace their reports, so that all
	// get a value before the reports of those that have it. It is called from Run; nil
	// means few.
	Peers func(feature string) int
	// Throttled returns true if thousands of processes seem to start with this one, as
	// Syncer.Throttled does. The first report of a process on a node is then written at a
	// random time within 45 seconds. It is called once, from Run; nil means false.
	Throttled func() bool
	// Forbidden is called when the server refuses the report because permissions are
	// missing. It must not block; nil means that nothing is called.
	Forbidden func()
	// Clock is the time; nil means the real one.
	Clock clock.WithTicker
}
