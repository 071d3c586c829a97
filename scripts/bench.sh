#!/usr/bin/env bash
# Measures swdt beside its peers and writes docs/benchmarks.md anew. Arguments go
# to the program:
#   scripts/bench.sh -parts sizes -pairs kubelet,containerd-version
#   scripts/bench.sh -parts pushes -links '10 MB/s + 5 ms' -repeat 1
# Run it where little else runs, as root (sshd), on Debian or Ubuntu.
set -euo pipefail
cd "$(dirname "$0")/.."
scripts/install-bench-deps.sh
make --no-print-directory build
lab=$(lab/build.sh bench)
go build -o bin/bench ./bench
exec bin/bench -root . -lab "$lab" -swdt bin/swdt "$@"
