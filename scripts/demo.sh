#!/usr/bin/env bash
# What swdt does, shown on a sandbox: a simulated Windows node that runs swdt's
# real agent behind real SSH. Needs `make build`; cleans up after itself.
set -euo pipefail
cd "$(dirname "$0")/.."

PATH=$PWD/bin:$PATH
work=$(mktemp -d)
export NO_COLOR=${NO_COLOR-}
cleanup() {
	swdt sandbox down --name demo --state-dir "$work/state" >/dev/null 2>&1 || true
	rm -rf "$work"
}
trap cleanup EXIT

say() { printf '\n# %s\n' "$*"; }

# run prints a command, runs it, and insists on its exit code.
run() { # EXPECTED-EXIT-CODE COMMAND…
	local expected=$1 code=0
	shift
	printf '$ %s\n' "$*"
	"$@" 2>&1 || code=$?
	if ((code != expected)); then
		printf 'demo: exit code %d, expected %d\n' "$code" "$expected" >&2
		exit 1
	fi
	if ((code != 0)); then printf '(exit code %d)\n' "$code"; fi
}

say "Two Windows programs that play containerd and kubelet, in several versions (lab/)"
lab=$(lab/build.sh services)
cp "$lab/containerd-v1.7.12.exe" "$work/containerd.exe"
cp "$lab/kubelet-v1.29.0.exe" "$work/kubelet.exe"
(cd "$work" && ls -l containerd.exe kubelet.exe)

say "A node to try on: Windows Server 2022 with containerd 1.6.27 and kubelet 1.28.4"
run 0 swdt sandbox up --name demo --state-dir "$work/state"

cd "$work"
credentials=$(sed -n '/^  credentials:/,/^$/p' "state/demo/node.yaml")
cat >swdt.yaml <<YAML
apiVersion: windows.k8s.io/v1alpha1
kind: Node
metadata:
  name: demo
spec:
$credentials
  setup:
    enableRDP: true
    features:
      - Containers
    hosts:
      - address: 10.0.0.10
        names: [registry.example]
    path:
      - C:\\k
  kubernetes:
    provisioners:
      - name: containerd
        version: 1.7.12
        sourceURL: ./containerd.exe
        destination: C:\\Program Files\\containerd\\bin\\containerd.exe
      - name: kubelet
        sourceURL: ./kubelet.exe
        destination: C:\\k\\kubelet.exe
YAML
say "What we want of it: swdt.yaml"
run 0 sed -n '/^  setup:/,$p' swdt.yaml

say "Set the node up. First only look, then do it, then find that there is nothing to do"
run 0 swdt setup --dry-run
run 0 swdt setup
run 0 swdt setup

say "Bring both binaries onto the node: one transaction, one restart in the right order"
run 0 swdt kubernetes
say "Again: nothing differs, so nothing is written and nothing restarts"
run 0 swdt kubernetes

say "Now a kubelet that crashes at its start, as it happens on a Friday"
cp "$lab/kubelet-v1.29.1-crash-at-start.exe" kubelet.exe
run 4 swdt kubernetes
say "The node runs what ran before"
run 0 swdt status --output text

say "And back one more version, on purpose"
run 0 swdt rollback kubelet
run 0 swdt status

say "That was it. The same on your node: swdt config init > swdt.yaml"
