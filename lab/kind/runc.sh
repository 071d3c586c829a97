#!/usr/bin/env bash
# runc for a machine whose root lacks CAP_SYS_RESOURCE: a privileged container gets all
# capabilities but this one. runc would refuse to start it.
#
#   dockerd --add-runtime without-sys-resource=…/runc.sh --default-runtime without-sys-resource
set -euo pipefail

args=("$@")
for ((i = 0; i + 1 < ${#args[@]}; i++)); do
	case ${args[i]} in
	--bundle | -b) spec=${args[i + 1]}/config.json ;;
	--process | -p) spec=${args[i + 1]} ;;
	*) continue ;;
	esac
	if [[ -f $spec ]]; then sed -i 's/"CAP_SYS_RESOURCE",//g' "$spec"; fi
done
exec runc "$@"
