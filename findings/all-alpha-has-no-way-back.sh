#!/usr/bin/env bash
# AllAlpha=false does not turn off what AllAlpha=true turned on, until the emulation
# version changes.
#
# Expected: k8s.io/component-base/featuregate documents AllAlpha as the switch of all alpha
#   gates that have no value of their own; the last value that is set should count.
# Happens: AllAlpha=true writes a value to each alpha gate. A later AllAlpha=false, or its
#   reset, finds that they have one and leaves them on. No gate counts as explicitly set.
#   SetEmulationVersion computes all values again from what was set: the gate goes off,
#   although the version that it is set to is the one from before.
# Versions: k8s.io/component-base v0.36.3.
# Matters: values depend on how many calls of Set there were, and on a later change of the
#   version. Whoever derives a gate's value from the flags gets another one.
# Here: staging/src/k8s.io/feature-lifecycle/featuregate/observe.go reports what Enabled
#   answers, and never computes a value from AllAlpha or AllBeta, which it leaves out.
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
	now, before := version.MajorMinor(1, 36), version.MajorMinor(1, 35)
	create := func() featuregate.MutableVersionedFeatureGate {
		gate := featuregate.NewVersionedFeatureGate(now)
		spec := featuregate.FeatureSpec{Version: before, PreRelease: featuregate.Alpha}
		if err := gate.AddVersioned(map[featuregate.Feature]featuregate.VersionedSpecs{"Trial": {spec}}); err != nil {
			panic(err)
		}
		return gate
	}
	check := func(step string, gate featuregate.MutableVersionedFeatureGate, errs ...error) {
		fmt.Printf("%s: AllAlpha %t, Trial %t, explicitly set %t, errors %v\n", step, gate.Enabled("AllAlpha"), gate.Enabled("Trial"), gate.ExplicitlySet("Trial"), errs)
	}
	gate := create()
	check("AllAlpha=true", gate, gate.Set("AllAlpha=true"))
	check("AllAlpha=false", gate, gate.Set("AllAlpha=false"))
	check("emulates 1.35, then 1.36", gate, gate.SetEmulationVersion(before), gate.SetEmulationVersion(now))

	gate = create()
	check("AllAlpha=true, then reset", gate, gate.Set("AllAlpha=true"), gate.ResetFeatureValueToDefault("AllAlpha"))

	gate = create()
	check("AllAlpha=false alone", gate, gate.Set("AllAlpha=false"))
}
GO
program gate
conclude "alpha gates stay on after AllAlpha=false, and go off by a change of the emulation version and back" <<'OUT'
AllAlpha=true: AllAlpha true, Trial true, explicitly set false, errors [<nil>]
AllAlpha=false: AllAlpha false, Trial true, explicitly set false, errors [<nil>]
emulates 1.35, then 1.36: AllAlpha false, Trial false, explicitly set false, errors [<nil> <nil>]
AllAlpha=true, then reset: AllAlpha false, Trial true, explicitly set false, errors [<nil> <nil>]
AllAlpha=false alone: AllAlpha false, Trial false, explicitly set false, errors [<nil>]
OUT
