#!/usr/bin/env bash
# Lints and vets the modules in the given directories, "." for the root. All but the
# root are looked at without the workspace, as their users build them: code that does
# not compile alone fails, tests included.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
(($#)) || { echo "usage: ${0##*/} DIRECTORY..." >&2; exit 2; }
make -s tools
root=$PWD
out=${OUT:-_output}
[[ $out == /* ]] || out=$root/$out
for module; do
	(
		if [[ $module != . ]]; then
			export GOWORK=off
		fi
		cd "$module"
		"$out/tools/golangci-lint" run --allow-parallel-runners --config "$root/.golangci.yml" ./...
	)
done
