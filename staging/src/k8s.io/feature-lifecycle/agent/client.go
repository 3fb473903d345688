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
	"k8s.io/client-go/rest"
	"k8s.io/feature-lifecycle/internal/backoff"
)

// ClientConfig returns the configuration of a process's clients for its report and its
// values: the given one with protobuf, and without client-go's own retries, since an agent
// has pauses of its own, which grow and are random. A change sends some events to thousands
// of processes, and JSON takes seven times as long to decode (BenchmarkReadFeature).
func ClientConfig(config *rest.Config) *rest.Config { return backoff.ClientConfig(config) }
