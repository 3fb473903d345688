#!/usr/bin/env bash
# Writes api/discovery and api/openapi-spec from a running kube-apiserver; the
# name is upstream's.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
make -s all WHAT="cmd/kube-apiserver cmd/local-up"
go run ./hack/openapi-spec --output-dir "${1:-api}"
