#!/usr/bin/env bash
# Fails if the go.mod of a module is not tidy. With the argument "long" it looks at
# the modules whose dependencies only long tests need, without it at all others, so
# that none is forgotten.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
long=(hack/e2e hack/previous hack/kubelets/1.34 hack/kubelets/1.35 build/kind build/release test/external
	test/external/clients/{driver,clientgo,controllerruntime,helm3,helm4,flux,argocd})
case ${1:-} in
"") wanted=false ;;
long) wanted=true ;;
*) echo "usage: ${0##*/} [long]" >&2; exit 2 ;;
esac

status=0
tidied=0
while IFS= read -r file; do
	[[ -e $file ]] || continue
	dir=$(dirname "$file")
	is_long=false
	for module in "${long[@]}"; do
		[[ $module != "$dir" ]] || is_long=true
	done
	[[ $is_long == "$wanted" ]] || continue
	tidied=$((tidied + 1))
	GOWORK=off go -C "$dir" mod tidy -diff || { echo "$file is not tidy; run hack/update-modules.sh" >&2; status=1; }
done < <(git ls-files --cached --others --exclude-standard -- go.mod '*/go.mod')
if [[ $wanted == true ]] && ((tidied != ${#long[@]})); then
	echo "$tidied of ${#long[@]} modules of long tests are there: ${long[*]}" >&2
	status=1
fi
((tidied)) || { echo "git names no go.mod" >&2; status=1; }
exit $status
