#!/usr/bin/env bash
# Makes the release of the checked-out commit in two new folders, the second time with an empty build
# cache, and fails unless each file of one is equal to that of the other. The second build takes most of an
# hour on two cores, and a few gigabytes.
set -euo pipefail
cd "$(dirname "$0")/.."

commit=$(git rev-parse HEAD)
work=$(mktemp -d)
trap 'chmod -R u+w "$work" && rm -rf "$work"' EXIT

# build makes the release in a new clone, and lists its files with their hashes.
build() { # FOLDER
	git clone -q . "$work/$1" && git -C "$work/$1" -c advice.detachedHead=false checkout -q "$commit"
	make -C "$work/$1" --no-print-directory release >"$work/$1.log" 2>&1 || { tail -20 "$work/$1.log" >&2; exit 1; }
	(cd "$work/$1/dist" && find . -type f -print0 | sort -z | xargs -0 sha256sum) >"$work/$1.sums"
}

echo "-- with the build cache of this machine"
build first
echo "-- with an empty build cache"
mkdir "$work/second-cache"
GOCACHE=$work/second-cache build a-second-folder

diff "$work/first.sums" "$work/a-second-folder.sums" || { echo "reproducible: the files above differ" >&2; exit 1; }
echo "two builds of $(git describe --tags --always "$commit") have $(wc -l <"$work/first.sums") equal files"
