#!/usr/bin/env bash
# Writes the gates of the next minor version, as a published version of it has them, which
# kubectl feature upgrade-check and docs/gates.md read, and lists what will change:
#
#   KUBE_VERSION=v1.38.0-beta.0 hack/update-ahead.sh
#
# Without KUBE_VERSION it is the version of the committed data.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
file=pkg/featurelifecycle/ahead/gates.json
data=$(mktemp)
trap 'rm -f "$data"' EXIT
go run ./hack/ahead -data -version "${KUBE_VERSION:-}" >"$data"
cat "$data" >"$file"
hack/update-gates.sh
go run ./hack/ahead
