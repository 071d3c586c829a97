#!/usr/bin/env bash
# Installs the packages that `make bench` needs: the peers that swdt is compared
# with, and the packages that the tests need. It installs only missing packages, and
# only as root on Debian and Ubuntu; elsewhere it lists them.
set -euo pipefail
cd "$(dirname "$0")/.."
scripts/install-test-deps.sh

missing=()
need() { # PACKAGE, then a command that succeeds if it is installed
	local package=$1
	shift
	"$@" >/dev/null 2>&1 || missing+=("$package")
}
need rsync command -v rsync
need zstd command -v zstd
need xdelta3 command -v xdelta3
need bsdiff command -v bsdiff
need openssh-client command -v scp

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
