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

// Package operator puts the parts of this library together for an operator with
// features of its own: a replica takes the values that are set centrally, reports the
// features that it queries and their values, and runs the server flow of its features in its own namespace
// (KEP-3920, story 7). For anything else, such as an agent on every node, use the
// packages below: agent, lifecycle/controller.
//
//	replica, err := operator.New(operator.Config{...})  // all errors of the configuration, before anything runs
//	replica.Load(ctx)                                   // values are final now, and code may query the gate
//	go replica.Start(ctx)                               // or add it to a Manager of controller-runtime
//	...                                                 // the operator's own work, until it ends
//	replica.Close(ctx)                                  // the replica no longer uses features
//
// On a cluster without the API features.k8s.io the gate has the values of the command
// line, nothing is reported and no flow runs. That is no error.
package operator
