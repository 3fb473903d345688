/*
Copyright 2026 The Kubernetes Authors.

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

package report

import (
	"sync"

	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/legacyregistry"
)

// Results of a reporter's requests, as the metric and the log tell them apart.
const (
	resultDone      = "Done"
	resultFailed    = "Failed"
	resultMissing   = "Missing"
	resultForbidden = "Forbidden"
)

var requestsTotal = metrics.NewCounterVec(&metrics.CounterOpts{
	Subsystem:      "feature_lifecycle",
	Name:           "report_requests_total",
	Help:           "Times that this process wrote or checked its feature report, by result: Done, Failed, Missing (the server does not have the API) or Forbidden.",
	StabilityLevel: metrics.ALPHA,
}, []string{"result"})

var rivalsTotal = metrics.NewCounter(&metrics.CounterOpts{
	Subsystem:      "feature_lifecycle",
	Name:           "report_rivals_total",
	Help:           "Times that this process found the Lease of its feature report renewed by another process, which reports under the same name.",
	StabilityLevel: metrics.ALPHA,
})

// registerMetrics registers them once: a process has one registry.
var registerMetrics = sync.OnceFunc(func() { legacyregistry.MustRegister(requestsTotal, rivalsTotal) })
