#!/usr/bin/env bash
# Fails if hack/update-gates.sh would change docs/gates.md, or if the history of the gates has not what this build
# has. It needs no network: gates of older versions are not read again.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
page=$(mktemp)
trap 'rm -f "$page"' EXIT
go run ./hack/gates >"$page"
diff -u docs/gates.md "$page" || { echo "docs/gates.md is not fresh; run hack/update-gates.sh" >&2; exit 1; }
go run ./hack/history -verify
