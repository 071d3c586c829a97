#!/usr/bin/env bash
# Makes the file system of kind's node image as one tar archive:
#
#   lab/kind/node.sh PROGRAMS OUTPUT.tar
#
# PROGRAMS is the lab's folder with the Linux programs and the Debian of base.sh (lab/build.sh kind
# makes them). The files of the base image are those of kind's own module; the packages are Debian's. Two
# settings differ from kind's, for machines with cgroups of version 1 and without
# CAP_SYS_RESOURCE: a kubelet that accepts them, and containers that never lower their
# score for the kernel's out-of-memory killer.
#
# Needs root. It starts one process, containerd, and ends it.
set -euo pipefail
cd "$(dirname "$0")"

programs=$1 output=$2 version=v1.36.3
work=$(mktemp -d "$(dirname "$output")/node.XXXXXX")
server=
stop_server() {
	if [[ -n $server ]]; then
		kill "$server"
		wait "$server" || true
		server=
	fi
}
finish() {
	stop_server
	rm -rf --one-file-system "$work"
}
trap finish EXIT

node=$work/node

base_system() {
	mkdir "$node"
	tar -C "$node" -xf "$programs/base-bookworm.tar"
}

kind_files() {
	local files
	go mod download sigs.k8s.io/kind # a module that no build has needed yet has no folder
	files=$(go list -m -f '{{.Dir}}' sigs.k8s.io/kind)/images/base/files
	cp -r --no-preserve=mode "$files/kind" "$files/etc" "$node/"
	cp --no-preserve=mode "$files"/usr/local/bin/* "$node/usr/local/bin/"
	chmod 755 "$node"/usr/local/bin/* "$node"/kind/bin/*
	printf %s "$version" >"$node/kind/version"
	mkdir -p "$node/etc/kubernetes/manifests" "$node/opt/cni/bin" "$node/kind/manifests"
	cp default-storage.yaml default-cni.yaml "$node/kind/manifests/"
}

# services leaves systemd the three services of a node.
services() {
	local units=$node/etc/systemd/system unit
	rm -f "$node"/lib/systemd/system/multi-user.target.wants/* "$units"/*.wants/* \
		"$node"/lib/systemd/system/local-fs.target.wants/* \
		"$node"/lib/systemd/system/sockets.target.wants/*{udev,initctl}* \
		"$node"/lib/systemd/system/basic.target.wants/* \
		"$node"/lib/systemd/system/sysinit.target.wants/systemd-tmpfiles-setup.service
	echo "ReadKMsg=no" >>"$node/etc/systemd/journald.conf"
	ln -sf /usr/lib/systemd/systemd "$node/sbin/init"
	mkdir -p "$units/multi-user.target.wants"
	for unit in kubelet containerd undo-mount-hacks; do
		ln -s "/etc/systemd/system/$unit.service" "$units/multi-user.target.wants/$unit.service"
	done
	ln -s /dev/null "$units/systemd-binfmt.service"
	sed -i 's/restrict_oom_score_adj = false/restrict_oom_score_adj = true/' "$node/etc/containerd/config.toml"
	grep -q 'restrict_oom_score_adj = true' "$node/etc/containerd/config.toml"
	echo 'KUBELET_EXTRA_ARGS=--runtime-cgroups=/system.slice/containerd.service --fail-cgroupv1=false' \
		>"$node/etc/default/kubelet"
}

node_programs() {
	cp "$programs"/{kubeadm,kubelet,kubectl} "$node/usr/bin/"
	cp "$programs"/{containerd,containerd-shim-runc-v2,ctr,crictl} "$node/usr/local/bin/"
	cp "$programs"/cni/* "$node/opt/cni/bin/"
	"$programs/ctr" oci spec | jq '.hooks.createContainer[.hooks.createContainer | length] |=
		. + {"path": "/kind/bin/mount-product-files.sh"} | del(.process.rlimits)' >"$node/etc/containerd/cri-base.json"
}

# image makes the folder of a container image with one program.
image() { # PROGRAM NAMES-IN-JSON ENTRYPOINT-IN-JSON
	local folder=$work/images/$1
	mkdir -p "$folder/root/usr/local/bin" "$folder"/root/{tmp,etc,var,run}
	ln "$programs/$1" "$folder/root/usr/local/bin/$1" 2>/dev/null || cp "$programs/$1" "$folder/root/usr/local/bin/"
	printf '{"names": %s, "entrypoint": %s}\n' "$2" "$3" >"$folder/image.json"
}

# proxy_tools adds the programs that kube-proxy runs, and their libraries, to its image.
proxy_tools() {
	local root=$work/images/kube-proxy/root files list
	mkdir -p "$root"/usr/{sbin,bin,lib,lib64}
	ln -s usr/sbin usr/lib usr/lib64 "$root/"
	ln -s usr/bin "$root/bin"
	cd "$node"
	files=$(ls -d usr/sbin/{iptables,ip6tables,xtables-}* usr/sbin/{nft,conntrack,ipset} \
		usr/lib/x86_64-linux-gnu/xtables/*.so usr/bin/{bash,sh,dash} etc/alternatives/*tables*)
	list=$(for f in $files; do [[ -f $f && ! -L $f ]] && chroot . /usr/bin/ldd "/$f" 2>/dev/null; done |
		grep -o '/[^ ]*\.so[^ ]*' | sed 's,^/lib,/usr/lib,; s,^/,,' | sort -u) || true
	# shellcheck disable=SC2086 # both are lists of names without blanks
	{ printf '%s\n' $files && for f in $list; do echo "$f" && realpath --relative-to=. "$f"; done; } | sort -u |
		tar -c --files-from=- | tar -x -C "$root"
	cd "$OLDPWD"
}

container_images() {
	local p
	for p in kube-apiserver kube-controller-manager kube-scheduler kube-proxy; do
		image $p "[\"registry.k8s.io/$p:$version\"]" '[]'
	done
	proxy_tools
	image etcd '["registry.k8s.io/etcd:3.6.8-0"]' '[]'
	image coredns '["registry.k8s.io/coredns/coredns:v1.14.2"]' '["/usr/local/bin/coredns"]'
	image pause '["registry.k8s.io/pause:3.10.2", "registry.k8s.io/pause:3.10"]' '["/usr/local/bin/pause"]'
	go run ./images "$work/images.tar" "$work"/images/*/
	import "$work/images.tar"
}

# import stores the images in the node's containerd, without unpacking them.
import() { # ARCHIVE
	local socket=$work/c.sock root=$node/var/lib/containerd
	cat >"$work/containerd.toml" <<-EOF
		version = 3
		root = "$root"
		state = "$work/state"
		disabled_plugins = ["io.containerd.cri.v1.runtime", "io.containerd.cri.v1.images", "io.containerd.grpc.v1.cri"]
		[grpc]
		address = "$socket"
	EOF
	"$programs/containerd" --config "$work/containerd.toml" >"$work/containerd.log" 2>&1 &
	server=$!
	timeout 60 bash -c "until '$programs/ctr' --address '$socket' version >/dev/null 2>&1; do sleep 0.2; done" ||
		{ tail -20 "$work/containerd.log" >&2 && return 1; }
	"$programs/ctr" --address "$socket" --namespace k8s.io images import --label=io.cri-containerd.pinned=pinned \
		--all-platforms --no-unpack --digests "$1" >"$work/import.log" 2>&1 || { cat "$work/import.log" >&2 && return 1; }
	stop_server
}

base_system
kind_files
services
node_programs
container_images
tar -C "$node" --owner=0 --group=0 --numeric-owner -cf "$work/node.tar" .
mv "$work/node.tar" "$output"
