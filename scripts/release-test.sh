#!/usr/bin/env bash
# Looks into the files of dist/, signs them with a key of its own and runs the documented commands on them,
# installs the .deb in a clean Debian and the .rpm in an empty folder, uses them there, and removes them:
# nothing may be left. Needs root, jq, debootstrap, rpm, minisign, ruby and network to Debian's mirror. With
# KUBECTL=FILE it also runs `kubectl swdt`.
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

: "${VERSION:?is what git describe printed for dist/}"
(cd dist && sha256sum --check --quiet SHA256SUMS) || fail "dist/ is not as its SHA256SUMS: run make release"

step "archives, licences, list of modules, manifests"
bin/release inspect dist
ruby -c dist/swdt-homebrew.rb >/dev/null || fail "Ruby cannot read the formula"
for program in bin/swdt-agent.exe bin/probes/swdt-probe-*; do # inside swdt, where inspect cannot look
	go version -m "$program" | awk '$1 == "dep" { print "pkg:golang/" $2 "@" $3 }' >"$work/modules"
	[[ -s $work/modules || $program == bin/probes/* ]] || fail "$program records no modules"
	while read -r module; do
		grep -qF "\"$module\"" dist/*.spdx.json || fail "$module is in $program, and not in the list of modules"
	done <"$work/modules"
	grep -qF "\"$(sha256sum "$program" | cut -d' ' -f1)\"" dist/*.spdx.json || fail "the list of modules has no $program"
done

step "the documented commands for checksums and signature"
minisign -G -W -p "$work/key.pub" -s "$work/key" >/dev/null
signed=$work/signed
SWDT_RELEASE_KEY='' SWDT_RELEASE_KEY_FILE=$work/key make pack VERSION="$VERSION" DIST="$signed" >"$work/build.log" 2>&1 ||
	{ tail -20 "$work/build.log" >&2 && exit 1; }
diff dist/SHA256SUMS "$signed/SHA256SUMS" || fail "the files above differ, packed once more"
# documented runs the command of the guide that begins with a word, in a release.
documented() { # WORD
	local command
	command=$(sed -n "s/^    \\$ \($1 .*\)/\1/p" docs/guides/install.md)
	[[ -n $command ]] || fail "the guide has no command $1"
	(cd "$signed" && bash -ec "${command//PUBLIC-KEY/$(tail -1 "$work/key.pub")}") >"$work/documented" 2>&1
}
# refused fails if a documented command accepts a file in which one byte has changed.
refused() { # WORD FILE
	cp "$signed/$2" "$work/before"
	printf '\001' | dd of="$signed/$2" bs=1 seek=60 conv=notrunc status=none
	! cmp -s "$work/before" "$signed/$2" || fail "no byte of $2 has changed"
	! documented "$1" || fail "$1 accepts a changed $2"
	cp "$work/before" "$signed/$2"
}
for word in minisign sha256sum; do documented "$word" || fail "$word: $(<"$work/documented")"; done
for file in dist/*_{amd64.deb,windows_amd64.zip} dist/*.x86_64.rpm; do refused sha256sum "$(basename "$file")"; done
refused minisign SHA256SUMS
rm -rf "$signed"

step "the .rpm"
# Both packages have the same files with the same modes, but for the places that Debian and Fedora prescribe.
for pair in x86_64:amd64 aarch64:arm64; do
	rpm=$(ls dist/*."${pair%:*}".rpm) deb=$(ls dist/*_"${pair#*:}".deb)
	rpm -qip "$rpm" >"$work/rpm.info" 2>&1 || fail "rpm -qip $rpm: $(<"$work/rpm.info")"
	grep -q '^Name *: swdt$' "$work/rpm.info" || fail "rpm -qip $rpm: $(<"$work/rpm.info")"
	rpm -Kv "$rpm" >"$work/rpm.digests" 2>&1 || fail "rpm -Kv $rpm: $(<"$work/rpm.digests")"
	[[ $(grep -c 'digest: OK$' "$work/rpm.digests") -eq 2 ]] || fail "rpm -Kv $rpm: $(<"$work/rpm.digests")"
	rpm -qlp "$rpm" | sort >"$work/rpm.names"
	rpm -qp --queryformat '[%{FILEMODES:perms} %{FILENAMES}\n]' "$rpm" | grep -v '^d' | sort >"$work/rpm.files"
	cut -d' ' -f2 "$work/rpm.files" | sort | comm -13 "$work/rpm.names" - >"$work/unlisted"
	[[ ! -s $work/unlisted ]] || fail "rpm -qlp $rpm lacks $(<"$work/unlisted")"
	dpkg-deb --contents "$deb" | grep -v '^d' | sed -E 's,^(\S+) .* \./,\1 /,; s, -> .*,,
		s,/usr/share/doc/swdt/copyright$,/usr/share/licenses/swdt/LICENSE,
		s,/usr/share/doc/swdt/,/usr/share/licenses/swdt/,
		s,/usr/share/zsh/vendor-completions/,/usr/share/zsh/site-functions/,' | sort >"$work/deb.files"
	[[ -s $work/deb.files ]] || fail "$deb has no files"
	diff "$work/deb.files" "$work/rpm.files" || fail "$rpm has other files than $deb"
done
# An empty folder is no Fedora: it has none of the package's dependencies, and swdt needs none.
mkdir "$work/fedora"
rpm --root "$work/fedora" --force-debian --install --nodeps "$(ls dist/*."$(uname -m)".rpm)"
[[ $(chroot "$work/fedora" /usr/bin/swdt version) == *agent* ]] || fail "swdt of the .rpm does not start"
rpm --root "$work/fedora" --force-debian --erase --nodeps swdt
left=$(find "$work/fedora" -name '*swdt*')
[[ -z $left ]] || fail "removing the .rpm left $left"

step "the container image"
# Its layer is unpacked, and swdt runs in it as in a container: with its account, and with no other file.
mkdir "$work/layout" "$work/image"
tar -xf dist/*_image.tar -C "$work/layout"
blob() { sed 's,^sha256:,'"$work/layout/blobs/sha256/,"; }
[[ $(jq '.manifests | length' "$work/layout/index.json") -eq 1 ]] || fail "a name of the layout has several images"
index=$(jq -r '.manifests[0].digest' "$work/layout/index.json" | blob)
manifest=$(jq -r --arg arch "$(dpkg --print-architecture)" \
	'.manifests[] | select(.platform.architecture == $arch) | .digest' "$index" | blob)
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
