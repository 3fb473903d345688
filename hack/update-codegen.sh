#!/usr/bin/env bash
# Writes all generated code: deep copies, conversions, protobuf, OpenAPI, clients, and
# the definition of the example operator. The generators are pinned as tools in go.mod,
# that of the example in hack/tools; protoc comes from Debian.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$root"

if ! command -v protoc >/dev/null; then
	if [[ $(id -u) != 0 ]]; then
		echo "protoc is missing; install it with: sudo apt-get install protobuf-compiler libprotobuf-dev" >&2
		exit 1
	fi
	apt-get update -qq && apt-get install -y -qq protobuf-compiler libprotobuf-dev >/dev/null
fi

lib=k8s.io/feature-lifecycle
api=$lib/apis/features/v1alpha1
internal=k8s.io/kubernetes-features/pkg/apis/features
out=staging/src/$lib
header=$root/hack/boilerplate/boilerplate.generatego.txt
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# Each generator checks the types of all that it imports, and ends: more memory in
# place of a quarter of the time.
export GOGC=${GOGC:-400}

# go-to-protobuf calls its plugin and goimports by name. Go's cache has them built.
mkdir -p "$work/bin" "$work/proto/github.com/gogo" "$work/proto/k8s.io"
ln -s "$(go tool -n protoc-gen-gogo)" "$(go tool -n goimports)" "$work/bin/"
ln -s "$(go list -m -f '{{.Dir}}' k8s.io/apimachinery)" "$work/proto/k8s.io/apimachinery"
ln -s "$(go list -m -f '{{.Dir}}' github.com/gogo/protobuf)" "$work/proto/github.com/gogo/protobuf"
m=k8s.io/apimachinery/pkg
PATH=$work/bin:$PATH go tool go-to-protobuf \
	--go-header-file "$header" --output-dir "$root/staging/src" --proto-import "$work/proto" --drop-gogo-go \
	--apimachinery-packages "-$m/util/intstr,-$m/api/resource,-$m/runtime/schema,-$m/runtime,-$m/apis/meta/v1" \
	--packages "$api"

go tool deepcopy-gen --go-header-file "$header" --output-file zz_generated.deepcopy.go $api $internal
go tool defaulter-gen --go-header-file "$header" --output-file zz_generated.defaults.go $internal/v1alpha1
go tool conversion-gen --go-header-file "$header" --output-file zz_generated.conversion.go $internal/v1alpha1
# Model names first and apart: they are written beside the types. Then the
# definitions, with the package whose model names ours refer to; upstream's own
# definitions of it are the same.
openapi=(--go-header-file "$header" --output-dir pkg/generated/openapi --output-pkg k8s.io/kubernetes-features/pkg/generated/openapi --report-filename "$work/violations")
go tool openapi-gen "${openapi[@]}" --output-file zz_generated.openapi.go --output-model-name-file zz_generated.model_name.go $api
go tool openapi-gen "${openapi[@]}" --output-file zz_generated.openapi.go $api $m/apis/meta/v1

go run ./pkg/generated/openapi/cmd/models-schema >"$work/schema.json"
go tool applyconfiguration-gen --go-header-file "$header" --openapi-schema "$work/schema.json" --output-dir "$out/client/applyconfiguration" --output-pkg $lib/client/applyconfiguration $api
go tool client-gen --go-header-file "$header" --output-dir "$out/client/clientset" --output-pkg $lib/client/clientset --clientset-name versioned \
	--apply-configuration-package $lib/client/applyconfiguration --input-base $lib/apis --input features/v1alpha1
go tool lister-gen --go-header-file "$header" --output-dir "$out/client/listers" --output-pkg $lib/client/listers $api
go tool informer-gen --go-header-file "$header" --output-dir "$out/client/informers" --output-pkg $lib/client/informers \
	--versioned-clientset-package $lib/client/clientset/versioned --listers-package $lib/client/listers $api

# The example operator is a module of its own, and has what operators have.
controller_gen=$(cd hack/tools && GOWORK=off go tool -n controller-gen)
(cd $out/examples/widget-operator && GOWORK=off "$controller_gen" object:headerFile=../../../../../../hack/boilerplate/boilerplate.generatego.txt \
	crd paths=./api/... output:crd:stdout >"$work/crd.yaml")
# Only a whole definition takes the place of the one before.
cp "$work/crd.yaml" $out/examples/widget-operator/config/crd.yaml
