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

// +k8s:deepcopy-gen=package
// +k8s:protobuf-gen=package
// +k8s:openapi-gen=true
// +k8s:openapi-model-package=io.k8s.feature-lifecycle.apis.features.v1alpha1

// +groupName=features.k8s.io

// Package v1alpha1 is the v1alpha1 version of the features.k8s.io API: Feature
// describes the configured value of a gate and the observed state of the
// cluster, FeatureReport the values that one process observed for its gates
// (KEP-3920).
package v1alpha1
