#!/usr/bin/env bash
# Installs the packages that a cluster of kind needs in tests: Docker, and what makes its
# node image. It installs only missing packages, and only as root on Debian and Ubuntu;
# elsewhere it lists them.
set -euo pipefail

# Another run may be installing them.
exec 9>"${TMPDIR:-/tmp}/swdt-apt-$(id -u).lock"
if command -v flock >/dev/null; then flock 9; fi

missing=()
need() { # PACKAGE, then a command that succeeds if it is installed
	local package=$1
	shift
	"$@" >/dev/null 2>&1 || missing+=("$package")
}
need docker.io command -v dockerd
need runc command -v runc
need iptables command -v iptables
need debootstrap command -v debootstrap
need jq command -v jq

if ((${#missing[@]} == 0)); then
	exit 0
fi
if [[ $(id -u) != 0 ]] || ! command -v apt-get >/dev/null; then
	echo "missing: ${missing[*]}" >&2
	echo "on Debian or Ubuntu: sudo apt-get install --no-install-recommends ${missing[*]}" >&2
	exit 1
fi
echo "installing ${missing[*]}"
export DEBIAN_FRONTEND=noninteractive
apt-get update -qq
apt-get install -qq -y --no-install-recommends "${missing[@]}"
