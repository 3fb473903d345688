#!/usr/bin/env bash
# Runs every check, or those that WHAT names, LANES (2) at once, says in their order
# which passed, and fails if one did not. Modules whose dependencies only long tests need are looked at
# with these: hack/verify-golangci-lint.sh and hack/verify-modules.sh.
set -uo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
lanes=${LANES:-2}
[[ $lanes =~ ^[1-9][0-9]*$ ]] || { echo "LANES is '$lanes'; set a number above 0" >&2; exit 2; }

known=
names=()
commands=()
check() {
	known+=" $1"
	[[ -z ${WHAT:-} || " $WHAT " == *" $1 "* ]] || return 0
	names+=("$1")
	shift
	commands+=("$(printf '%q ' "$@")")
}

scripts() { git ls-files -z --cached --others --exclude-standard -- '*.sh' .ci/run | xargs -0 -n1 bash -n; }

# The longest first: they begin together.
check codegen hack/verify-codegen.sh
check golangci-lint hack/verify-golangci-lint.sh .
check golangci-lint-example hack/verify-golangci-lint.sh staging/src/k8s.io/feature-lifecycle/examples/widget-operator
check golangci-lint-draw hack/verify-golangci-lint.sh test/benchmark/draw
check openapi-spec hack/verify-openapi-spec.sh
check modules hack/verify-modules.sh
check tree go run ./hack/verify
check apidiff hack/verify-apidiff.sh
check gates hack/verify-gates.sh
check ahead hack/verify-ahead.sh
check toc hack/verify-toc.sh
check benchmarks hack/verify-benchmarks.sh
check gofmt hack/verify-gofmt.sh
check scripts scripts

for name in ${WHAT:-}; do
	[[ " $known " == *" $name "* ]] || { echo "There is no check $name; there are$known" >&2; exit 2; }
done

results=$(mktemp -d)
trap 'kill $(jobs -p) 2>/dev/null; rm -rf "$results"' EXIT
trap 'exit 130' INT TERM

# run writes the output of check $1, and last its result.
run() {
	local begun=$SECONDS result=FAIL
	if eval "${commands[$1]}" >"$results/$1.output" 2>&1 </dev/null; then
		result=ok
	fi
	echo "$result $((SECONDS - begun))" >"$results/$1"
}

failed=()
printed=0
# report prints what has ended, up to the first check that still runs. With an
# argument a check without a result has failed.
report() {
	local result seconds
	for (( ; printed < ${#names[@]}; printed++)); do
		if ! read -r result seconds 2>/dev/null <"$results/$printed"; then
			[[ $# -gt 0 ]] || return 0
			result=FAIL seconds=?
		fi
		printf '%-5s %s (%s s)\n' "$result" "${names[printed]}" "$seconds"
		if [[ $result != ok ]]; then
			sed 's/^/      /' "$results/$printed.output"
			failed+=("${names[printed]}")
		fi
	done
}

for i in "${!names[@]}"; do
	while (($(jobs -pr | wc -l) >= lanes)); do
		wait -n
		report
	done
	run "$i" &
done
while [[ -n $(jobs -pr) ]]; do
	wait -n
	report
done
report last

if ((${#failed[@]})); then
	printf -v list '%s; ' "${failed[@]}"
	echo "failed: ${list%; }" >&2
	exit 1
fi
