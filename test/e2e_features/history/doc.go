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

// Package history records what etcd stored and what clients saw of a cluster, and judges it
// later, without the cluster: whether a state was false, a task early or lost, whether a
// transition began while servers disagreed, whether the report of a process that lives was
// deleted, or an object changed otherwise than by clearing a field; and whether each client
// saw what was stored, in order and without gaps between two events of an object, and was
// answered nothing older than what was known when it asked. A history is a file of one JSON record on each line. Each has the sum of
// all before it, and the last one their number, so that a file that was cut or damaged is
// refused and not judged.
package history
