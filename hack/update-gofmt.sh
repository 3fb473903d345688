#!/usr/bin/env bash
# Formats all Go files.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
git ls-files -z --cached --others --exclude-standard -- '*.go' | xargs -0 gofmt -s -w
