#!/usr/bin/env bash
# Proves that the generated code is fresh: generates it again in a clean copy of
# the working tree and compares.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
copy=$(mktemp -d)
trap 'rm -rf "$copy"' EXIT

cd "$root"
git ls-files -z --cached --others --exclude-standard | while IFS= read -r -d "" file; do [[ -e $file ]] && printf "%s\0" "$file"; done |
	tar --null -T - -cf - | tar -xf - -C "$copy"
cp -r "$copy" "$copy.before"
trap 'rm -rf "$copy" "$copy.before"' EXIT
# A generator that writes nothing must not pass.
find "$copy" \( -name 'zz_generated.*' -o -name 'generated.p*' \) -delete
rm -rf "$copy/staging/src/k8s.io/feature-lifecycle/client"
"$copy/hack/update-codegen.sh"
if ! diff -ru "$copy.before" "$copy"; then
	echo "generated code is not fresh; run hack/update-codegen.sh" >&2
	exit 1
fi
