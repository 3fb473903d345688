#!/usr/bin/env bash
# Builds this repository's kube-apiserver, kube-controller-manager, kube-scheduler and
# kubemark as they were at the commit in hack/previous/commit, the last one of the minor
# version before, into _output/previous/<commit>. They are built once; another commit has
# another folder. COMMIT=<commit> builds the kube-apiserver of that one instead.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
source=${COMMIT:+COMMIT}
source=${source:-hack/previous/commit}
commit=${COMMIT:-$(<hack/previous/commit)}
dir=${OUT:-$PWD/_output}/previous/$commit
what=cmd/kube-apiserver
[[ -n ${COMMIT:-} ]] || what+=" cmd/kube-controller-manager cmd/kube-scheduler test/utils/localcluster/kubemark"
missing=
for package in $what; do [[ -x $dir/${package##*/} ]] || missing=y; done
[[ $missing ]] || exit 0

if ! git cat-file -e "$commit^{commit}" 2>/dev/null; then
	echo "The commit of $source, $commit, is not in this clone, so it cannot be built." >&2
	if [[ $(git rev-parse --is-shallow-repository 2>/dev/null) == true ]]; then
		echo "The clone is shallow: get the whole history with \"git fetch --unshallow\"" >&2
	else
		echo "Use a full clone of this repository, with the history of its branch main" >&2
	fi
	exit 1
fi

# What an interrupted run left is in the way.
rm -rf "$dir"
mkdir -p "$dir/source"
trap 'rm -rf "$dir/source"' EXIT
git archive "$commit" | tar -x -C "$dir/source"
# Its own Makefile builds it. Nothing of this make may reach that one, and the commit
# that is checked out here is not the one that is built.
env -u MAKEFLAGS -u MFLAGS -u MAKELEVEL -u MAKEOVERRIDES -u OUT -u WHAT -u VERSION -u LDFLAGS GOFLAGS="$(go env GOFLAGS) -buildvcs=false" \
	make -s -C "$dir/source" all WHAT="$what"
mv "$dir/source/_output/bin"/* "$dir/"
