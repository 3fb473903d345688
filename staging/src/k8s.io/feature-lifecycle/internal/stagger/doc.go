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

// Package stagger computes when processes that got a value at the same moment report it:
// one after another, so that their reports do not delay the value of others. The agent
// waits for as long, and the server flow predicts from it how long reports may be missing.
// The rates are part of the protocol (apis/features/v1alpha1). The package never waits.
package stagger
