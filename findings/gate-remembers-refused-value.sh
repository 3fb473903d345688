#!/usr/bin/env bash
# A feature gate remembers a value that it refused, and then refuses all others.
#
# Expected: k8s.io/component-base/featuregate documents SetFromMap as storing the values
#   or returning an error, and ResetFeatureValueToDefault as a way back to the default.
# Happens: Base=false is refused, because Child, which is on by default, depends on Base.
#   Base stays on, but counts as set explicitly, each later Set of any other gate fails
#   with the error of the first, and Base cannot be reset. Setting Base to a value that is
#   accepted ends it.
# Versions: k8s.io/component-base v0.36.3.
# Matters: a process that tries a value, handles the error and sets others gets none of
#   them, and a list of what was set explicitly has a value that never applied.
# Here: staging/src/k8s.io/feature-lifecycle/featuregate/gate.go takes a new snapshot after
#   a Set that failed, too; accept.go decides what the dependencies permit before a value
#   from outside of the process reaches a gate.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

module gate k8s.io/component-base@v0.36.3
cat >gate/main.go <<'GO'
package main

import (
	"fmt"

	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/component-base/featuregate"
)

func main() {
	now := version.MajorMinor(1, 36)
	beta := featuregate.FeatureSpec{Version: now, Default: true, PreRelease: featuregate.Beta}
	alpha := featuregate.FeatureSpec{Version: now, PreRelease: featuregate.Alpha}
	gate := featuregate.NewVersionedFeatureGate(now)
	if err := gate.AddVersioned(map[featuregate.Feature]featuregate.VersionedSpecs{"Base": {beta}, "Child": {beta}, "Other": {alpha}}); err != nil {
		panic(err)
	}
	if err := gate.AddDependencies(map[featuregate.Feature][]featuregate.Feature{"Child": {"Base"}}); err != nil {
		panic(err)
	}
	fmt.Println("Base=false:", gate.Set("Base=false"))
	fmt.Println("Base enabled:", gate.Enabled("Base"), "explicitly set:", gate.ExplicitlySet("Base"))
	fmt.Println("Other=true:", gate.Set("Other=true"))
	fmt.Println("Other enabled:", gate.Enabled("Other"))
	fmt.Println("reset of Base:", gate.ResetFeatureValueToDefault("Base"))
	fmt.Println("Base=true:", gate.Set("Base=true"))
	fmt.Println("Other enabled:", gate.Enabled("Other"))
}
GO
program gate
conclude "a value that was refused stays, makes other values fail, and cannot be reset" <<'OUT'
Base=false: Child is enabled, but depends on features that are disabled: [Base]
Base enabled: true explicitly set: true
Other=true: Child is enabled, but depends on features that are disabled: [Base]
Other enabled: false
reset of Base: feature:Base was explicitly set, but not in enabled map
Base=true: <nil>
Other enabled: true
OUT
