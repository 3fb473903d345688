#!/usr/bin/env bash
# Writes the tables of contents between <!-- toc --> and <!-- /toc --> with mdtoc, as
# kubernetes/enhancements does: of the changelog and of the KEP, whose questions for
# production readiness stay out, as in the template. Arguments go to mdtoc.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
out=${OUT:-_output}
make -s "$out/tools/mdtoc"
"$out/tools/mdtoc" --inplace --max-depth=3 "$@" CHANGELOG.md
"$out/tools/mdtoc" --inplace --max-depth=5 "$@" docs/keps/3920-finish-feature-flags/README.md
