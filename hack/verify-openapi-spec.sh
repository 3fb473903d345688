#!/usr/bin/env bash
# Proves that api/discovery and api/openapi-spec are what the server publishes.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
fresh=$(mktemp -d)
trap 'rm -rf "$fresh"' EXIT
hack/update-openapi-spec.sh "$fresh"
for folder in discovery openapi-spec; do
	if ! diff -ru "api/$folder" "$fresh/$folder"; then
		echo "api/$folder is not what kube-apiserver publishes; run hack/update-openapi-spec.sh" >&2
		exit 1
	fi
done
