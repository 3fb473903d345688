#!/usr/bin/env bash
# Moves this repository to another patch release of Kubernetes:
#
#   KUBE_VERSION=v1.36.4 hack/update-upstream.sh
#
# go.mod of the root, of the library and of its example, what people read, and the
# tests that name the version. The Makefile reads it from go.mod; hack/verify finds what is left.
# When it fails, all files are as they were.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
lib=staging/src/k8s.io/feature-lifecycle
example=$lib/examples/widget-operator
# Written last: what an end in between leaves behind is finished by the next run.
named=test/e2e_features/framework/previous.go
old=$(sed -nE 's/^const UpstreamVersion = "(v[0-9.]+)"$/\1/p' "$named")
new=${KUBE_VERSION:-}

if [[ ! $new =~ ^v1\.[0-9]+\.[0-9]+$ ]]; then
	echo "KUBE_VERSION is \"$new\", not a patch release; use make update-upstream KUBE_VERSION=v1.36.4" >&2
	exit 1
fi
if [[ ${new%.*} != "${old%.*}" ]]; then
	echo "$new is of another minor version than $old, which also has other gates; see docs/contributors/fork.md, \"Following upstream\"" >&2
	exit 1
fi

mapfile -d '' -t pages < <(git ls-files -z -- README.md 'docs/*.md' ':!docs/keps' test/e2e_features/framework ":!$named" |
	xargs -0r grep -lZF "${old#v}" --)
modules=(go.mod go.sum "$lib/go.mod" "$lib/go.sum" "$example/go.mod" "$example/go.sum")
kept=$(mktemp -d)
for file in "${modules[@]}" CHANGELOG.md "$named" "${pages[@]}"; do
	if [[ -e $file ]]; then cp --parents -p "$file" "$kept"; fi
done
finish() {
	local status=$?
	if ((status)); then
		for file in "${modules[@]}"; do
			if [[ ! -e $kept/$file ]]; then rm -f "$file"; fi
		done
		cp -pR "$kept/." .
		echo "Not moved to $new: all files are as they were. If it cannot be downloaded, see whether it is published, and try again" >&2
	fi
	rm -rf "$kept"
}
trap finish EXIT

go run ./hack/changelog "$new"
hack/update-toc.sh
# All of the minor version move, whichever patch release they name. Staging modules
# are published as v0.
minor=${old#v1.}
minor=${minor%.*}
for dir in . "$lib" "$example"; do
	mapfile -t requires < <(sed -nE "s/^(require)?\s*(k8s\.io\/[a-z-]+) v([01])\.$minor\.[0-9]+( .*)?$/-require=\2@v\3.${new#v1.}/p" "$dir/go.mod")
	go mod edit "${requires[@]}" "$dir/go.mod"
done
for dir in "$lib" "$example" .; do
	(cd "$dir" && GOWORK=off go mod tidy)
done

for file in "${pages[@]}" "$named"; do
	sed -Ei "s/\b(v?)1\.$minor\.${old##*.}(\b|_)/\1${new#v}\2/g" "$file"
done
echo "Moved from $old to $new. Next: make update, make verify and make test; the minor version before is in hack/previous (docs/contributors/development.md)"
