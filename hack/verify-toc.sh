#!/usr/bin/env bash
# Fails if hack/update-toc.sh would change a table of contents.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
hack/update-toc.sh --dryrun || { echo "A table of contents is not fresh; run hack/update-toc.sh" >&2; exit 1; }
