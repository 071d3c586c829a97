#!/bin/sh
# Runs the tests of packages for Windows under Wine.
#   scripts/wine-test.sh [go test flags and packages]
set -eu
cd "$(dirname "$0")/.."
if [ $# -eq 0 ]; then
    set -- ./internal/platform/windows/...
fi
export CGO_ENABLED=0 GOOS=windows GOARCH=amd64
exec go test -tags grpcnotrace -exec "$PWD/scripts/wine-exec" "$@"
