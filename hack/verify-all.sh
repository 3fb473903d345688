#!/usr/bin/env bash
# Runs every check, says which passed, and fails if one did not.
set -uo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
lib=staging/src/k8s.io/feature-lifecycle
example=$lib/examples/widget-operator
failed=()

check() {
	local name=$1 begun=$SECONDS
	shift
	if output=$("$@" 2>&1); then
		echo "ok    $name ($((SECONDS - begun)) s)"
	else
		echo "FAIL  $name ($((SECONDS - begun)) s)"
		sed 's/^/      /' <<<"$output"
		failed+=("$name")
	fi
}

in_lib() { (cd $lib && "$@"); }
formatted() {
	local files
	files=$(git ls-files -z --cached --others --exclude-standard -- '*.go' | xargs -0 gofmt -s -l)
	[[ -z $files ]] || { echo "run gofmt -s -w on:" && echo "$files" && return 1; }
}
tidy() { (cd "$1" && GOWORK=off go mod tidy -diff); }
# As third parties build it.
library_alone() { (cd $lib && GOWORK=off go build ./...); }
vet_alone() { (cd "$1" && GOWORK=off go vet ./...); }
lint_alone() {
	local root=$PWD
	(cd "$1" && GOWORK=off "$root/_output/tools/golangci-lint" run --timeout 20m --config "$root/.golangci.yml" ./...)
}
drawn() { (cd test/scale/draw && GOWORK=off go run . -root ../../.. -check); }
scripts() { git ls-files -z -- '*.sh' .ci/run | xargs -0 -n1 bash -n; }

gates() { diff -u docs/gates.md <(go run ./hack/gates) || { echo "run make update"; return 1; }; }

check gofmt formatted
check scripts scripts
check tree go run ./hack/verify
check "modules: root" tidy .
check "modules: library" tidy $lib
check "modules: example" tidy $example
check "modules: controller-gen" tidy hack/controller-gen
check "modules: tools" tidy hack/tools
check "modules: previous" tidy hack/previous
check "modules: release" tidy hack/release
check "modules: kind" tidy hack/kind
check "modules: helm" tidy test/helm
check "modules: browser" tidy test/browser
check "modules: draw" tidy test/scale/draw
check "generated code" hack/verify-codegen.sh
check "API specs" hack/verify-openapi-spec.sh
check "docs/gates.md" gates
check "exported surface" go run ./hack/surface -check
check "BENCHMARKS.md, docs/scale.md" drawn
check "library alone: build" library_alone
# golangci-lint vets what it looks at (govet); this is not.
check "vet: helm" vet_alone test/helm
check "lint: root" _output/tools/golangci-lint run --timeout 20m ./...
check "lint: library" in_lib "$PWD/_output/tools/golangci-lint" run --timeout 20m --config "$PWD/.golangci.yml" ./...
check "lint: example" lint_alone $example
check "lint: browser" lint_alone test/browser
check "lint: draw" lint_alone test/scale/draw
check "lint: release" lint_alone hack/release

if ((${#failed[@]})); then
	echo "failed: ${failed[*]}" >&2
	exit 1
fi
