#!/usr/bin/env bash
# Moves this repository to another patch release of Kubernetes:
#
#   KUBE_VERSION=v1.36.4 hack/update-upstream.sh
#
# go.mod of the root and of the library, what people read, and the tests that name
# the version. The Makefile reads it from go.mod; hack/verify finds what is left.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
lib=staging/src/k8s.io/feature-lifecycle
old=$(sed -nE 's/^\s*k8s\.io\/kubernetes (v[0-9.]+)$/\1/p' go.mod)
new=${KUBE_VERSION:-}

if [[ ! $new =~ ^v1\.[0-9]+\.[0-9]+$ ]]; then
	echo "KUBE_VERSION is \"$new\", not a patch release; use make update-upstream KUBE_VERSION=v1.36.4" >&2
	exit 1
fi
if [[ ${new%.*} != "${old%.*}" ]]; then
	echo "$new is of another minor version than $old, which also has other gates; see docs/fork.md, \"Following upstream\"" >&2
	exit 1
fi

# Staging modules are published as v0.
published() { echo "v0.${1#v1.}"; }
for dir in . "$lib"; do
	mapfile -t requires < <(sed -nE "s/^(require)?\s*(k8s\.io\/[a-z-]+) ($old|$(published "$old"))( .*)?$/\2 \3/p" "$dir/go.mod" |
		while read -r module version; do
			if [[ $version == "$old" ]]; then echo "-require=$module@$new"; else echo "-require=$module@$(published "$new")"; fi
		done)
	go mod edit "${requires[@]}" "$dir/go.mod"
done
for dir in "$lib" .; do
	(cd "$dir" && GOWORK=off go mod tidy)
done

git ls-files -z -- README.md 'docs/*.md' ':!docs/keps' test/integration/framework |
	xargs -0 grep -lZF "$old" -- | xargs -0r sed -i "s/${old//./\\.}\b/$new/g"
# A version that is published keeps its section; one that is not moves along, with
# its downloads and the addresses of its headings.
newest=$(awk '/^# v/ { n++ } n == 1' CHANGELOG.md)
if grep -qF 'This version is not published yet' <<<"$newest"; then
	awk -v old="${old//./\\.}" -v new="$new" -v oldAddress="${old//./}feature" -v newAddress="${new//./}feature" \
		'/^# v/ { n++ } n <= 1 { gsub(old, new); gsub(oldAddress, newAddress) } { print }' CHANGELOG.md >CHANGELOG.md.new
else
	awk -v heading="# $new+feature.1" -v base="$new" \
		'/^# v/ && !n++ { print heading "\n\nThis version is not published yet.\n\n## Changelog since " base "\n" } { print }' CHANGELOG.md >CHANGELOG.md.new
fi
mv CHANGELOG.md.new CHANGELOG.md
echo "Moved from $old to $new. Next: make update, make verify and make test; the minor version before is in hack/previous (docs/development.md)"
