//go:build linux

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

package versions

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
	utilversion "k8s.io/apimachinery/pkg/util/version"
	"k8s.io/component-base/cli"
	"k8s.io/component-base/featuregate"
	"k8s.io/feature-lifecycle/lifecycle"
	"k8s.io/kubernetes-features/cmd/kube-apiserver/controlplane"
	"k8s.io/kubernetes-features/pkg/featurelifecycle/reporting"
	"k8s.io/kubernetes-features/test/e2e_features/framework"
	"k8s.io/kubernetes/pkg/features"
)

// The minor versions between which these tests move: the one that ships, and the one
// before. framework.Previous is of lower.
var (
	lower = framework.Minor(framework.PreviousVersion)
	upper = framework.Minor(framework.UpstreamVersion)
)

// Gates of the test.
const (
	// kept installs a definition on upgrade, which stays on downgrade.
	kept = "TestKeptDefinition"
	// removed installs one on upgrade and removes it on downgrade. It is alpha
	// at 1.36 and on by default at 1.37, and has a field in ConfigMaps.
	removed = "TestRemovedDefinition"
	// workload is one of Kubernetes' own: its stored forms of 1.36 and 1.37
	// exclude each other.
	workload = string(features.GenericWorkload)
)

var (
	configMaps = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
	keeps      = schema.GroupVersionResource{Group: "versions.example.com", Version: "v1", Resource: "keeps"}
	leaves     = schema.GroupVersionResource{Group: "versions.example.com", Version: "v1", Resource: "leaves"}
)

// definition is a CustomResourceDefinition.
func definition(kind, plural string) []byte {
	return fmt.Appendf(nil, `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: %[2]s.versions.example.com}
spec:
  group: versions.example.com
  scope: Namespaced
  names: {kind: %[1]s, listKind: %[1]sList, plural: %[2]s, singular: %[3]s}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
`, kind, plural, map[string]string{"keeps": "keep", "leaves": "leaf"}[plural])
}

// declare are the test's features.
func declare() []lifecycle.Feature {
	return []lifecycle.Feature{{
		Name:     kept,
		Versions: lifecycle.Versions{{At: upper, OnUpgrade: lifecycle.Tasks{lifecycle.Apply("keeps", definition("Keep", "keeps"))}}},
	}, {
		Name:      removed,
		OnDisable: lifecycle.Tasks{lifecycle.ClearField(configMaps, "data.removed")},
		Versions: lifecycle.Versions{{
			At:          upper,
			OnUpgrade:   lifecycle.Tasks{lifecycle.Apply("leaves", definition("Leaf", "leaves"))},
			OnDowngrade: lifecycle.Tasks{lifecycle.Remove("leaves", definition("Leaf", "leaves"))},
		}},
	}}
}

// register adds the test's gates to those of the process.
func register() error {
	alpha := featuregate.VersionedSpecs{
		{Version: utilversion.MustParse(lower), PreRelease: featuregate.Alpha},
		{Version: utilversion.MustParse(upper), PreRelease: featuregate.Beta, Default: true},
	}
	return framework.AddGates(map[featuregate.Feature]featuregate.VersionedSpecs{kept: alpha[:1], removed: alpha})
}

// serve is kube-apiserver with the test's features.
func serve() int {
	if err := register(); err != nil {
		fmt.Fprintln(os.Stderr, "registering the test's gates:", err)
		return 1
	}
	reporting.Install()
	options := controlplane.NewOptions()
	options.Features = append(options.Features, declare()...)
	return cli.Run(controlplane.NewCommandFor(options))
}

// short is true when the short form runs: fewer crashes.
var short = os.Getenv("VERSIONS_SHORT") == "true"

func TestMain(m *testing.M) {
	if filepath.Base(os.Args[0]) == "kube-apiserver" {
		os.Exit(serve())
	}
	framework.RequireRoot()
	os.Exit(m.Run())
}
