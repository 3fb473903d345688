#!/usr/bin/env bash
# Moves this repository to another release of Kubernetes, a patch release or the first ones
# of the next minor version:
#
#   KUBE_VERSION=v1.37.3 hack/update-upstream.sh
#
# go.mod of the root, of the library and of its example, what people read, and the
# tests that name the version. The Makefile reads it from go.mod; hack/verify finds what is left.
# With another minor version, the one that shipped until now becomes the version before
# (hack/previous, with the commit that is checked out), and a list is printed of what is left
# to decide or to change (hack/undecided).
# When it fails, all files are as they were.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
lib=staging/src/k8s.io/feature-lifecycle
example=$lib/examples/widget-operator
previous=hack/previous
# Upstream's end-to-end tests.
e2e=hack/e2e
# Written last: what an end in between leaves behind is finished by the next run.
named=test/e2e_features/framework/previous.go
old=$(sed -nE 's/^const UpstreamVersion = "(v[0-9.]+)"$/\1/p' "$named")
before=$(sed -nE 's/^const PreviousVersion = "(v[0-9.]+)"$/\1/p' "$named")
new=${KUBE_VERSION:-}

if [[ ! $new =~ ^v1\.[0-9]+\.[0-9]+$ ]]; then
	echo "KUBE_VERSION is \"$new\", not a patch release; use make update-upstream KUBE_VERSION=v1.37.3" >&2
	exit 1
fi
# minor prints 36 of v1.36.3.
minor() { cut -d. -f2 <<<"$1"; }
another_minor=false
if [[ ${new%.*} != "${old%.*}" ]]; then
	another_minor=true
	if (($(minor "$new") != $(minor "$old") + 1)); then
		echo "$new is not of the minor version after $old; move one minor version at a time, as clusters do" >&2
		exit 1
	fi
	# A second run could not distinguish pages that name the version before from those
	# that the first one left alone. The commit is the last one of the version that shipped.
	if [[ -n $(git status --porcelain --untracked-files=no) ]]; then
		echo "there are changes that are not committed; commit them, or take them back with \"git restore .\" where a move was killed" >&2
		exit 1
	fi
fi

versions=("${old#v}")
if $another_minor; then versions+=("${before#v}"); fi
# Figures of benchmarks name the version on which they were measured.
mapfile -d '' -t pages < <(git ls-files -z -- README.md 'docs/*.md' ':!docs/keps' ':!docs/benchmarks' test/e2e_features/framework ":!$named" |
	xargs -0r grep -lZF "${versions[@]/#/-e}" --)
modules=(go.mod go.sum "$lib/go.mod" "$lib/go.sum" "$example/go.mod" "$example/go.sum" "$e2e/go.mod" "$e2e/go.sum")
if $another_minor; then modules+=(go.work go.work.sum "$previous/go.mod" "$previous/go.sum" "$previous/commit"); fi
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

# required prints the arguments for go mod edit with which a go.mod that requires modules
# of the minor version $2 requires those of $3. Staging modules are published as v0. With
# another minor version, some are gone: $4 and $5 list those that there were and that
# there are.
required() {
	local name prefix
	while read -r name prefix; do
		if [[ -n ${5:-} && $prefix == v0 ]] && ! grep -qxF "$name" <<<"$5"; then
			echo "-droprequire=$name"
		else
			echo "-require=$name@$prefix.${3#v1.}"
		fi
	done < <(sed -nE "s/^(require)?\s*(k8s\.io\/[a-z-]+) (v[01])\.$2\.[0-9]+( .*)?$/\2 \3/p" "$1")
	if [[ -n ${5:-} ]]; then
		# go mod tidy drops those that nothing imports.
		comm -13 <(sort <<<"$4") <(sort <<<"$5") | sed -E "s/(.*)/-require=\1@v0.${3#v1.}/"
	fi
}

# theirs prints the path of upstream's go.mod of a version.
theirs() { GOWORK=off go list -m -f '{{.GoMod}}' "k8s.io/kubernetes@$1"; }

# staging prints the staging modules that a go.mod of upstream replaces by directories.
staging() { sed -nE 's/^\s*(k8s\.io\/[a-z-]+) v0\.0\.0$/\1/p' "$1" | sort -u; }

# language prints the arguments with which a go.mod or go.work has the version of Go, and
# the defaults of its behavior, of an upstream go.mod: only the main module has them.
language() { sed -nE 's/^go ([0-9.]+)$/-go=\1/p; s/^godebug default=(.+)$/-godebug=default=\1/p' "$1"; }

# tidy tidies the go.mod of a directory. Packages that another minor version does not have
# any more do not stand in the way: a person takes their imports out.
tidy() {
	local complaints
	if complaints=$(cd "$1" && GOWORK=off go mod tidy 2>&1); then return; fi
	local missing='does not contain package \S+$' progress='^go: (downloading|finding|found) |^(go:|\s).* imports$'
	if ! $another_minor || ! grep -qE "$missing" <<<"$complaints" || grep -vE "$missing|$progress" <<<"$complaints" >&2; then
		echo "$complaints" >&2
		return 1
	fi
	(cd "$1" && GOWORK=off go mod tidy -e) 2>/dev/null
	removed+=$(grep -oE 'package \S+$' <<<"$complaints" | sort -u | sed "s|^|  - |; s|\$|, which the module in $1 imports|")$'\n'
}

removed='' was_staging='' is_staging=''
if $another_minor; then
	old_mod=$(theirs "$old")
	new_mod=$(theirs "$new")
	was_staging=$(staging "$old_mod")
	is_staging=$(staging "$new_mod")
fi

go run ./hack/changelog "$new"
hack/update-toc.sh
if $another_minor; then
	mapfile -t edits < <(language "$new_mod")
	go work edit "${edits[@]}" "$PWD/go.work"
fi
# All of the minor version move, whichever patch release they name.
for dir in . "$lib" "$example" "$e2e"; do
	mapfile -t edits < <(required "$dir/go.mod" "$(minor "$old")" "$new")
	if $another_minor; then
		mapfile -t edits < <(required "$dir/go.mod" "$(minor "$old")" "$new" "$was_staging" "$is_staging"; language "$new_mod")
	fi
	go mod edit "${edits[@]}" "$dir/go.mod"
done
for dir in "$lib" "$example" . "$e2e"; do
	tidy "$dir"
done

if $another_minor; then
	# Only modules of Kubernetes are named; the others come from upstream's go.mod, and
	# not from that of the version before.
	before_mod=$(theirs "$before")
	before_staging=$(staging "$before_mod")
	mapfile -t edits < <(
		sed -nE 's/^(require)?\s*(\S+) (v[0-9]\S*)( .*)?$/\2 \3/p' "$previous/go.mod" |
			grep -vE "^k8s\.io/[a-z-]+ v[01]\.$(minor "$before")\.[0-9]+$" | sed -E 's/^(\S+) .*/-droprequire=\1/'
		required "$previous/go.mod" "$(minor "$before")" "$old" "$before_staging" "$was_staging"
		language "$old_mod"
	)
	go mod edit "${edits[@]}" "$previous/go.mod"
	sed -Ei "s/(kubernetes\/kubernetes )1\.$(minor "$before")\b/\11.$(minor "$old")/" "$previous/go.mod"
	tidy "$previous"
	git rev-parse HEAD >"$previous/commit"
fi

# The version before takes its new name after the one that shipped has given it up.
renames=(-e "s/\b(v?)1\.$(minor "$old")\.${old##*.}(\b|_)/\1${new#v}\2/g")
if $another_minor; then
	renames+=(-e "s/\b(v?)1\.$(minor "$before")\.${before##*.}(\b|_)/\1${old#v}\2/g")
fi
for file in "${pages[@]}" "$named"; do
	sed -Ei "${renames[@]}" "$file"
done
trap 'rm -rf "$kept"' EXIT
echo "Moved from $old to $new. Next: make update, make verify and make test; the minor version before is in hack/previous (docs/contributors/development.md)"
if $another_minor; then
	echo "To be decided and changed by a person (repeat with: go run ./hack/undecided -from $old):"
	if [[ $removed ]]; then
		echo "Packages that upstream removed; change the imports, then: hack/update-modules.sh"
		printf %s "$removed"
	fi
	go build -o "$kept/undecided" ./hack/undecided
	status=0
	"$kept/undecided" -from "$old" || status=$?
	# 1 means that something is undecided.
	if ((status > 1)); then exit "$status"; fi
fi
