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

// Package transition decides what happens to a feature next. It is pure: Next
// maps a Feature and what a server gathered about it to the status that should
// be stored and the task that should be attempted. The controller calls it and
// executes the result. Nothing here has a client, reads a clock, logs or
// has a memory, so that crash points, several servers and
// mixed versions can be tested by enumeration.
//
// The states (KEP-3920, "Server flow"):
//
//	          servers agree on on                 last task done
//	 ┌───────────────────────────▶ TurningOn ───────────────────────┐
//	 │                              │     ▲                         ▼
//	Off            servers agree on │     │ servers agree           On
//	 ▲                          off ▼     │ on on                   │
//	 └─────────────────────────── TurningOff ◀──────────────────────┘
//	          last task done                   servers agree on off
//
//	            servers agree on            servers agree on
//	           a higher version             a lower version
//	On or Off ─────────────────▶ Upgrading ─────────────────▶ Downgrading ◀──── On or Off
//	     ▲                        │     ▲    a higher version  │     │   a lower version
//	     │     last task done     │     └──────────────────────┘     │   and the value is
//	     └────────────────────────┴──────────────────────────────────┘   the configured one
//
// Every transition begins with TaskWaitForUses, followed by the tasks that the
// author declared. A Feature without a state is adopted: it takes the
// configured value as its state, the cluster's version as its version, and no task
// runs. A version for which nothing is declared is taken over in any state, without
// a transition.
package transition
