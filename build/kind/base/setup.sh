#!/bin/bash
# Turns unpacked packages into a node's system: installs them, sets up its services
# and fills the store of images. Runs in the container of which the image is made.
set -euo pipefail

export DEBIAN_FRONTEND=noninteractive
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin

# No script of a package may start a service here.
printf '#!/bin/sh\nexit 101\n' >/usr/sbin/policy-rc.d
chmod 755 /usr/sbin/policy-rc.d
mkdir -p /var/lib/dpkg/info /var/lib/dpkg/updates /var/lib/dpkg/triggers
touch /var/lib/dpkg/status

install_packages() {
	dpkg --force-depends --force-confnew --install "$@" >/var/log/install.log 2>&1 || {
		tail -50 /var/log/install.log >&2
		exit 1
	}
}

# What scripts of the others need without saying so, in an order that works.
for name in base-passwd base-files dpkg libc6 perl-base mawk debconf; do
	install_packages /debs/"$name"_*.deb
done
install_packages /debs/*.deb
if dpkg --audit | grep .; then
	echo "not all packages are configured" >&2
	exit 1
fi

# A container has no devices to wait for and nothing to mount; kubelet and
# containerd are what starts.
units=/usr/lib/systemd/system
rm -f /etc/systemd/system/*.wants/* "$units"/{basic,local-fs,multi-user}.target.wants/* \
	"$units"/sockets.target.wants/*{initctl,udev}* "$units"/sysinit.target.wants/systemd-tmpfiles-setup.service
ln -sf /usr/lib/systemd/systemd /usr/sbin/init
systemctl enable containerd.service kubelet.service undo-mount-hacks.service
# It would register with the kernel of the machine.
systemctl mask systemd-binfmt.service
printf '[Journal]\nReadKMsg=no\n' >>/etc/systemd/journald.conf
mkdir -p /etc/kubernetes/manifests

ctr oci spec |
	jq '.hooks.createContainer += [{path: "/kind/bin/mount-product-files.sh"}] | del(.process.rlimits)' >/etc/containerd/cri-base.json
if [[ $RESTRICT_OOM_SCORE == true ]]; then
	sed -i 's/restrict_oom_score_adj = false/restrict_oom_score_adj = true/' /etc/containerd/config.toml
	grep -q 'restrict_oom_score_adj = true' /etc/containerd/config.toml
fi

containerd >/var/log/containerd.log 2>&1 &
for ((try = 0; ; try++)); do
	! ctr version >/dev/null 2>&1 || break
	if ((try == 600)); then
		tail -50 /var/log/containerd.log >&2
		exit 1
	fi
	sleep 0.1
done
for file in /images/*.tar; do
	ctr --namespace=k8s.io images import --label=io.cri-containerd.pinned=pinned --no-unpack "$file"
done
kill %1
wait

rm -rf /debs /images /setup.sh /usr/sbin/policy-rc.d /var/log/install.log /var/log/containerd.log
