#!/usr/bin/env bash
# Runs one stage of scripts/stages.txt. `make test`, `make nightly` and the others run all stages of a tier.
#   scripts/stage.sh NAME
# shellcheck disable=SC2317,SC2329 # the last line calls the functions
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/env.sh

# one_path goes on in a folder whose path all clones share, a link to this one: Go remembers the result of a test
# together with the paths of the files that it opened. While another clone's stage is there, the next link does, which
# has results of its own.
one_path() {
	local link folder=${XDG_CACHE_HOME:-$HOME/.cache}/swdt
	mkdir -p "$folder"
	for link in "$folder"/tree{,2,3,4}; do
		exec {one_path}>"$link.lock"
		if flock -n "$one_path" 2>/dev/null && ln -sfn "$PWD" "$link"; then
			cd "$link"
			return
		fi
		exec {one_path}>&-
	done
}
one_path

own=(./api/... ./cmd/... ./internal/...)
folder=${SWDT_STAGE_FOLDER:-bin/stages/by-hand} # the records of `go test -json`
mkdir -p "$folder"
folder=$(realpath "$folder")

# The programs of tests need no data for a debugger, and writing it takes a third of the time of a link.
tested=(go test -json -vet=off -ldflags=-w)

# run NAME FOLDER COMMAND… runs a `go test -json` in a folder, prints a line for each
# package and every failure, and records the events for the check of skips.
run() {
	local name=$1 where=$2
	shift 2
	[[ -x bin/tools/gotestsum ]] || tools
	local gotestsum=$PWD/bin/tools/gotestsum
	(cd "$where" && "$gotestsum" --format pkgname --format-hide-empty-pkg --hide-summary skipped \
		--jsonfile "$folder/$name.json" --raw-command -- "$@")
}

tools() {
	go -C tools build -o ../bin/tools/ gotest.tools/gotestsum ./skips ./mutants
}

# use_lab builds parts of the lab, and lets the tests use them, no others, and the programs of bin/. Both paths
# name what is in the folder, so Go's cache does not answer with a result of other programs.
use_lab() { # [PART…]
	local bin
	SWDT_LAB=$(lab/build.sh "$@")
	bin=${XDG_CACHE_HOME:-$HOME/.cache}/swdt/bin/$(find bin -maxdepth 2 -name 'swdt*' -type f -print0 | sort -z |
		xargs -0 sha256sum | sha256sum | cut -c1-16)
	mkdir -p "${bin%/*}"
	ln -sfn "$PWD/bin" "$bin"
	SWDT_BIN=$bin/swdt
	export SWDT_LAB SWDT_BIN
}

# end_to_end NAME FLAG… runs end-to-end tests, and other tests that use the lab.
end_to_end() {
	local name=$1
	shift
	run "$name" . go test -json -vet=off -tags e2e -timeout 110m "$@"
}

# skips fails if a test was skipped that should have run. [-required THING] RECORD…
skips() {
	bin/tools/skips -expected scripts/expected-skips.txt "$@"
}

# These tests run a sample of their cases, or all of them with SWDT_EVERY_POINT=1 (internal/testing/cases).
enumerations='^(TestEvery(Interruption|HeldFile)|Test.*InterruptedAnywhere.*|TestOffUndoesAnInterruptedOn|TestUpAndDownAreKilledAnywhere|TestKilledAtEachStepOfStartAndStop)$'
enumerating=(./internal/agent/pktmon ./internal/agent/swap ./internal/trace ./internal/rollout/onnode ./internal/vm/qemu)

stage_checks() {
	scripts/verify.sh
}

stage_programs() {
	tools
	make --no-print-directory build
}

stage_unit() {
	scripts/install-test-deps.sh
	SWDT_LAB=$(lab/build.sh path)
	export SWDT_LAB
	# Three packages at a time and eight tests of each keep two processors busy. With twice as many, a command of
	# the scripts waited seven seconds until it had started, on a slow machine.
	# The packages that take minutes come first: else one of them runs alone at the end.
	# The heaps of tests are small, and the collector took a third of the time of some packages.
	GOGC=400 run unit . "${tested[@]}" -p 3 -parallel 8 -timeout 40m \
		./internal/{cli,sandbox/wine,join,vm/qemu,sandbox,node/reply,localfile} "${own[@]}"
}

stage_samples() {
	local seed=${SWDT_SEED:-$((RANDOM * 32768 + RANDOM))}
	echo "SWDT_SEED=$seed"
	SWDT_SEED=$seed run samples . "${tested[@]}" -timeout 20m -run "$enumerations" "${enumerating[@]}"
}

# These computations take ten times as long under the race detector, and their goroutines are those of other
# tests of the same packages. TestUnderWine runs a program that is built without the detector.
computing='^(TestRoundTripOfEdits|TestDamagedExecutablesAreFiles|TestSpecialFiles|TestEveryDamageIsFound|TestExecutablesAreReadAsDebugPEAndDebugELFReadThem|TestMemoryIsBounded|TestUnderWine)$'

stage_race() {
	mapfile -t packages < <(sed 's/#.*//; /^\s*$/d; s/\s*$//' scripts/race.txt)
	CGO_ENABLED=1 run race . "${tested[@]}" -race -p 3 -parallel 8 -timeout 40m -skip "$enumerations|$computing" "${packages[@]}"
}

stage_modules() {
	run lab lab "${tested[@]}" ./...
	run pods lab/pods "${tested[@]}" ./...
	run tools tools "${tested[@]}" ./...
}

stage_lab() {
	scripts/install-test-deps.sh
	lab/build.sh
}

stage_wine() {
	scripts/install-test-deps.sh
	run wine . scripts/wine-test.sh -json -vet=off ./internal/platform/windows/...
	run wine-access . scripts/wine-test.sh -json -vet=off -run '^Test(CheckForeign|ForeignACL)$' ./internal/localfile
}

stage_e2e() {
	scripts/install-test-deps.sh
	use_lab
	# Other programs, other samples: a run with the same programs comes from Go's cache.
	export SWDT_SEED=${SWDT_SEED:-$((16#$(cut -c1-8 <<<"$(basename "$(dirname "$SWDT_BIN")")")))}
	echo "SWDT_SEED=$SWDT_SEED"
	end_to_end e2e -parallel 6 ./e2e/...
}

stage_skips() {
	skips "$folder"/*.json
}

stage_kind() {
	scripts/install-test-deps.sh
	scripts/install-kind-deps.sh
	make --no-print-directory build
	use_lab all up
	SWDT_LAB_KIND=required end_to_end kind -run '^TestUpAndDown$' ./e2e
	skips -required kind "$folder/kind.json"
}

stage_race-all() {
	CGO_ENABLED=1 run race-all . "${tested[@]}" -race -p 3 -parallel 8 -timeout 110m \
		-skip "$enumerations" "${own[@]}"
}

stage_enumerations() {
	SWDT_EVERY_POINT=1 run enumerations . "${tested[@]}" -timeout 110m -run "$enumerations" "${enumerating[@]}" ./internal/join
}

stage_kills() {
	SWDT_EVERY_POINT=1 run kills . "${tested[@]}" -timeout 110m -run "$enumerations" ./internal/cli
}

stage_containerds() {
	scripts/install-test-deps.sh
	make --no-print-directory build
	use_lab all containerds kubelet nssm
	SWDT_EVERY_POINT=1 end_to_end containerds ./e2e/... ./internal/format/{containerdconfig,kubeletargs}
	skips -required containerds "$folder/containerds.json"
}

stage_cluster() {
	scripts/install-test-deps.sh
	make --no-print-directory images
	use_lab all containerds node older proxies cluster
	SWDT_LAB_CLUSTER=required SWDT_FLEET_NODES=1000 end_to_end cluster -p 1 ./e2e/... \
		./internal/{sandbox,cluster,node/viapod,join/objectfix,join/preflight,join/podnetwork,join/smoke,rollout/control}/...
}

stage_vms() {
	scripts/install-test-deps.sh
	make --no-print-directory build
	use_lab all guest node cluster
	SWDT_LAB_GUEST=required end_to_end vms -run 'VM|Guest|Image|Installations' ./e2e
}

stage_kinds() {
	scripts/install-test-deps.sh
	scripts/install-kind-deps.sh
	make --no-print-directory build
	use_lab all up
	SWDT_LAB_KIND=required end_to_end kinds -run 'TestUpAndDown$|Kind|KilledCluster|TestStreamsOfRealContainerd' ./e2e
	skips -required kind "$folder/kinds.json"
}

stage_specs() {
	scripts/install-test-deps.sh
	make --no-print-directory build
	use_lab all cluster e2etest-1.36.3
	SWDT_LAB_CLUSTER=required end_to_end specs -run 'Specs|Readiness' ./e2e
}

stage_mutants() {
	tools
	bin/tools/mutants -seed "${SWDT_SEED:-$(date +%Y%m%d)}" -jobs 2 -v -json "$folder/mutants.report" \
		internal/agent/{swap,custody} internal/wire/delta internal/format/redact internal/node/{ssh,reply} internal/{rollout,cluster}
}

stage_fuzz() {
	local package target
	while read -r package target; do
		echo "$package $target"
		go test -run '^$' -fuzz "^$target\$" -fuzztime "${SWDT_FUZZ_TIME:-2m}" "$package"
	done < <(git grep -n '^func Fuzz' -- '*_test.go' | sed -E 's|^(.*)/[^/]*:[0-9]+:func (Fuzz\w+).*|./\1 \2|')
}

stage_checks-fail() {
	make --no-print-directory verifytest crosstest
}

stage_oracles() {
	{ command -v promtool && command -v skopeo; } >/dev/null || RUNLEVEL=1 apt-get install -y -q --no-install-recommends prometheus skopeo
	scripts/oracles.sh
}

stage_settings() {
	scripts/install-test-deps.sh
	tools
	go -C tools run ./kubesettings -check ../internal/cluster/kubesettings/settings.json
	SWDT_LAB=$(lab/build.sh node older)
	export SWDT_LAB
	SWDT_EVERY_POINT=1 run settings . go test -json -timeout 60m -run TestRealProgramsAgreeWithTheTable ./internal/cluster/kubesettings
	skips -required settings "$folder/settings.json"
}

stage_matchers() {
	scripts/install-test-deps.sh
	tools
	SWDT_LAB=$(lab/build.sh matchers)
	export SWDT_LAB
	local seed=${SWDT_SEED:-$((RANDOM * 32768 + RANDOM))}
	SWDT_SEED=$seed SWDT_MATCHERS=100000 run matchers . go test -json -timeout 100m -run '^TestRealContainerdTakesTheSame$' ./internal/format/imagefit
	skips -required matchers "$folder/matchers.json"
}

stage_release() {
	scripts/install-test-deps.sh
	make --no-print-directory releasetest
	use_lab
	SWDT_GO_INSTALL=required end_to_end goinstall -run '^TestGoInstall$' ./e2e
	skips -required goinstall "$folder/goinstall.json"
}

name=${1-}
declare -F "stage_$name" >/dev/null || { echo "scripts/stages.txt has no stage \"$name\"" >&2; exit 2; }
"stage_$name"
