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

// Package rollout decides which value an instance takes from a Feature: the requested one,
// the previous one while a canary leaves the instance out, or none (KEP-3920, "Values set
// centrally, values that change"). Package agent calls it in components, and the server
// flow and kubectl feature in order to predict what components do. ValueOf derives the
// FeatureValue of a Feature, from which processes that follow a value take the same. It is
// pure: it imports no client and logs nothing.
package rollout
