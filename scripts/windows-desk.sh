#!/usr/bin/env bash
# Runs the scripts of internal/cli/testdata/script with a swdt.exe under Wine, and writes the results
# into docs/windows-desk.md: the table, and of which day and commit it is. With -k, or with a REGEXP, it keeps the page.
#   scripts/windows-desk.sh [-k] [REGEXP of the scripts' names]
set -euo pipefail
cd "$(dirname "$0")/.."

keep=
if [[ ${1-} == -k ]]; then
	keep=1
	shift
fi
day=$(LC_ALL=C date -u '+%-d %B %Y')
commit="commit $(git rev-parse --short=12 HEAD)"
changed=$(git status --porcelain)
if [[ -n $changed ]]; then commit+=" with changes"; fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# Wine 8 answers Windows' newer way of deleting with a status on which Go does not fall back.
library=$(go env GOROOT)/src/internal/syscall/windows/at_windows.go
sed 's/^\tcase STATUS_INVALID_INFO_CLASS,/\tcase NTStatus(0xC0000002), STATUS_INVALID_INFO_CLASS,/' "$library" >"$work/at_windows.go"
! cmp -s "$library" "$work/at_windows.go" || { echo "$library has changed: adapt this script" >&2; exit 1; }
printf '{"Replace": {"%s": "%s"}}\n' "$library" "$work/at_windows.go" >"$work/overlay.json"

[[ $# -eq 0 ]] || keep=1 # a part of the scripts is not the whole table
code=0
scripts/wine-test.sh -overlay "$work/overlay.json" -ldflags "-s -w" -count=1 -timeout 40m -v -parallel 6 \
	-run "^TestScripts\$/${1:-.}" ./internal/cli >"$work/log" 2>&1 || code=$?
grep -aE '^ +FAIL: |^panic' "$work/log" || true
grep -aE '^ +--- (PASS|FAIL|SKIP): TestScripts/' "$work/log" | awk '{
	sub("TestScripts/", "", $3)
	result = $2 == "PASS:" ? "passes" : $2 == "SKIP:" ? "skipped" : "fails"
	printf "| `%s` | %s |\n", $3, result }' | sort >"$work/rows"
[[ -s $work/rows ]] || { tail -20 "$work/log" >&2; exit 1; }
if [[ -z $keep ]]; then
	page=docs/windows-desk.md
	{
		sed '/^<!-- written by scripts\/windows-desk.sh -->$/q' "$page"
		printf '\nThe table is of %s, %s.\n' "$day" "$commit"
		printf '\n| script | under Wine |\n|---|---|\n'
		cat "$work/rows"
	} >"$work/page"
	cp "$work/page" "$page"
fi
cut -d'|' -f3 "$work/rows" | sort | uniq -c
exit "$code"
