#!/usr/bin/env bash
# Runs all findings, or those that are named, and prints a line for each. Ends non-zero
# if the behavior of one has changed, or if one cannot run. V=1 shows the output of all.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")"
names=("$@")
if ((!${#names[@]})); then
	for file in *.sh; do
		if [[ $file != lib.sh && $file != run-all.sh ]]; then names+=("${file%.sh}"); fi
	done
fi
output=$(mktemp)
trap 'rm -f "$output"' EXIT
worst=0
for name in "${names[@]}"; do
	status=0
	"./$name.sh" >"$output" 2>&1 </dev/null || status=$?
	case $status in
	0) result='as recorded' ;;
	1) result='CHANGED' ;;
	*) result='CANNOT RUN' ;;
	esac
	printf '%-12s %s: %s\n' "$result" "$name" "$(sed -n 's/^behavior: //p' "$output")"
	if ((status)) || [[ ${V:-} == 1 ]]; then sed 's/^/             /' "$output"; fi
	if ((status)); then worst=1; fi
done
exit "$worst"
