#!/usr/bin/env bash
# Compares what two builds of swdt print with -o json, command by command, each on a
# fresh sandbox of its own. Values that differ from run to run (times, ports, process
# ids, folders) are replaced before the comparison. Needs jq; exits with 1 if there is a
# difference.
#
#   scripts/compare-results.sh OLD-SWDT NEW-SWDT
set -euo pipefail
if (($# != 2)); then
	sed -n '2,6s/^# \{0,1\}//p' "$0" >&2
	exit 2
fi
work=$(mktemp -d)
old=$(realpath "$1") new=$(realpath "$2")

cleanup() {
	local side
	for side in old new; do
		[[ ! -d $work/$side ]] || "${!side}" sandbox down --all --yes --state-dir "$work/$side/state" >/dev/null 2>&1 || true
	done
	rm -rf "$work"
}
trap cleanup EXIT

# commands lists the command lines, one a line; each gets -o json. WORK is the folder of
# this build. A command about sandboxes names its folder: it must not see, much less stop,
# the user's own.
commands() {
	cat <<-'END'
		version
		config validate
		setup --dry-run
		setup
		push --dry-run
		push
		push
		rollback kubelet
		status
		ps
		ps --all
		hns networks
		hns endpoints
		hns loadbalancers
		hns namespaces
		hns policies
		hcs list
		cri version
		cri status
		cri pods
		cri containers
		cri images
		cri stats
		trace status
		trace on kubelet --v 6
		trace status
		trace off
		logs kubelet --tail 3
		logs list
		events --tail 3
		doctor
		doctor --list-rules
		join --preflight
		reset --no-drain --dry-run
		capture --for 1s -w WORK/packets.pcapng
		capture counters
		capture vfp
		stats watch --for 3s --record WORK/before.swdt
		stats compare WORK/before.swdt WORK/before.swdt
		stats report WORK/before.swdt -w WORK/report.html
		diag -w WORK/bundle.tar.gz
		diag show WORK/bundle.tar.gz
		diag show WORK/bundle.tar.gz sandbox
		cp sandbox:C:\k\kubelet.exe WORK/
		debug diff WORK/kubelet.exe WORK/kubelet.exe --out WORK/patch
		debug patch WORK/kubelet.exe WORK/patch --out WORK/again
		hcs kill none --yes
		config schema
		sandbox status --state-dir WORK/state
		sandbox down --all --yes --state-dir WORK/state
	END
}

# normalized reads JSON, one or many documents, and replaces what no two runs share.
normalized() {
	jq -S 'walk(
		if type == "number" then (if . == 0 then 0 else 1 end)
		elif type == "string" then
			gsub("[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:.]+(Z|[+-][0-9:]+)"; "TIME")
			| gsub("/tmp/[^ \"]*"; "FOLDER")
			| gsub("[0-9a-f]{12,}"; "HASH")
			| gsub("[0-9]+(\\.[0-9]+)? ?(ns|µs|ms|s|m|h)\\b"; "DURATION")
			| gsub("[0-9]+"; "N")
		else . end)' 2>&1 || true
}

# record runs all commands of a build on a sandbox and writes a file for each.
record() { # SIDE BINARY
	local side=$1 binary=$2 number=0 line code
	mkdir -p "$work/$side/results"
	"$binary" sandbox up --state-dir "$work/$side/state" -o json >"$work/$side/up.json" 2>/dev/null
	export SWDT_CONFIG
	SWDT_CONFIG=$(find "$work/$side/state" -name node.yaml | head -1)
	while read -r line; do
		number=$((number + 1)) code=0
		line=${line//WORK/"$work/$side"}
		# shellcheck disable=SC2086 # the lines are split into words
		"$binary" $line -o json --timeout 1m </dev/null >"$work/$side/out" 2>"$work/$side/err" || code=$?
		if ((code == 2)); then
			echo "compare-results: swdt $line: $(cat "$work/$side/err")" >&2
			exit 2
		fi
		{
			echo "exit code $code"
			normalized <"$work/$side/out"
		} >"$work/$side/results/$(printf '%02d %s' "$number" "${line//"$work/$side/"/}" | tr / _)"
	done < <(commands)
}

record old "$old"
record new "$new"
if diff -ru "$work/old/results" "$work/new/results" >"$work/diff"; then
	echo "$(commands | wc -l) commands, no difference"
else
	sed "s#$work/##" "$work/diff"
	exit 1
fi
