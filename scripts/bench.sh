#!/usr/bin/env bash
# Compares swdt with its peers and rewrites docs/benchmarks.md. Arguments go to the
# program:
#   scripts/bench.sh -parts sizes -pairs kubelet,containerd-version
#   scripts/bench.sh -parts pushes -links '10 MB/s + 5 ms' -repeat 1
# Run it on an idle machine, as root (sshd), on Debian or Ubuntu.
set -euo pipefail
cd "$(dirname "$0")/.."
scripts/install-bench-deps.sh
make --no-print-directory build
lab=$(lab/build.sh bench)
if [[ " $* " != *" -parts "* || " $* " == *vm* ]]; then
	lab/build.sh guest >/dev/null
fi
go build -o bin/bench ./bench
exec bin/bench -root . -lab "$lab" -swdt bin/swdt "$@"
