#!/usr/bin/env bash
# Lints and vets the modules in the given directories. The root and the library are
# looked at together: they share a workspace, and what one knows of its dependencies
# serves the other. All other modules are looked at without it, as their users build
# them.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
(($#)) || { echo "usage: ${0##*/} DIRECTORY..." >&2; exit 2; }
make -s tools
root=$PWD
out=${OUT:-_output}
[[ $out == /* ]] || out=$root/$out
lint() {
	"$out/tools/golangci-lint" run --allow-parallel-runners --config "$root/.golangci.yml" "$@"
}
for module; do
	if [[ $module == . ]]; then
		lint ./... ./staging/src/k8s.io/feature-lifecycle/...
	else
		(cd "$module" && GOWORK=off lint ./...)
	fi
done
