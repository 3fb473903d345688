#!/usr/bin/env bash
# Tidies go.mod and go.sum of all modules.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
while IFS= read -r file; do
	[[ ! -e $file ]] || GOWORK=off go -C "$(dirname "$file")" mod tidy
done < <(git ls-files --cached --others --exclude-standard -- go.mod '*/go.mod')
