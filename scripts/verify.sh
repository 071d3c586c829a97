#!/usr/bin/env bash
# Checks that need no test run. Each problem is printed; ends with 1 if there was
# any.
set -uo pipefail
cd "$(dirname "$0")/.."

failed=0
check() { # NAME COMMAND…
	local name=$1 output
	shift
	if output=$("$@" 2>&1); then
		printf 'ok    %s\n' "$name"
	else
		printf 'FAIL  %s\n%s\n' "$name" "$output"
		failed=1
	fi
}

formatted() {
	local unformatted
	unformatted=$(git ls-files -z --cached --others --exclude-standard '*.go' | xargs -0 ls 2>/dev/null | xargs gofmt -l)
	[[ -z $unformatted ]] || { echo "$unformatted: run gofmt -w"; return 1; }
}

lint() {
	local tool
	tool=$(mktemp -d)
	trap 'rm -rf "$tool"' RETURN
	(cd tools && go build -o "$tool/staticcheck" honnef.co/go/tools/cmd/staticcheck) &&
		"$tool/staticcheck" ./... &&
		GOOS=windows "$tool/staticcheck" ./cmd/... ./internal/host/... ./internal/sandbox/... ./internal/ssh/... &&
		(cd lab && GOOS=windows "$tool/staticcheck" ./... && cd pods && GOOS=windows "$tool/staticcheck" ./...)
}

# The hashes of generated files, to see whether generating changes them: unlike
# `git diff`, this also works on top of changes that are not committed yet.
generated() {
	git ls-files --cached --others --exclude-standard '*.pb.go' 'api/*/schema.json' 'docs/reference/*.md' 'docs/rules/*.md' | sort | xargs sha256sum
}

fresh() {
	command -v protoc >/dev/null || { echo "protoc is missing: scripts/install-test-deps.sh"; return 1; }
	local before
	before=$(generated)
	scripts/generate.sh || return 1
	[[ $before == "$(generated)" ]] || { echo "generated files were stale; they are fresh now: commit them"; return 1; }
}

scripts() {
	local file
	for file in $(git ls-files --cached --others --exclude-standard 'scripts/*' 'lab/*.sh' '.ci/*'); do
		if head -1 "$file" | grep -q bash; then bash -n "$file" || return 1; fi
	done
}

check "gofmt" formatted
for system in linux darwin windows; do
	check "vet for $system" env GOOS=$system go vet ./...
done
check "vet of end-to-end tests" go vet -tags e2e ./e2e/...
check "vet of lab" bash -c 'cd lab && go vet ./... && GOOS=windows go vet ./... && cd pods && go vet ./... && GOOS=windows go vet ./...'
check "vet of tools" bash -c 'cd tools && go vet ./...'
check "layers: imports go down only" go test ./internal/architecture/...
check "staticcheck" lint
check "generated files" fresh
check "go.mod is tidy" go mod tidy -diff
for module in lab lab/kubelet lab/kubernetes lab/pods tools; do
	check "$module/go.mod is tidy" bash -c "cd $module && go mod tidy -diff"
done
check "shell scripts" scripts
exit $failed
