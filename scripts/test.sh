#!/usr/bin/env bash
# The whole suite, cheapest first. Ends with 0 when every test passed and none was
# skipped that should have run here (scripts/expected-skips.txt).
set -euo pipefail
cd "$(dirname "$0")/.."

title() { printf '\n== %s\n' "$*"; }

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# run NAME FOLDER COMMAND… runs a `go test -json` in a folder, prints a line a
# package and every failure, and records it all for the count of skips.
run() {
	local name=$1 folder=$2
	shift 2
	(cd "$folder" && "$work/gotestsum" --format pkgname --format-hide-empty-pkg --hide-summary skipped \
		--jsonfile "$work/$name.json" --raw-command -- "$@")
}

title "what the tests need"
scripts/install-test-deps.sh
(cd tools && go build -o "$work/" gotest.tools/gotestsum ./skips)
make --no-print-directory build
SWDT_LAB=$(lab/build.sh)
SWDT_BIN=$PWD/bin/swdt
export SWDT_LAB SWDT_BIN

# Four packages at a time: most of them wait more than they compute.
title "host side: unit, property and simulated tests, with the race detector"
run unit . go test -json -race -p 4 -timeout 30m ./api/... ./cmd/... ./internal/...
# The race detector's own memory would spoil this one.
run memory . go test -json -run 'TestThirtyNodesInLittleMemory$' ./internal/cli

title "lab and tools"
run lab lab go test -json ./...
run pods lab/pods go test -json ./...
run tools tools go test -json ./...

title "Windows side, under Wine"
run wine . scripts/wine-test.sh -json ./internal/host/windows/...

title "end to end: the real agent, real services, real SSH"
run e2e . go test -json -tags e2e -timeout 30m ./e2e/...

title "all"
"$work/skips" -expected scripts/expected-skips.txt "$work"/*.json
