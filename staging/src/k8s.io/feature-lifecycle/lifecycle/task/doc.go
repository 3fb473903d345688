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

// Package task has the tasks that a feature's author can declare: what a
// transition does after its users agree. Each task finds leftovers without
// changing anything (Find) and removes them (Run). The controller
// calls both; authors use the constructors that package lifecycle re-exports.
//
// A task changes objects through the API. In kube-apiserver, where Clients.Editor is set,
// ClearField edits them where they are stored instead, one write for each object, and
// leaves to the API what the Editor returns a *ThroughAPIError for.
//
// Every task is idempotent: two servers may run it at once, and a server that
// restarts it after a crash finds less to do. Nothing in this package writes
// a Feature.
package task
