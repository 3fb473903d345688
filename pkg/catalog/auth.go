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

package catalog

import (
	"k8s.io/feature-lifecycle/lifecycle"
	"k8s.io/kubernetes/pkg/features"
)

// auth are the features of SIG Auth.
func auth() []Entry {
	return []Entry{
		{Feature: lifecycle.Feature{
			// A volume of a Pod cannot be changed, and removing the source from
			// a template would roll its pods into ones without their trust
			// anchors: somebody has to decide (KEP-3920, story 4).
			Name:      features.ClusterTrustBundleProjection,
			OnDisable: lifecycle.WaitForNoneInPods("volume source clusterTrustBundle", "spec.volumes[*].projected.sources[*].clusterTrustBundle"),
			Control:   lifecycle.Central,
		}, Copies: templateCopies},
	}
}
