#!/usr/bin/env bash
# Writes the history of the gates of Kubernetes, pkg/featurelifecycle/history/gates.json, from upstream's
# modules: of this build's version and of the one that pkg/featurelifecycle/ahead has. Releases that the
# file has already are not read again, so most often there is nothing to do. Arguments are those of hack/history:
#
#   hack/update-history.sh -all                  # read all releases again, in some minutes
#   hack/update-history.sh -releases v1.36.4     # take another patch release, or another minor version
#
# It compiles small programs with the Go that a release needs. Where a module that a release requires cannot be had,
# -replace names another one.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
file=pkg/featurelifecycle/history/gates.json
data=$(mktemp)
trap 'rm -f "$data"' EXIT
go run ./hack/history "$@" >"$data"
cat "$data" >"$file"
