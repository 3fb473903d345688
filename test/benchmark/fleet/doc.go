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

// Package fleet simulates the node components of a large cluster for benchmarks:
// Node objects, and for each of them a kubelet and a kube-proxy that report. A
// process runs the reporter that the real binaries run, with the identity of its node,
// and the follower of values, too, if the benchmark wants that (LookForValues, Ask); what
// it reports is what a real process of its component reported (Template). What is
// simulated is that the processes share one operating system process and some
// connections, and that their gates know no feature, or one.
package fleet
