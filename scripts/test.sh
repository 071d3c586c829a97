#!/usr/bin/env bash
# Runs all tests, the cheapest first. Exits with 0 if every test passed, and only
# tests of scripts/expected-skips.txt were skipped. With SWDT_LAB_KIND=required, as in CI, it also
# makes a real cluster of kind with a Windows node, for which it builds Kubernetes.
set -euo pipefail
cd "$(dirname "$0")/.."

title() { printf '\n== %s (after %d min)\n' "$*" $((SECONDS / 60)); }

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# run NAME FOLDER COMMAND… runs a `go test -json` in a folder, prints a line for each
# package and every failure, and records the events for the check of skips.
run() {
	local name=$1 folder=$2
	shift 2
	(cd "$folder" && "$work/gotestsum" --format pkgname --format-hide-empty-pkg --hide-summary skipped \
		--jsonfile "$work/$name.json" --raw-command -- "$@")
}

kind=${SWDT_LAB_KIND:-} # only the last stage asks for it
unset SWDT_LAB_KIND

title "packages that the tests need"
scripts/install-test-deps.sh
(cd tools && go build -o "$work/" gotest.tools/gotestsum ./skips)
make --no-print-directory build
SWDT_LAB=$(lab/build.sh)
SWDT_BIN=$PWD/bin/swdt
export SWDT_LAB SWDT_BIN

# These tests compute for long, up to ten times as long with the race detector, or start swdt some hundred times.
# Other tests run the same code with it.
long='TestCutAnywhere|TestEventFiles|TestEveryInterruption|TestInLinesLongerThanTheWindow|TestLargeDocuments|'
long+='TestNoStreamHarmsWhoReadsIt|TestThePiecesDoNotMatter|TestUpAndDownAreKilledAnywhere'
title "your machine: unit, property and simulated tests, with the race detector"
# Three packages at a time and eight tests of each keep two processors busy. With twice as many, a command of the
# scripts waited seven seconds until it had started, on a slow machine, and the limits of some tests were too short.
run unit . go test -json -race -vet=off -p 3 -parallel 8 -timeout 40m -skip "^($long)\$" ./api/... ./cmd/... ./internal/...
title "your machine: tests that compute for long or measure memory, without the race detector"
run long . go test -json -vet=off -timeout 30m -run "^($long|TestThirtyNodesInLittleMemory)\$" ./internal/agent/pktmon \
	./internal/agent/swap ./internal/cli ./internal/format/redact/... ./internal/inspect/stats/record ./internal/node/reply

title "lab and tools"
run lab lab go test -json ./...
run pods lab/pods go test -json ./...
run tools tools go test -json ./...

title "the node: Windows code under Wine"
run wine . scripts/wine-test.sh -json ./internal/platform/windows/...

title "end to end: the real agent, real services, real SSH"
skip=() required=()
if [[ $kind == required ]]; then
	skip=(-skip '^TestUpAndDown$') required=(-required kind)
fi
run e2e . go test -json -tags e2e -timeout 60m "${skip[@]}" ./e2e/...

if [[ $kind == required ]]; then
	title "end to end: a cluster of kind with a Windows node"
	scripts/install-kind-deps.sh
	# In a folder of its own: tests of the other stages run as soon as a control plane is there.
	whole=${XDG_CACHE_HOME:-$HOME/.cache}/swdt/lab-up
	SWDT_LAB=$whole lab/build.sh up
	cp -an "$SWDT_LAB/." "$whole/"
	run kind . env SWDT_LAB="$whole" SWDT_LAB_KIND=required go test -json -tags e2e -timeout 30m -run '^TestUpAndDown$' ./e2e
fi

title "skipped tests"
"$work/skips" -expected scripts/expected-skips.txt "${required[@]}" "$work"/*.json
