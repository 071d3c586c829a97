# shellcheck shell=bash
# The one set of flags with which everything but the race detector is built, so that all builds and tests
# share Go's cache, in every folder. Source it: . scripts/env.sh
# With -trimpath, the path of the clone is in no program, so another clone need not build it again.
[[ " ${GOFLAGS-} " == *" -trimpath "* ]] || GOFLAGS="${GOFLAGS:+$GOFLAGS }-trimpath"
[[ " ${GOFLAGS} " == *" -buildvcs=false "* ]] || GOFLAGS+=" -buildvcs=false"
export GOFLAGS CGO_ENABLED=0
