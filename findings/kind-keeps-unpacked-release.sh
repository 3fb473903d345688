#!/usr/bin/env bash
# kind leaves the release that it has unpacked in the folder for temporary files, at every build.
#
# Expected: a command removes its temporary files when it ends.
# Happens: "kind build node-image" unpacks the archive of a release into a folder of its own below
#   TMPDIR, and removes it neither when the image is built nor when that fails.
# Versions: sigs.k8s.io/kind v0.33.0.
# Matters: a server archive of Kubernetes is 1 GB when it is unpacked. Who builds node images in a loop,
#   as tests of features on real nodes do, fills the disk with files that no command lists.
# Here: "make kind-image" gives kind a folder for temporary files that it removes. No Docker is asked here:
#   the archive is unpacked before. After a build that succeeds the folder is there, too.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

module kind sigs.k8s.io/kind@v0.33.0
(cd kind && go build -o "$work/kind.bin" sigs.k8s.io/kind) >"$work/log" 2>&1 || cannot "go build"

# The smallest release: a version, and a file.
mkdir -p release/kubernetes/server/bin tmp
echo v1.37.2 >release/kubernetes/version
echo kubelet >release/kubernetes/server/bin/kubelet
tar -czf release.tar.gz -C release kubernetes
# A daemon that does not exist: nothing beside the folder is changed.
DOCKER_HOST=unix://$work/none KIND_EXPERIMENTAL_PROVIDER=docker TMPDIR=$work/tmp \
	"$work/kind.bin" build node-image --type file "$work/release.tar.gz" >"$work/log" 2>&1 && cannot "kind built an image without Docker"
grep -q 'Finished building Kubernetes' "$work/log" || cannot "kind did not come to the end of unpacking"
for file in kubernetes/version kubernetes/server/bin/kubelet; do
	for left in "$work"/tmp/*/"$file"; do
		if [[ -e $left ]]; then echo "left: $file" >>"$work/seen"; else echo "removed: $file" >>"$work/seen"; fi
	done
done
conclude "kind build node-image leaves what it unpacked in the folder for temporary files" <<'EOS'
left: kubernetes/version
left: kubernetes/server/bin/kubelet
EOS
