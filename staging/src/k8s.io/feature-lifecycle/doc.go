/*
Copyright 2026 The Kubernetes Authors.

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

// Package featurelifecycle finishes feature gates: a gate that is turned off
// leaves nothing behind, and everybody can see who has it on (KEP-3920).
//
// A process wraps its gate (featuregate), takes the values that are set centrally
// (values), and reports what it found (report). A
// server, kube-apiserver or an operator, runs the server flow
// (lifecycle/controller): it publishes a Feature for each gate and drives every
// change of its value through waiting for uses and the tasks that the feature's
// author declared (lifecycle).
//
//	apis/features/v1alpha1  the API: Feature and FeatureReport
//	client                  generated clients, informers, listers
//	featuregate             the layer that notices what is asked
//	report                  one FeatureReport for each process
//	values                  values that are set in one place: taken, kept, followed
//	values/control          a server's side of them: which features, who permits it
//	values/rollout          which value a canary gives to an instance; pure
//	operator                all of it for an operator of its own, in three calls
//	until                   watches objects until something is so
//	intern                  equal lists of what reports say are held once
//	internal/retry          what failures mean, and how long to wait
//	lifecycle               what authors write: one literal for each feature
//	lifecycle/transition    decides, purely, what happens to a feature next
//	lifecycle/uses          who uses a feature, and whether that holds it; pure
//	lifecycle/leader        which server looks after a feature; pure
//	lifecycle/safety        whether a cluster may move up or down; pure
//	lifecycle/task          what transitions do; finds and removes leftovers
//	lifecycle/controller    gathers, lets transition decide, commits
//	examples/everywhere     asks whether a feature is on everywhere, for operators to copy
//	examples/gadgets        a small operator with a feature of its own, which runs
//
// The library works without any package of k8s.io/kubernetes.
package featurelifecycle
