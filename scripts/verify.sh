#!/usr/bin/env bash
# Runs the checks that need no test run. Prints each problem, and exits with 1 if
# there was any.
#   scripts/verify.sh [REGEXP of the checks' names]
#
# shellcheck disable=SC2016,SC2317,SC2329 # templates of Go have dollars; check calls the functions
set -uo pipefail
cd "$(dirname "$0")/.." || exit
. scripts/env.sh

only=${1:-.}
failed=0 ran=0
check() { # NAME COMMAND…
	local name=$1 output begin=$SECONDS cpu
	shift
	[[ $name =~ $only ]] || return 0
	ran=1
	measure && cpu=$spent
	if output=$("$@" 2>&1); then
		measure
		printf 'ok    %s (%d s, %d CPU-s)\n' "$name" $((SECONDS - begin)) $((spent - cpu))
	else
		printf 'FAIL  %s\n%s\n' "$name" "$output"
		failed=1
	fi
}

# measure sets spent to the processor time, in seconds, of the commands that have ended. A subshell would not
# know them.
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
measure() {
	times >"$scratch/times"
	spent=$(awk 'NR == 2 { split($1 "m" $2, t, /[ms]+/); print int(t[1] * 60 + t[2] + t[3] * 60 + t[4]) }' "$scratch/times")
}

# tool builds a program of tools/, unless it is up to date, and prints its path.
tool() { # PACKAGE
	go -C tools build -o ../bin/tools/ "$1" && echo "$PWD/bin/tools/${1##*/}"
}

# files prints the files of the tree, or those that match a pattern, also files that
# are not committed yet.
files() { # [PATTERN…]
	git ls-files -z --cached --others --exclude-standard -- "$@" | xargs -0r ls -d 2>/dev/null
}

# modules prints the folder of every Go module but the first.
modules() {
	files '*/go.mod' | xargs -n1 dirname
}

# This module is one file, for which vet and staticcheck would compile all of CoreDNS: its types are checked alone.
typed=lab/kind/coredns

# testdata_packages prints the packages in testdata folders of the first module,
# which ./... leaves out.
testdata_packages() {
	local folder
	files '*/testdata/*.go' | xargs -rn1 dirname | sort -u | while read -r folder; do
		[[ -e $folder/go.mod ]] || echo "./$folder"
	done
}

# windows_packages prints the packages of the current folder's module, and others, that have files for Windows
# which are not read here.
windows_packages() { # [PACKAGE…]
	local p='{{$p := .ImportPath}}'
	local files=$p'{{range .GoFiles}}{{$p}} {{.}}{{"\n"}}{{end}}{{range .TestGoFiles}}{{$p}} {{.}}{{"\n"}}{{end}}'
	files+='{{range .XTestGoFiles}}{{$p}} {{.}}{{"\n"}}{{end}}'
	comm -23 \
		<(GOOS=windows go list -e -f "$files" ./... "$@" | sort) \
		<(GOOS=linux go list -e -f "$files" ./... "$@" | sort) | cut -d' ' -f1 | sort -u
}

# each_module runs a command in every module but the first, on the packages for Linux and on those that have
# files for Windows. The packages are its last arguments.
each_module() { # COMMAND…
	local folder linux windows result=0
	for folder in $(modules); do
		[[ $folder != "$typed" ]] || continue
		# shellcheck disable=SC2086 # one word for each package
		(cd "$folder" && linux=$(GOOS=linux go list ./...) && windows=$(windows_packages) &&
			{ [[ -z $linux ]] || GOOS=linux "$@" $linux; } &&
			{ [[ -z $windows ]] || GOOS=windows "$@" $windows; }) || { echo "in $folder"; result=1; }
	done
	return "$result"
}

formatted() {
	local unformatted
	unformatted=$(files '*.go' | xargs gofmt -l)
	[[ -z $unformatted ]] || { echo "$unformatted: run gofmt -w"; return 1; }
}

# small finds programs that were built into the tree: no file that belongs there is that large.
small() {
	local large
	large=$(files | xargs -d '\n' stat -c '%s %n' | awk '$1 > 512 * 1024') || return 1
	[[ -z $large ]] || { echo "$large: larger than 512 KiB; remove it, or add it to .gitignore"; return 1; }
}

vet_windows() {
	local packages testdata
	mapfile -t testdata < <(testdata_packages)
	mapfile -t packages < <(windows_packages "${testdata[@]}")
	GOOS=windows go vet "${packages[@]}"
}

lint() {
	local staticcheck packages testdata
	staticcheck=$(tool honnef.co/go/tools/cmd/staticcheck) || return 1
	mapfile -t testdata < <(testdata_packages)
	mapfile -t packages < <(windows_packages "${testdata[@]}")
	"$staticcheck" -tags e2e ./... &&
		GOOS=windows "$staticcheck" "${packages[@]}" &&
		each_module "$staticcheck"
}

types() {
	"$(tool ./typecheck)" darwin windows && "$(tool ./typecheck)" -dir "$typed" linux
}

waits() {
	"$(tool ./waits)" -accepted tools/waits/accepted.txt .
}

# The table of CONTRIBUTING.md is that of scripts/stages.txt.
stages() {
	diff <("$(tool ./stages)" list) <(sed -n '/^| command | stage /,/^$/p' CONTRIBUTING.md | sed '/^$/d') ||
		{ echo "CONTRIBUTING.md has another table than scripts/stages.txt: paste what \`bin/tools/stages list\` prints"; return 1; }
}

# contents prints the hash of every file, to see whether generating changes one:
# unlike `git diff`, this also works on top of changes that are not committed yet.
contents() {
	files | sort | xargs -d '\n' sha256sum
}

fresh() {
	command -v protoc >/dev/null || { echo "protoc is missing: scripts/install-test-deps.sh"; return 1; }
	local before
	before=$(contents)
	scripts/generate.sh || return 1
	diff <(echo "$before") <(contents) || { echo "generated files were stale; they are fresh now: commit them"; return 1; }
}

workflows() {
	command -v shellcheck >/dev/null || { echo "shellcheck is missing: scripts/install-test-deps.sh"; return 1; }
	go tool -modfile=tools/go.mod actionlint
}

licences() {
	"$(tool ./licenses)"
}

site() {
	local folder
	folder=$(mktemp -d)
	trap 'rm -rf "$folder"' RETURN
	scripts/site.sh "$folder"
}

# The upstream release that one module builds cannot be tidied: a test of a package
# that it imports finds cloud.google.com/go/compute/metadata in two modules.
untidy=lab/containerd/1.6.27

tidy() {
	local folder result=0
	for folder in . $(modules); do
		[[ $folder == "$untidy" ]] || (cd "$folder" && go mod tidy -diff) || { echo "run: go -C $folder mod tidy"; result=1; }
	done
	return "$result"
}

scripts() {
	command -v shellcheck >/dev/null || { echo "shellcheck is missing: scripts/install-test-deps.sh"; return 1; }
	files | xargs -d '\n' awk 'FNR == 1 && /^#!.*sh$/ { print FILENAME } { nextfile }' | xargs shellcheck -x
}

check "gofmt" formatted
check "no large files" small
check "vet" go vet -tags e2e ./...
check "vet for windows" vet_windows
check "types for darwin and windows" types
check "vet of other modules" each_module go vet
check "staticcheck" lint
check "tests do not wait for the real clock" waits
check "stages" stages
check "licences of linked modules" licences
check "generated files" fresh
check "go.mod of every module is tidy" tidy
check "site of the documents" site
check "shellcheck" scripts
check "workflows" workflows
check "PowerShell by a foreign grammar" scripts/powershell.sh
check "language" scripts/language.sh
((ran)) || { echo "no check has a name like $only" >&2; exit 2; }
exit $failed
