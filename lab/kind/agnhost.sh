#!/usr/bin/env bash
# Makes the file system of a Linux image that has what Kubernetes' image agnhost has, and pods of
# swdt's smoke test need: agnhost and Debian's curl.
#
#   lab/kind/agnhost.sh BASE.tar AGNHOST OUTPUT.tar
#
# BASE.tar is the Debian system of lab/kind/node.sh. Needs root.
set -euo pipefail

base=$1 agnhost=$2 output=$3
work=$(mktemp -d "$(dirname "$output")/agnhost.XXXXXX")
trap 'rm -rf --one-file-system "$work"' EXIT
mkdir "$work"/{base,root}
tar -C "$work/base" -xf "$base"

libraries=$(chroot "$work/base" /usr/bin/ldd /usr/bin/curl | grep -o '/[^ ]*\.so[^ ]*')
cd "$work/base"
for file in /usr/bin/curl $libraries; do
	cp --parents --dereference ".$file" "$work/root"
done
cp "$agnhost" "$work/root/agnhost"
chroot "$work/root" /usr/bin/curl --version >/dev/null
chroot "$work/root" /agnhost --help >/dev/null
tar -C "$work/root" --owner=0 --group=0 --numeric-owner -cf "$output" .
