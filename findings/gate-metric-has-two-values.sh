#!/usr/bin/env bash
# The metric of a feature gate is a copy that ages, and may show a gate as on and off.
#
# Expected: kubernetes_feature_enabled says in its help text that it has stage and
#   enablement of a feature: one series for a gate, with the value that Enabled answers.
# Happens: AddMetrics writes the values once; Set and SetEmulationVersion do not. The stage
#   is a label, so AddMetrics at another emulation version adds a second series: the gate
#   is BETA with 1 and ALPHA with 0 in one scrape. AddMetrics itself asks every gate, and
#   SetEmulationVersion then warns that values change that were already queried.
# Versions: k8s.io/component-base v0.36.3.
# Matters: a sum or a maximum over the name is wrong, and neither the metric nor the set of
#   queried gates says what the program consulted.
# Here: staging/src/k8s.io/feature-lifecycle/featuregate/gate.go makes values final before
#   AddMetrics and does not take its questions for uses; SetRemote in remote.go writes the
#   series of each gate that it changes.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

module gate k8s.io/component-base@v0.36.3
cat >gate/main.go <<'GO'
package main

import (
	"bufio"
	"bytes"
	"fmt"
	"net/http/httptest"
	"strings"

	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/component-base/featuregate"
	"k8s.io/component-base/metrics/legacyregistry"
	"k8s.io/klog/v2"
)

func scrape(when string, gate featuregate.FeatureGate) {
	answer := httptest.NewRecorder()
	legacyregistry.Handler().ServeHTTP(answer, httptest.NewRequest("GET", "/metrics", nil))
	fmt.Println(when)
	for lines := bufio.NewScanner(answer.Body); lines.Scan(); {
		if strings.Contains(lines.Text(), `name="Trial"`) {
			fmt.Println(" ", lines.Text())
		}
	}
	fmt.Println("  Enabled:", gate.Enabled("Trial"))
}

func main() {
	var log bytes.Buffer
	klog.LogToStderr(false)
	klog.SetOutput(&log)
	before, now := version.MajorMinor(1, 35), version.MajorMinor(1, 36)
	gate := featuregate.NewVersionedFeatureGate(now)
	specs := featuregate.VersionedSpecs{
		{Version: before, PreRelease: featuregate.Alpha},
		{Version: now, Default: true, PreRelease: featuregate.Beta},
	}
	if err := gate.AddVersioned(map[featuregate.Feature]featuregate.VersionedSpecs{"Trial": specs}); err != nil {
		panic(err)
	}
	// Nothing but AddMetrics asks before the version changes.
	gate.AddMetrics()
	if err := gate.SetEmulationVersion(before); err != nil {
		panic(err)
	}
	klog.Flush()
	fmt.Println("warned of a queried gate:", strings.Contains(log.String(), `already queried feature" featureGate="Trial"`))
	scrape("AddMetrics, then emulates 1.35", gate)
	gate.AddMetrics()
	scrape("AddMetrics again", gate)
}
GO
program gate
conclude "the metric keeps the value of before, and has two series for one gate after a second AddMetrics" <<'OUT'
warned of a queried gate: true
AddMetrics, then emulates 1.35
  kubernetes_feature_enabled{name="Trial",stage="BETA"} 1
  Enabled: false
AddMetrics again
  kubernetes_feature_enabled{name="Trial",stage="ALPHA"} 0
  kubernetes_feature_enabled{name="Trial",stage="BETA"} 1
  Enabled: false
OUT
