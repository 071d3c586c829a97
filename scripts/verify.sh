#!/usr/bin/env bash
# Runs the checks that need no test run. Prints each problem, and exits with 1 if
# there was any.
#   scripts/verify.sh [REGEXP of the checks' names]
#
# shellcheck disable=SC2317,SC2329 # check calls the functions
set -uo pipefail
cd "$(dirname "$0")/.." || exit

only=${1:-.}
failed=0 ran=0
check() { # NAME COMMAND…
	local name=$1 output begin=$SECONDS
	shift
	[[ $name =~ $only ]] || return 0
	ran=1
	if output=$("$@" 2>&1); then
		printf 'ok    %s (%d s)\n' "$name" $((SECONDS - begin))
	else
		printf 'FAIL  %s\n%s\n' "$name" "$output"
		failed=1
	fi
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

# testdata_packages prints the packages in testdata folders of the first module,
# which ./... leaves out.
testdata_packages() {
	local folder
	files '*/testdata/*.go' | xargs -rn1 dirname | sort -u | while read -r folder; do
		[[ -e $folder/go.mod ]] || echo "./$folder"
	done
}

# windows_packages prints the packages that have other files on Windows than here.
windows_packages() {
	local packages='{{.ImportPath}} {{.GoFiles}} {{.TestGoFiles}} {{.XTestGoFiles}}' testdata
	mapfile -t testdata < <(testdata_packages)
	comm -23 \
		<(GOOS=windows go list -e -f "$packages" ./... "${testdata[@]}" | sort) \
		<(GOOS=linux go list -e -f "$packages" ./... "${testdata[@]}" | sort) | cut -d' ' -f1
}

# each_module runs a command in every module but the first, once for each system
# for which the module has packages. The packages are its last arguments.
each_module() { # COMMAND…
	local folder system packages result=0
	for folder in $(modules); do
		for system in linux windows; do
			packages=$(cd "$folder" && GOOS=$system go list ./...) || { result=1; continue; }
			# shellcheck disable=SC2086 # one word for each package
			[[ -z $packages ]] || (cd "$folder" && GOOS=$system "$@" $packages) || { echo "in $folder for $system"; result=1; }
		done
	done
	return "$result"
}

formatted() {
	local unformatted
	unformatted=$(files '*.go' | xargs gofmt -l)
	[[ -z $unformatted ]] || { echo "$unformatted: run gofmt -w"; return 1; }
}

lint() {
	local tool packages
	tool=$(mktemp -d)
	trap 'rm -rf "$tool"' RETURN
	mapfile -t packages < <(windows_packages)
	(cd tools && go build -o "$tool/staticcheck" honnef.co/go/tools/cmd/staticcheck) &&
		"$tool/staticcheck" ./... &&
		"$tool/staticcheck" -tags e2e ./e2e/... &&
		GOOS=windows "$tool/staticcheck" "${packages[@]}" &&
		each_module "$tool/staticcheck"
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
	local tool
	tool=$(mktemp -d)
	trap 'rm -rf "$tool"' RETURN
	go -C tools build -o "$tool/licenses" ./licenses && "$tool/licenses"
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
	files | xargs -d '\n' awk 'FNR == 1 && /^#!.*sh$/ { print FILENAME } { nextfile }' | xargs shellcheck
}

check "gofmt" formatted
for system in linux darwin windows; do
	check "vet for $system" env GOOS=$system go vet ./...
done
check "vet of end-to-end tests" go vet -tags e2e ./e2e/...
# shellcheck disable=SC2046 # one word for each package
check "vet of test programs" env GOOS=windows go vet $(testdata_packages)
check "vet of other modules" each_module go vet
check "imports keep the rules" go test ./internal/architecture/...
check "readiness cases select their specs" go test ./internal/proof/readiness/...
check "staticcheck" lint
check "licences of linked modules" licences
check "generated files" fresh
check "go.mod of every module is tidy" tidy
check "links and names in documents" go test ./internal/docgen
check "site of the documents" site
check "shellcheck" scripts
check "workflows" workflows
check "language" scripts/language.sh
((ran)) || { echo "no check has a name like $only" >&2; exit 2; }
exit $failed
