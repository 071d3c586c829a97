#!/usr/bin/env bash
# The whole suite, cheapest first. Ends with 0 when all of it passed.
set -euo pipefail
cd "$(dirname "$0")/.."

title() { printf '\n== %s\n' "$*"; }

title "what the tests need"
scripts/install-test-deps.sh
make --no-print-directory build
SWDT_LAB=$(lab/build.sh)
SWDT_BIN=$PWD/bin/swdt
export SWDT_LAB SWDT_BIN

# Four packages at a time: most of them wait more than they compute.
title "host side: unit, property and simulated tests, with the race detector"
go test -race -p 4 -timeout 30m ./api/... ./cmd/... ./internal/...
go test -run 'TestThirtyNodesInLittleMemory$' ./internal/cli # which the race detector's own memory would spoil

title "lab"
(cd lab && go test ./... && cd pods && go test ./...)

title "Windows side, under Wine"
scripts/wine-test.sh

title "end to end: the real agent, real services, real SSH"
go test -tags e2e -timeout 30m ./e2e/...
