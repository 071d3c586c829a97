#!/usr/bin/env bash
# Builds the Windows programs that tests and the demo push, into a cache outside
# of git, and prints the folder. What is there and up to date is not built again.
#
#   lab/build.sh               everything
#   lab/build.sh services      the service program in all its versions and faults
#   lab/build.sh containerd    the real containerd.exe of two versions
#
# SWDT_LAB moves the cache (default ~/.cache/swdt/lab).
set -euo pipefail
cd "$(dirname "$0")"

lab=${SWDT_LAB:-${XDG_CACHE_HOME:-$HOME/.cache}/swdt/lab}
# No -trimpath: with it, Go does not record -ldflags in the executable, where the
# simulated host reads version and fault.
export GOOS=windows GOARCH=amd64 CGO_ENABLED=0 GOFLAGS=-buildvcs=false

# build OUTPUT KEY COMMAND… runs the command with the output's path as $OUT,
# unless the output was made with the same key before.
build() {
	local output=$lab/$1 key=$2
	shift 2
	if [[ -f $output && $(cat "$output.key" 2>/dev/null) == "$key" ]]; then
		return
	fi
	echo "building $(basename "$output")" >&2
	OUT=$output.$$ "$@"
	mv "$output.$$" "$output"
	echo "$key" >"$output.key"
}

go_build() { # FOLDER PACKAGE LDFLAGS
	(cd "$1" && go build -ldflags "-s -w $3" -o "$OUT" "$2")
}

# containerd asks golang.org/x/sys whether it is a service: 1.7 whether its parent
# is services.exe in session 0, 1.6 whether its token lacks the group of
# interactive users. Under Wine 8 neither is so; containerd would run as if in a
# terminal and never answer the SCM. So it is built with a copy of that module
# that looks at the parent's name alone; containerd's own code is as published.
containerd_build() ( # VERSION LDFLAGS
	work=$(mktemp -d)
	trap 'rm -rf "$work"' EXIT
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
	go build -modfile "$work/go.mod" -ldflags "-s -w $2" -o "$OUT" github.com/containerd/containerd/cmd/containerd
)

containerd() { # VERSION
	local flags="-X github.com/containerd/containerd/version.Version=$1"
	build "containerd-$1.exe" "$(go env GOVERSION) 3 $flags $(sha256sum <"containerd/$1/go.mod")" \
		containerd_build "$1" "$flags"
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
}

mkdir -p "$lab"
exec 9>"$lab/.lock"
if command -v flock >/dev/null; then flock 9; fi

case ${1:-all} in
all)
	services
	containerd 1.6.27
	containerd 1.7.12
	;;
services) services ;;
containerd)
	containerd 1.6.27
	containerd 1.7.12
	;;
*)
	echo "usage: lab/build.sh [services|containerd]" >&2
	exit 2
	;;
esac
echo "$lab"
