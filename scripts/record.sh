#!/usr/bin/env bash
# Records the session of scripts/session.txt on a sandbox: docs/img/session.cast (asciinema),
# docs/img/session.svg, a still of it (session.png) and docs/guides/session.md. Needs `make build`, termtosvg and chromium.
set -euo pipefail
cd "$(dirname "$0")/.."

for tool in termtosvg chromium; do
	command -v $tool >/dev/null || { echo "$tool is missing: apt-get install --no-install-recommends $tool" >&2; exit 1; }
done
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
# The still is of a moment at which the push that rolled back is there.
{
	echo '<body style="margin:0"><style>*{animation-delay:-9s !important;animation-play-state:paused !important}</style>'
	cat docs/img/session.svg
} >"$home/still.html"
HOME=$home chromium --headless --no-sandbox --disable-gpu --hide-scrollbars --window-size=927,591 \
	--screenshot="$PWD/docs/img/session.png" "file://$home/still.html" 2>/dev/null
