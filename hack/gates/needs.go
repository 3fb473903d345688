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

package main

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
	utilversion "k8s.io/apimachinery/pkg/util/version"
	"k8s.io/component-base/featuregate"
	"k8s.io/feature-lifecycle/lifecycle/versionskew"
	"k8s.io/kubernetes-features/pkg/featurelifecycle/catalog"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	"k8s.io/kubernetes/pkg/controlplane"
)

// served returns which versions of an API a kube-apiserver without --runtime-config has while
// it emulates a version, and whether it serves one of them (catalog.API.In).
type served func(a catalog.API, at *utilversion.Version) (has []schema.GroupVersion, one bool)

func byDefault(a catalog.API, at *utilversion.Version) ([]schema.GroupVersion, bool) {
	return a.In(catalog.Serving{Enabled: controlplane.DefaultAPIResourceConfigSource().ResourceEnabled, Emulated: at, Scheme: legacyscheme.Scheme})
}

// knownAt returns the versions, the newest first, that have a gate.
func knownAt(specs featuregate.VersionedSpecs, versions []*utilversion.Version) []*utilversion.Version {
	return slices.DeleteFunc(slices.Clone(versions), func(v *utilversion.Version) bool { return !versionskew.SpecAt(specs, v).Known })
}

// needs describes how kube-apiserver comes to serve an API that a gate needs, at each of the
// versions that have the gate.
func needs(a catalog.API, versions []*utilversion.Version, served served) string {
	text, last := a.String(), ""
	for i, version := range versions {
		has, one := served(a, version)
		how := "no flag serves it, so leave the gate off"
		switch {
		case one:
			how = "served by default"
		case len(has) > 0:
			how = fmt.Sprintf("served with `%s` of every kube-apiserver", catalog.API{GroupVersion: has[0]}.Flag())
		}
		switch {
		case i == 0:
			text += ", " + how
		case how != last:
			text += fmt.Sprintf("; while kube-apiserver emulates %s or less, %s", version, how)
		}
		last = how
	}
	return text + "; without it " + a.Without
}
