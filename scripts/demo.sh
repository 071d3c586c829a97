#!/usr/bin/env bash
# Shows the swdt in a folder (default bin) on a sandbox: a simulated Windows node that runs the code of
# swdt's agent behind real SSH. The swdt needs no agent inside. Cleans up after itself.
set -euo pipefail
cd "$(dirname "$0")/.."

PATH=$PWD/${1:-bin}:$PATH
work=$(mktemp -d)
export NO_COLOR=${NO_COLOR-}
cleanup() {
	swdt sandbox down --name demo --state-dir "$work/state" >/dev/null 2>&1 || true
	swdt config untrust "$work/swdt.yaml" >/dev/null 2>&1 || true
	rm -rf "$work"
}
trap cleanup EXIT

title() { printf '\n# %s\n' "$*"; }

# run prints a command, runs it, and fails if the exit code is not the expected one.
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

title "A stand-in for a node: Windows Server 2022 with containerd 1.6.27 and kubelet 1.28.4"
run 0 swdt sandbox up --name demo --state-dir "$work/state"

cd "$work"
binaries=state/demo/binaries
title "Newer binaries to push, which the sandbox has written: made up, as the machine is"
run 0 ls "$binaries"
cp "$binaries/containerd.exe" "$binaries/kubelet.exe" .
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
title "The wanted state of the node: swdt.yaml"
# shellcheck disable=SC2016 # sed's last line, no variable
run 0 sed -n '/^  setup:/,$p' swdt.yaml

title "No command line names this file: swdt finds it here, and uses it once you have trusted it"
run 0 swdt config trust

title "Set the node up: first a preview, then the changes, then nothing left to do"
run 0 swdt setup --dry-run
run 0 swdt setup
run 0 swdt setup

title "Push both binaries to the node: one transaction, one restart in the right order"
run 0 swdt push
title "Push again: nothing differs, so nothing is written and nothing restarts"
run 0 swdt push

title "Push a kubelet that crashes at its start, as happens on a Friday"
cp "$binaries/kubelet-crashes.exe" kubelet.exe
run 4 swdt push
title "The node runs the previous kubelet again"
run 0 swdt status --output text

title "Roll back one more version, on purpose"
run 0 swdt rollback kubelet
run 0 swdt status

title "That is all. To do the same on your node, begin with: swdt config init --write"
