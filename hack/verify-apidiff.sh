#!/usr/bin/env bash
# Compares what the library exports with an earlier revision by apidiff, as upstream's
# hack/apidiff.sh does, and prints the differences. It fails for an incompatible change
# unless CHANGELOG.md has changed since that revision, too: importers read it there.
#
#   hack/verify-apidiff.sh [-r REVISION]
#
# The revision is by default where HEAD left the remote's default branch or, on that
# branch, the commit before HEAD. A clone without it (--depth=1) has nothing to compare
# with: the script says so and passes.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
module=k8s.io/feature-lifecycle
lib=staging/src/$module
base=
while getopts "r:" option; do
	case $option in
	r) base=$OPTARG ;;
	*) echo "usage: ${0##*/} [-r REVISION]" >&2; exit 2 ;;
	esac
done

commit() { git rev-parse --quiet --verify "$1^{commit}"; }
if [[ -n $base ]]; then
	base=$(commit "$base") || { echo "There is no revision $base" >&2; exit 2; }
elif ! base=$(git merge-base HEAD origin/HEAD 2>/dev/null) || [[ $base == "$(commit HEAD)" ]]; then
	base=$(commit HEAD^) || { echo "Nothing is compared: this clone has no commit before HEAD (git fetch --deepen=1 brings it)"; exit 0; }
fi
git cat-file -e "$base:$lib/go.mod" 2>/dev/null || { echo "Nothing is compared: $base has no $lib"; exit 0; }

out=${OUT:-_output}
[[ $out == /* ]] || out=$PWD/$out
make -s "${OUT:-_output}/tools/apidiff"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
git archive "$base" "$lib" | tar -x -C "$work"
(cd "$work/$lib" && GOWORK=off "$out/tools/apidiff" -m -w "$work/before" $module)
(cd $lib && GOWORK=off "$out/tools/apidiff" -m -w "$work/after" $module)

# Examples are no promise. What internal packages export is left out by apidiff itself.
compare() {
	"$out/tools/apidiff" "$@" -m "$work/before" "$work/after" 2>"$work/errors" >"$work/report" || { cat "$work/errors" >&2; exit 1; }
	grep -vE '^- (\./)?examples/' "$work/report" || true
}
all=$(compare)
[[ -n $all ]] || { echo "What $module exports is as it was at $base"; exit 0; }
echo "What $module exports, since $base:"
echo "$all"
if [[ $(compare -incompatible) == *"- "* ]] && git diff --quiet "$base" -- CHANGELOG.md; then
	echo "Incompatible changes: say in CHANGELOG.md what importers write instead, or keep what was exported" >&2
	exit 1
fi
