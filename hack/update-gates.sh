#!/usr/bin/env bash
# Writes docs/gates.md from the catalog and the gates of the next minor version, and reads the gates of releases that
# their history does not have yet (hack/update-history.sh), which needs the network; SKIP_HISTORY=y leaves that out.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
page=$(mktemp)
trap 'rm -f "$page"' EXIT
go run ./hack/gates >"$page"
cat "$page" >docs/gates.md
if [[ ${SKIP_HISTORY:-} != y ]]; then
	hack/update-history.sh
fi
