#!/usr/bin/env bash
# Fails if hack/update-gofmt.sh would change a file.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
files=$(git ls-files -z --cached --others --exclude-standard -- '*.go' | xargs -0 gofmt -s -l)
[[ -z $files ]] || { echo "run hack/update-gofmt.sh; these are not formatted:" >&2 && echo "$files" >&2 && exit 1; }
