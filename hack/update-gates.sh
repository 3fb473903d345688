#!/usr/bin/env bash
# Writes docs/gates.md from the catalog and the gates of the next minor version.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
page=$(mktemp)
trap 'rm -f "$page"' EXIT
go run ./hack/gates >"$page"
cat "$page" >docs/gates.md
