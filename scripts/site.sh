#!/usr/bin/env bash
# Makes a site of the documents in a folder (default: dist/site), with mkdocs, and checks its links.
# With --shots it also opens pages in Chromium, in two widths, tries the search, and writes pictures
# to bin/shots.
#   scripts/site.sh [--shots] [FOLDER]
set -euo pipefail
cd "$(dirname "$0")/.."

shots=
if [[ ${1-} == --shots ]]; then
	shots=1
	shift
fi
out=$(realpath -m "${1:-dist/site}")
command -v mkdocs >/dev/null || { echo "mkdocs is missing: scripts/install-test-deps.sh" >&2; exit 1; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
go -C tools build -o "$work/site" ./site
"$work/site" stage "$work/source"
mkdocs --quiet build --strict --clean --config-file "$work/source/mkdocs.yml" --site-dir "$out"
"$work/site" check "$out"
if [[ $shots ]]; then
	rm -rf bin/shots
	"$work/site" shots "$out" bin/shots
fi
