#!/usr/bin/env bash
# Installs what checks and tests need beyond Go, make, gcc and git, as root on Debian:
# for "make verify" and "make test", or with the argument "all" for "make test-all".
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

case ${1:-} in
"" | all) ;;
*) echo "usage: ${0##*/} [all]" >&2; exit 2 ;;
esac

packages=()
need() { command -v "$1" >/dev/null || packages+=("${@:2}"); }
promtool=false
need protoc protobuf-compiler
# Descriptors that generators include.
[[ -e /usr/include/google/protobuf/descriptor.proto ]] || packages+=(libprotobuf-dev)
# Real kube-proxies write rules.
need nft nftables
if [[ ${1:-} == all ]]; then
	# Images keep capabilities of files.
	need getcap libcap2-bin
	# Images of releases run in it.
	need containerd containerd
	need runc runc
	# The page of kubectl feature report.
	need chromium chromium
	# "make example" asks replicas with it.
	need curl curl
	# Upstream's check of licenses, in the test of landing in a fork.
	need python3 python3
	command -v promtool >/dev/null || [[ -x ${OUT:-_output}/tools/promtool ]] || promtool=true
fi
if ((${#packages[@]})) || $promtool; then
	apt-get update -qq
fi
if ((${#packages[@]})); then
	apt-get install -y -qq --no-install-recommends "${packages[@]}"
fi
if $promtool; then
	hack/install-promtool.sh
fi
