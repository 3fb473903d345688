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

// Package observe reads the values of feature gates from a cluster that does not have the
// API features.k8s.io, as the caller and without changing anything:
//
//   - kube-apiservers by their metrics and flags, each of several behind one address;
//   - kubelets through the proxy of their Nodes, by metrics and configuration, and by flags
//     where the configuration is not shown;
//   - kube-controller-manager, kube-scheduler and kube-proxy through the proxy of their
//     Pods, and where they do not answer by the command lines of these Pods and by
//     ConfigMaps;
//   - what kubeadm's ConfigMaps have for nodes and control planes that join.
//
// Every value has its source. A value that was not observed is not made up: what a
// process was not told follows from its version, where the history of gates has that one,
// and is marked so; all else is a gap, with what is missing to close it.
//
// What only servers with the API know, such as who queries a gate, states and tasks, is
// not observed.
package observe
