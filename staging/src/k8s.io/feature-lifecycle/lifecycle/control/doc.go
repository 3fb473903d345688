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

// Package control is the side of a server that decides values for others: which of its
// features are Central and which are Dynamic (KEP-3920, "Values set centrally, values that
// change"). kube-apiserver calls it, and so does an operator whose own processes take the
// values of features from the API in its namespace. A process that only takes values needs
// package agent alone.
//
// A server reads Options from its command line (AddFlags) and checks them against the
// declarations of the features' authors (Validate). Its report has the control of each
// feature (Source), and the server itself takes only values that were set through the API
// (Follows). The server flow (lifecycle/controller) writes what all servers report into
// the Features. This package sends no request.
package control
