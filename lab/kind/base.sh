#!/usr/bin/env bash
# Makes the file system of a small Debian, from which kind's node image and agnhost's are made:
#
#   lab/kind/base.sh OUTPUT.tar
#
# Needs root and debootstrap.
set -euo pipefail

output=$1
work=$(mktemp -d "$(dirname "$output")/base.XXXXXX")
trap 'rm -rf --one-file-system "$work"' EXIT

# This distribution has systemd with support for cgroups of version 1.
packages=systemd,conntrack,iptables,nftables,iproute2,ethtool,util-linux,mount,kmod,libseccomp2,pigz
packages+=,bash,ca-certificates,curl,jq,procps,runc,ipset,ebtables
debootstrap --variant=minbase --include="$packages" bookworm "$work/base" >"$work/debootstrap.log" 2>&1 ||
	{ tail -20 "$work/debootstrap.log" >&2 && exit 1; }
rm -rf "$work"/base/var/cache/apt/archives/*.deb "$work"/base/var/lib/apt/lists/* \
	"$work"/base/usr/share/{doc,man,locale} "$work"/base/dev/*
tar -C "$work/base" -cf "$output" .
