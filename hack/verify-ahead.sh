#!/usr/bin/env bash
# Fails if hack/update-ahead.sh would change the gates of the next minor version. It
# downloads two modules of that version, once.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
data=$(mktemp)
trap 'rm -f "$data"' EXIT
go run ./hack/ahead -data >"$data"
diff -u pkg/featurelifecycle/ahead/gates.json "$data" || { echo "pkg/featurelifecycle/ahead/gates.json is not what its version has; run hack/update-ahead.sh" >&2; exit 1; }
