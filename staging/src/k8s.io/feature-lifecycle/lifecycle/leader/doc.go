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

// Package leader decides which server leads a feature. It is pure: the controller calls
// it with the servers it considers alive, and nothing here has a client or state.
//
// Every server computes the same answer from the same set, so that no election traffic
// is needed. Two servers that see different sets may both act as leader. That is
// harmless, because every write carries a resourceVersion and tasks are idempotent
// (KEP-3920, "Leader").
package leader
