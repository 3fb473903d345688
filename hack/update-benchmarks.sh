#!/usr/bin/env bash
# Writes BENCHMARKS.md, its pictures and the tables of docs/contributors/scale.md
# from docs/benchmarks.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/../test/benchmark/draw"
GOWORK=off go run . -root ../../..
