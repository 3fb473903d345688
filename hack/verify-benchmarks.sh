#!/usr/bin/env bash
# Fails if hack/update-benchmarks.sh would change a file.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/../test/benchmark/draw"
GOWORK=off go run . -root ../../.. -check
