#!/usr/bin/env bash
# Parses every PowerShell script that swdt ships or generates with a grammar that is not ours: that of tree-sitter, which
# editors use. Our own stand-ins for PowerShell know only what we believe PowerShell to know. Each cmdlet and parameter must
# be one of scripts/cmdlets.txt, whose sources are an inventory of a real Windows PowerShell 5.1 and Microsoft's pages.
#
# The scripts are all .ps1 files of the tree, which tests hold against what swdt generates. The grammar is stricter than
# PowerShell in places: write the script so that both accept it. Needs Node.js.
#   scripts/powershell.sh [FILE…]
set -euo pipefail
cd "$(dirname "$0")/.."

command -v node >/dev/null || { echo "node is missing: scripts/install-test-deps.sh"; exit 1; }
grammar=$(lab/build.sh powershell)
if (($# == 0)); then
	mapfile -t files < <(git ls-files --cached --others --exclude-standard -- '*.ps1' | xargs -r ls -d 2>/dev/null)
	set -- "${files[@]}"
fi
# Without V8's optimising compiler: it would spend 15 s on the grammar.
node --liftoff-only scripts/powershell.cjs "$grammar" scripts/cmdlets.txt "$@"
