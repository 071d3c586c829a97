#!/usr/bin/env bash
# Installs the .deb of dist/ in a clean Debian, uses it there, and removes it: nothing may be left. Needs
# root, jq, debootstrap and network to Debian's mirror. With KUBECTL=FILE it also runs `kubectl swdt`.
#
# shellcheck disable=SC2016 # the commands expand their variables inside the tree
set -euo pipefail
cd "$(dirname "$0")/.."

work=$(mktemp -d)
tree=$work/tree
cleanup() {
	for proc in "$tree/proc" "$work/image/proc"; do
		if mountpoint -q "$proc"; then umount "$proc"; fi
	done
	rm -rf --one-file-system "$work"
}
trap cleanup EXIT

step() { printf -- '-- %s\n' "$*"; }
fail() { echo "release-test: $*" >&2; exit 1; }

# inside runs a command in the tree and fails unless its output has the text.
inside() { # TEXT COMMAND
	local output
	output=$(chroot "$tree" env -i HOME=/work PATH=/usr/sbin:/usr/bin:/sbin:/bin DEBIAN_FRONTEND=noninteractive \
		SWDT_CONFIG=/work/state/deb/node.yaml bash -c "cd /; $2" 2>&1) || fail "$2: $output"
	[[ $output == *"$1"* ]] || fail "$2: no \"$1\" in: $output"
}

# contents lists the files of the tree, without dpkg's and apt's own records.
contents() {
	(cd "$tree" && find . -xdev -not -path './proc/*' -not -path './var/lib/dpkg/*' -not -path './var/lib/apt/*' \
		-not -path './var/log/*' -not -path './var/cache/*' -not -path './work/*' | sort)
}

(cd dist && sha256sum --check --quiet SHA256SUMS) || fail "dist/ is not as its SHA256SUMS: run make release"

step "the list of modules"
for program in bin/programs/swdt-*; do
	go version -m "$program" | awk '$1 == "dep" { print "pkg:golang/" $2 "@" $3 }' >"$work/modules"
	[[ -s $work/modules ]] || fail "$program records no modules"
	while read -r module; do
		grep -qF "\"$module\"" dist/*.spdx.json || fail "$module is in $program, and not in the SBOM"
	done <"$work/modules"
done

step "the container image"
# Its layer is unpacked, and swdt runs in it as in a container: with its account, and with no other file.
mkdir "$work/layout" "$work/image"
tar -xf dist/*_image.tar -C "$work/layout"
blob() { sed 's,^sha256:,'"$work/layout/blobs/sha256/,"; }
manifest=$(jq -r --arg arch "$(dpkg --print-architecture)" \
	'.manifests[] | select(.platform.architecture == $arch) | .digest' "$work/layout/index.json" | blob)
tar -xzf "$(jq -r '.layers[0].digest' "$manifest" | blob)" -C "$work/image"
chmod 755 "$work" "$work/image"
mkdir "$work/image/proc" "$work/image/dev" # as every container has them
mknod -m 666 "$work/image/dev/null" c 1 3
mount -t proc proc "$work/image/proc"
# in_image runs swdt in the image and fails unless its output has the text.
in_image() { # TEXT ARGUMENTS
	local output text=$1
	shift
	output=$(env -i PATH="$PATH" HOME=/tmp chroot --userspec=65532:65532 "$work/image" /usr/bin/swdt "$@" 2>&1) ||
		fail "swdt $*: $output"
	[[ $output == *"$text"* ]] || fail "swdt $*: no \"$text\" in: $output"
}
in_image "agent" version
in_image "listens on" sandbox up --name image
in_image "has ended" sandbox down --name image

step "a clean Debian 12"
debootstrap --variant=minbase --include=man-db,bash-completion bookworm "$tree" >"$work/debootstrap.log" 2>&1 ||
	{ tail -20 "$work/debootstrap.log" >&2 && exit 1; }
rm -f "$tree/etc/dpkg/dpkg.cfg.d/docker"
mkdir "$tree/work"
cp dist/*_"$(dpkg --print-architecture)".deb "$tree/swdt.deb"
if [[ -n ${KUBECTL-} ]]; then cp "$KUBECTL" "$tree/usr/bin/kubectl"; fi
mount -t proc proc "$tree/proc"
before=$(contents)

step "install"
inside "Setting up swdt" 'apt-get install -y --no-install-recommends ./swdt.deb'

step "use: a sandbox, status, manual page, completion"
inside "agent" 'swdt version'
inside "listens on" 'swdt sandbox up --name deb --state-dir /work/state'
inside "kubelet" 'swdt status'
inside "kubelet" 'kubectl-swdt status --node deb'
inside "SWDT-STATUS(1)" 'man -P cat swdt-status'
inside "__start_swdt" '. /usr/share/bash-completion/bash_completion; _completion_loader swdt; complete -p swdt'
inside "deb" 'kubectl_complete-swdt status --node ""'
if [[ -n ${KUBECTL-} ]]; then
	inside "kubelet" 'kubectl swdt status'
	inside "status" 'kubectl __complete swdt stat'
fi
inside "has ended" 'swdt sandbox down --name deb --state-dir /work/state'

step "remove"
inside "Removing swdt" 'apt-get purge -y swdt'
diff <(echo "$before") <(contents) || fail "removing the package left the files above, or took them"
echo "the package works, and leaves nothing"
