#!/usr/bin/env bash

# Copyright The Kubernetes Authors.
#
# Licensed under the Apache License, Version 2.0 (the "License");
# you may not use this file except in compliance with the License.
# You may obtain a copy of the License at
#
#     http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS,
# WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
# See the License for the specific language governing permissions and
# limitations under the License.

# Writes the deep copies, clients, listers, informers and apply configurations of
# features.k8s.io. hack/update-codegen.sh of kubernetes/kubernetes calls it for
# this module and writes itself what depends on the types: protobuf, model names,
# and the OpenAPI definitions that the apply configurations are made of.
#
# CODEGEN_PKG is where k8s.io/code-generator is. OPENAPI_SCHEMA is a file with the
# schema of all types; without it the one of kubernetes/kubernetes is taken, which
# this module is in until it is published.

set -o errexit
set -o nounset
set -o pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
CODEGEN_PKG=${CODEGEN_PKG:-../code-generator}
models=k8s.io/kubernetes/pkg/generated/openapi/cmd/models-schema

if [[ ! -e "${CODEGEN_PKG}/kube_codegen.sh" ]]; then
    echo "${CODEGEN_PKG} has no kube_codegen.sh; set CODEGEN_PKG to a directory with k8s.io/code-generator" >&2
    exit 1
fi
source "${CODEGEN_PKG}/kube_codegen.sh"

work=$(mktemp -d)
trap 'rm -rf "${work}"' EXIT
if [[ -z "${OPENAPI_SCHEMA:-}" ]]; then
    OPENAPI_SCHEMA="${work}/schema.json"
    if ! go run "${models}" >"${OPENAPI_SCHEMA}"; then
        echo "${models} does not run here; set OPENAPI_SCHEMA to what it writes in kubernetes/kubernetes" >&2
        exit 1
    fi
fi

kube::codegen::gen_helpers \
    --boilerplate hack/boilerplate.go.txt \
    apis

kube::codegen::gen_client \
    --with-watch \
    --with-applyconfig \
    --applyconfig-openapi-schema "${OPENAPI_SCHEMA}" \
    --output-dir client \
    --output-pkg k8s.io/feature-lifecycle/client \
    --boilerplate hack/boilerplate.go.txt \
    apis
