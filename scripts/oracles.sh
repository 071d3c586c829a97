#!/usr/bin/env bash
# Holds swdt against what others wrote: their data, their engines, their programs. docs/oracles.md has the list, with
# licences, results and the differences that are accepted.
#   scripts/oracles.sh
#
# The sources come through Go's module proxy, and are changed in a copy alone. The programs are packages of Debian and
# Ubuntu. It needs the network the first time.
# shellcheck disable=SC2317,SC2329 # the last loop calls the functions
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/env.sh

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

command -v promtool >/dev/null || { echo "promtool is missing: apt-get install prometheus"; exit 1; }
command -v skopeo >/dev/null || { echo "skopeo is missing: apt-get install skopeo"; exit 1; }

# source_of prints the folder of a module in Go's cache, after it has compared the module's hash.
source_of() { # MODULE@VERSION HASH
	local found
	found=$(go mod download -json "$1")
	grep -qF "\"Sum\": \"$2\"" <<<"$found" || { echo "$1 has another hash than $2" >&2; return 1; }
	sed -n 's/^\t"Dir": "\(.*\)",$/\1/p' <<<"$found"
}

# copy_of copies a module into a folder in which its files can be changed.
copy_of() { # MODULE@VERSION HASH FOLDER
	local folder
	folder=$(source_of "$1" "$2")
	cp -r "$folder" "$3"
	chmod -R u+w "$3"
}

gitleaks() {
	copy_of github.com/zricethezav/gitleaks/v8@v8.30.1 h1:PmEvCfVI7ti9dV3s5aMZUY7sS2GxRvG3yzih7E+cS3w= "$work/gitleaks"
	cp scripts/oracles/gitleaks-validate.txt "$work/gitleaks/cmd/generate/config/utils/validate.go"
	(cd "$work/gitleaks/cmd/generate/config" && GOFLAGS=-mod=mod go build -o "$work/generate" . &&
		TRUE_POSITIVES=$work/gitleaks.jsonl "$work/generate" "$work/gitleaks.toml")
	SWDT_GITLEAKS=$work/gitleaks.jsonl tested ./internal/format/redact TestGitleaks
}

cyclonus() {
	copy_of github.com/mattfenwick/cyclonus@v0.5.6 h1:8bZ+v2Kcn4H7Z+OhX1l3BQrAHqUdmBwdBBiDIk3Wj7s= "$work/cyclonus"
	mkdir -p "$work/cyclonus/cmd/swdt"
	cp scripts/oracles/cyclonus-main.txt "$work/cyclonus/cmd/swdt/main.go"
	# The accepted difference: see TestAgreesWithCyclonus.
	sed -i '/case metav1.LabelSelectorOpNotIn:/,/return false/ s/return false/return true/' "$work/cyclonus/pkg/kube/labelselector.go"
	(cd "$work/cyclonus" && GOFLAGS=-mod=mod go build -o "$work/answers" ./cmd/swdt)
	SWDT_CYCLONUS=$work/answers tested ./internal/proof/policy TestAgreesWithCyclonus
}

toml_test() {
	local folder
	folder=$(source_of github.com/toml-lang/toml-test@v1.6.0 h1:lZ9cKL1MmS9iXA8O8pjYSPg8F4afigKluaxxxjQkRJ8=)
	SWDT_TOML_TEST=$folder tested ./internal/format/containerdconfig TestOverlayOfTOMLTest
}

promtool_metrics() {
	tested ./internal/inspect/stats/export TestPromtoolAcceptsTheMetrics
}

# Tests record every object that swdt creates; a program within the module of the lab's control plane then checks them
# as its API server does. The tests that are left out need the lab's control plane.
manifests() {
	mkdir "$work/manifests" "$work/admit"
	SWDT_MANIFESTS=$work/manifests go test -tags oracles -vet=off -count 1 -p 2 -skip 'Real|Lab' ./internal/join/podnetwork \
		./internal/proof/{ability,netpol,scale} >"$work/log" 2>&1 || { cat "$work/log"; return 1; }
	SWDT_MANIFESTS=$work/manifests tested ./internal/rollout/manifests TestWriteManifests
	SWDT_MANIFESTS=$work/manifests tested ./internal/node/viapod TestWriteManifests
	cp lab/kubernetes/go.{mod,sum} "$work/admit"
	cp scripts/oracles/manifests-main.txt "$work/admit/main.go"
	(cd "$work/admit" && GOFLAGS="$GOFLAGS -mod=mod" go build -o "$work/admit/admit" .)
	"$work/admit/admit" "$work/manifests"
}

# The code of two API servers judges pods; swdt lint must find what they reject.
lint_pods() {
	local version module
	mkdir "$work/judges"
	while read -r version module; do
		mkdir "$work/judge-$version"
		cp "$module"/go.{mod,sum} "$work/judge-$version"
		cp scripts/oracles/pods-main.txt "$work/judge-$version/main.go"
		(cd "$work/judge-$version" && GOFLAGS="$GOFLAGS -mod=mod" go build -o "$work/judges/$version" .)
	done <<-'END'
		1.36.3 lab/kubernetes
		1.35.4 lab/kubernetes/1.35.4
	END
	SWDT_ADMIT=$work/judges tested ./internal/cluster/lint TestAgreesWithValidation
}

skopeo_images() {
	tested ./internal/obtain/publish TestSkopeoCopiesWhatIsPublished
	(cd tools && tested ./images TestSkopeoReadsTheLayouts)
}

# tested runs one test, and prints its figures.
tested() { # PACKAGE TEST
	go test -tags oracles -vet=off -count 1 -run "^$2\$" -v "$1" >"$work/log" 2>&1 || { cat "$work/log"; return 1; }
	grep -q -- "--- PASS: $2" "$work/log" || { echo "$2 did not run"; return 1; }
	sed -n 's/^ *[a-z_]*_test.go:[0-9]*: \([0-9]* .*\|[a-zA-Z0-9 ]*: [0-9]* of .*\)$/    \1/p' "$work/log"
}

failed=0
for oracle in gitleaks cyclonus toml_test promtool_metrics manifests lint_pods skopeo_images; do
	echo "$oracle"
	"$oracle" || { echo "FAIL  $oracle"; failed=1; }
done
exit $failed
