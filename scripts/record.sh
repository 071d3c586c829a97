#!/usr/bin/env bash
# Records the session of scripts/session.txt on a sandbox: docs/img/session.cast (asciinema),
# docs/img/session.svg and docs/guides/session.md. Needs `make build` and termtosvg.
set -euo pipefail
cd "$(dirname "$0")/.."

command -v termtosvg >/dev/null || { echo "termtosvg is missing: apt-get install --no-install-recommends termtosvg" >&2; exit 1; }
PATH=$PWD/bin:$PATH
home=/tmp/swdt-session # the recording shows it
mkdir -m 700 "$home"
cleanup() {
	HOME=$home swdt sandbox down >/dev/null 2>&1 || true
	rm -rf "$home"
}
trap cleanup EXIT

go -C tools build -o ../bin/record ./record
bin/record -session scripts/session.txt -cast docs/img/session.cast -page docs/guides/session.md -home "$home"
termtosvg render docs/img/session.cast docs/img/session.svg --template window_frame --min-frame-duration 40 --loop-delay 5000
