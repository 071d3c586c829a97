#!/usr/bin/env bash
# Shows that checks of scripts/verify.sh and tests of the tree can fail: they pass in a copy of the tree, and after
# a defect was planted for each, each fails and names the file or the module.
set -euo pipefail
cd "$(dirname "$0")/.."

copy=$(mktemp -d)
trap 'rm -rf "$copy"' EXIT
git ls-files -z --cached --others --exclude-standard | xargs -0 ls -d 2>/dev/null | tar -cf - -T - | tar -xf - -C "$copy"
mkdir -p "$copy/internal/node/agentbin" "$copy/internal/proof/probebin"
cp internal/node/agentbin/*.zst "$copy/internal/node/agentbin/"
cp internal/proof/probebin/*.zst "$copy/internal/proof/probebin/"
cd "$copy"
git init -q && git add -A

checks='^(licences of linked modules|types for darwin and windows|shellcheck|no large files|workflows|language|PowerShell by a foreign grammar)$'
scripts/verify.sh "$checks" || { echo "verify-test: the checks fail without a planted defect" >&2; exit 1; }
# Tests that read the tree: Go's cache must not answer with these results after a defect was planted.
tests() { (. scripts/env.sh && go test -vet=off ./internal/architecture ./internal/docgen); }
tests || { echo "verify-test: the tests of the tree fail without a planted defect" >&2; exit 1; }

# shellcheck disable=SC2016 # a defect that shellcheck finds
printf '#!/bin/sh\nrm $1\n' >scripts/planted.sh
sed -i 's/runs-on: ubuntu-24.04/runs-on: ${{ planted.system }}/' .github/workflows/release.yaml
head -c 600000 /dev/zero >planted.exe
printf 'Get-VM -Id '\''a'\''b |\n' >scripts/planted.ps1
printf 'Get-Item -Nowhere x\n' >scripts/planted-parameter.ps1
printf '\n[planted](planted-and-missing.md)\n' >>docs/platforms.md
sed -i '/^MIT$/d' tools/licenses/allowed.txt
printf 'package agent\n\nimport _ "github.com/swdt-dev/swdt/internal/localfile"\n' >internal/agent/planted.go
printf 'package main\n\nimport "syscall"\n\nvar _ = syscall.Kill\n' >cmd/swdt/planted_windows.go
printf '# Planted\n\nNobody reads this page.\n' >docs/guides/planted.md

code=0
scripts/verify.sh "$checks" >planted.log 2>&1 || code=$?
cat planted.log
[[ $code -eq 1 ]] || { echo "verify-test: exit code $code with planted defects, not 1" >&2; exit 1; }
# named fails unless a check has failed and its output, up to the next check, has the text.
named() { # CHECK TEXT
	awk -v check="FAIL  $1" '/^(ok   |FAIL ) / { inside = $0 == check } inside' planted.log | grep -qF -- "$2" ||
		{ echo "verify-test: the check \"$1\" does not name $2" >&2; exit 1; }
}
named "shellcheck" "scripts/planted.sh"
named "no large files" "planted.exe"
named "workflows" ".github/workflows/release.yaml"
named "types for darwin and windows" "cmd/swdt/planted_windows.go"
named "licences of linked modules" "has the licence MIT"
named "language" "nobody"
named "PowerShell by a foreign grammar" "scripts/planted.ps1:1"
named "PowerShell by a foreign grammar" "scripts/planted-parameter.ps1:1:10: no parameter of Get-Item"
if tests >planted.log 2>&1; then
	echo "verify-test: the tests of the tree passed with planted defects" >&2
	exit 1
fi
for text in "internal/agent imports internal/localfile" "planted-and-missing.md"; do
	grep -qF "$text" planted.log || { cat planted.log; echo "verify-test: the tests of the tree do not name $text" >&2; exit 1; }
done

# The path of the lab names its programs, so tests that read it from their environment run again after a change.
export SWDT_LAB=$copy/lab-of-the-test
mkdir -p "$SWDT_LAB/linux" && touch "$SWDT_LAB"/linux/{grpcurl,etcd}{,.key}
before=$(lab/build.sh path)
echo 2 >"$SWDT_LAB/linux/etcd.key"
[[ $before == "$(lab/build.sh path)" ]] || { echo "verify-test: a program that was not asked for changed the lab's path" >&2; exit 1; }
echo 2 >"$SWDT_LAB/linux/grpcurl.key"
after=$(lab/build.sh path)
[[ $before != "$after" && -e $after/linux/grpcurl && ! -e $after/linux/etcd ]] || {
	echo "verify-test: another program left the lab's path as it was, or a program is there that was not asked for" >&2
	exit 1
}
echo "six checks and two tests found eight planted defects, and a change of the lab changes its path"
