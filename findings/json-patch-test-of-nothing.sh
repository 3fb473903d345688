#!/usr/bin/env bash
# In JSON patches a test for null passes where there is nothing, and a replace adds.
#
# Expected: RFC 6902 lets replace fail where there is no value (section 4.3), and test
#   compare the value that is there, numbers by what they are worth (section 4.6).
# Happens: github.com/evanphx/json-patch v4, the library by which k8s.io/apiserver v0.36.3
#   applies patches, lets a test for null pass for a missing key; replace adds what is
#   missing; a test of 3 against 3.0 fails. Only remove fails for a missing key.
# Versions: gopkg.in/evanphx/json-patch.v4 v4.13.0.
# Matters: a patch that is guarded by test or replace, to change a field only where it is,
#   writes it where it is not: a gate's field comes back into an object that was clean.
# Here: patch in staging/src/k8s.io/feature-lifecycle/lifecycle/task/clearfield.go guards by
#   UID and resource version, which the server compares itself, and changes by remove alone.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

module patch gopkg.in/evanphx/json-patch.v4@v4.13.0
cat >patch/main.go <<'GO'
package main

import (
	"fmt"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
)

func main() {
	for _, text := range []string{
		`[{"op":"test","path":"/spec/maxUnavailable","value":null}]`,
		`[{"op":"test","path":"/spec/maxUnavailable","value":1}]`,
		`[{"op":"replace","path":"/spec/maxUnavailable","value":1}]`,
		`[{"op":"remove","path":"/spec/maxUnavailable"}]`,
		`[{"op":"test","path":"/spec/replicas","value":3.0}]`,
	} {
		patch, err := jsonpatch.DecodePatch([]byte(text))
		if err != nil {
			panic(err)
		}
		result, err := patch.Apply([]byte(`{"spec":{"replicas":3}}`))
		fmt.Printf("%s\n  %s, error: %v\n", text, result, err)
	}
}
GO
program patch
conclude "test for null and replace succeed for a missing key" <<'OUT'
[{"op":"test","path":"/spec/maxUnavailable","value":null}]
  {"spec":{"replicas":3}}, error: <nil>
[{"op":"test","path":"/spec/maxUnavailable","value":1}]
  , error: testing value /spec/maxUnavailable failed: test failed
[{"op":"replace","path":"/spec/maxUnavailable","value":1}]
  {"spec":{"maxUnavailable":1,"replicas":3}}, error: <nil>
[{"op":"remove","path":"/spec/maxUnavailable"}]
  , error: error in remove for path: '/spec/maxUnavailable': Unable to remove nonexistent key: maxUnavailable: missing value
[{"op":"test","path":"/spec/replicas","value":3.0}]
  , error: testing value /spec/replicas failed: test failed
OUT
