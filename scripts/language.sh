#!/usr/bin/env bash
# Counts the phrases of tools/language/patterns.txt in comments, strings and
# documents. Fails if there are more or fewer than tools/language/accepted.txt says.
#
#   scripts/language.sh                   the check of make verify
#   scripts/language.sh -list [PATTERN…]  print every place
#   scripts/language.sh -write            lower the accepted numbers
set -euo pipefail
cd "$(dirname "$0")/.."
tool=$(mktemp -d)
trap 'rm -rf "$tool"' EXIT
go -C tools build -o "$tool/language" ./language
git ls-files --cached --others --exclude-standard | "$tool/language" "$@"
