#!/usr/bin/env bash
# Installs the packages that the tests need besides Go, git and make: Wine and mingw
# for the Windows side, OpenSSH's server, QEMU with the tools that make its guest's disk,
# protoc, shellcheck and mkdocs for make verify. It installs only missing packages, and only as
# root on Debian and Ubuntu; elsewhere it lists them.
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
# any reports whether one of these commands is there.
any() { # COMMAND…
	local command
	for command; do
		if command -v "$command"; then return; fi
	done
	return 1
}
need wine command -v wine
need wine64 test -e /usr/lib/wine/wine64 -o -e /usr/bin/wine64
need gcc-mingw-w64-x86-64 command -v x86_64-w64-mingw32-gcc
# Tests open captures with the tools that users open them with.
need tshark command -v tshark
need openssh-server test -x /usr/sbin/sshd
need openssh-client command -v ssh
need sshpass command -v sshpass
need qemu-system-x86 command -v qemu-system-x86_64
need qemu-utils command -v qemu-img
need ovmf test -e /usr/share/OVMF/OVMF_CODE_4M.fd
need swtpm command -v swtpm
need passt command -v pasta
# Tests adopt domains of a libvirt of their own.
need libvirt-daemon test -x /usr/sbin/libvirtd
need libvirt-daemon-driver-qemu test -e /usr/lib/x86_64-linux-gnu/libvirt/connection-driver/libvirt_driver_qemu.so
need systemd-boot-efi test -e /usr/lib/systemd/boot/efi/linuxx64.efi.stub
need binutils command -v objcopy
need mtools command -v mcopy
need dosfstools test -x /usr/sbin/mkfs.vfat
need fdisk test -x /usr/sbin/sfdisk
need genisoimage command -v genisoimage
need protobuf-compiler command -v protoc
need libprotobuf-dev test -e /usr/include/google/protobuf/timestamp.proto
# Tests read the manual pages.
need mandoc command -v mandoc
need shellcheck command -v shellcheck
# make verify parses PowerShell with tree-sitter's grammar, which needs it.
need nodejs command -v node
# make verify makes the site of the documents.
need mkdocs command -v mkdocs
need mkdocs-material test -e /usr/share/mkdocs/themes/material/mkdocs_theme.yml
# Tests read the CDs that swdt vm writes, and validate its answer files; they make discs
# like Windows installation media.
need xorriso command -v xorriso
need genisoimage command -v genisoimage
need wimtools command -v wimcapture
need p7zip-full command -v 7z
need libxml2-utils command -v xmllint
# Tests open the registry hives of an image for HostProcess containers.
need libhivex-bin command -v hivexsh
# Tests compare what swdt concludes of a firewall with what the kernel does.
need iptables test -x /usr/sbin/iptables-restore
need nftables test -x /usr/sbin/nft
# Tests open the report of statistics in a browser.
# On Ubuntu, Chromium is a snap, which the package chromium-browser installs.
chromium='chromium'
if grep -qx 'ID=ubuntu' /etc/os-release 2>/dev/null; then chromium='chromium-browser'; fi
need "$chromium" any chromium chromium-browser google-chrome
# The race detector needs a C compiler.
need gcc command -v gcc
need libc6-dev test -e /usr/include/stdlib.h

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
