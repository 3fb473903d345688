#!/usr/bin/env bash
# Proves that the generated code is fresh: generates it again in a clean copy of
# what generators read and compares. The copy is always at the same place, where Go's
# cache knows the programs that are made of it.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
out=${OUT:-_output}
copy=$out/verify-codegen
before=$out/verify-codegen.before
mkdir -p "$out"
exec {lock}>"$copy.lock"
flock "$lock"
rm -rf "$copy" "$before"
mkdir "$copy"
trap 'rm -rf "$copy" "$before"' EXIT

git ls-files -z --cached --others --exclude-standard -- go.mod go.sum go.work go.work.sum hack pkg staging |
	while IFS= read -r -d "" file; do [[ -e $file ]] && printf "%s\0" "$file"; done |
	tar --null -T - -cf - | tar -xf - -C "$copy"
cp -r "$copy" "$before"
# A generator that writes nothing must not pass.
find "$copy" \( -name 'zz_generated.*' -o -name 'generated.p*' \) -delete
rm -rf "$copy/staging/src/k8s.io/feature-lifecycle/client"
"$copy/hack/update-codegen.sh"
if ! diff -ru "$before" "$copy"; then
	echo "generated code is not fresh; run hack/update-codegen.sh" >&2
	exit 1
fi
