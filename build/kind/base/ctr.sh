#!/bin/bash
# Containerd's client. kind asks it to fetch those images that a release does not
# have; what is in the store already needs no registry.
real=/usr/local/libexec/ctr
if [[ " $* " == *" content fetch "* && -n $("$real" --namespace=k8s.io images list --quiet "name==${!#}") ]]; then
	exit 0
fi
exec "$real" "$@"
