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
	"sync"

	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/legacyregistry"
)

const subsystem = "feature_lifecycle"

// Results of a reporter's requests, in the metric and the log.
const (
	resultDone      = "Done"
	resultFailed    = "Failed"
	resultMissing   = "Missing"
	resultForbidden = "Forbidden"
)

var (
	requestsTotal = metrics.NewCounterVec(&metrics.CounterOpts{
		Subsystem:      subsystem,
		Name:           "report_requests_total",
		Help:           "Times that this process wrote or checked its feature report, by result: Done, Failed, Missing (the server does not have the API) or Forbidden.",
		StabilityLevel: metrics.ALPHA,
	}, []string{"result"})

	duplicateHoldersTotal = metrics.NewCounter(&metrics.CounterOpts{
		Subsystem:      subsystem,
		Name:           "report_duplicate_holders_total",
		Help:           "Times that this process found the Lease of its feature report renewed by another process, which reports under the same name.",
		StabilityLevel: metrics.ALPHA,
	})

	remoteValues = metrics.NewGaugeVec(&metrics.GaugeOpts{
		Subsystem:      subsystem,
		Name:           "remote_values",
		Help:           "1 for each feature that is set centrally, by why this process uses the value (InEffect) or does not: Outdated, ExplicitlySet, Unknown, Locked, KeptLocal, DependencyViolated, QueriedBefore.",
		StabilityLevel: metrics.ALPHA,
	}, []string{"feature", "reason"})

	remoteValuesOrigin = metrics.NewGaugeVec(&metrics.GaugeOpts{
		Subsystem:      subsystem,
		Name:           "remote_values_origin",
		Help:           "1 for where this process has the values of features from that are set centrally: Server, File or None.",
		StabilityLevel: metrics.ALPHA,
	}, []string{"origin"})
)

// A process has one registry, so metrics are registered once.
var (
	registerReporterMetrics = sync.OnceFunc(func() { legacyregistry.MustRegister(requestsTotal, duplicateHoldersTotal) })
	registerSyncerMetrics   = sync.OnceFunc(func() { legacyregistry.MustRegister(remoteValues, remoteValuesOrigin) })
)
