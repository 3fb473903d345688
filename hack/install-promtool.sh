#!/usr/bin/env bash
# Takes promtool out of Debian's package prometheus, into _output/tools. The package
# as a whole is not installed: it would start a server.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
mkdir -p _output/tools
tools=$PWD/_output/tools
download=$(mktemp -d)
trap 'rm -rf "$download"' EXIT
cd "$download"
apt-get download -qq -o APT::Sandbox::User=root prometheus
dpkg-deb --fsys-tarfile prometheus_*.deb | tar -xO ./usr/bin/promtool >promtool
chmod +x promtool
mv promtool "$tools/promtool"
