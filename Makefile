# All targets work on a fresh clone with Go, git and make. What tests need beyond
# that, scripts/install-test-deps.sh installs (as root on Debian or Ubuntu) or
# names.

SHELL := bash
.DEFAULT_GOAL := build

VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo devel)
COMMIT  ?= $(shell git rev-parse --short=12 HEAD 2>/dev/null || echo unknown)

AGENT   := internal/agentbin/swdt-agent.exe.zst
# No version in the agent: its hash is its identity, and changes with its source
# alone.
# It travels to every node: without inlining (but where bytes are decompressed)
# it is half a megabyte smaller, with functions that stand closer together 0.2 more,
# and nobody waits for its own code.
AGENT_FLAGS := -tags grpcnotrace -trimpath -buildvcs=false -ldflags "-s -w -funcalign=8" \
	-gcflags=all=-l -gcflags=github.com/klauspost/compress/...=
SWDT_FLAGS  := -trimpath -buildvcs=false -ldflags "-s -w -X main.version=$(VERSION) -X main.commit=$(COMMIT)"

.PHONY: build
build: ## bin/swdt with the agent inside, and bin/swdt-agent.exe
	GOOS=windows GOARCH=amd64 CGO_ENABLED=0 go build $(AGENT_FLAGS) -o bin/swdt-agent.exe ./cmd/swdt-agent
	go run ./internal/agentbin/pack bin/swdt-agent.exe $(AGENT)
	CGO_ENABLED=0 go build $(SWDT_FLAGS) -o bin/ ./cmd/swdt

.PHONY: dist
dist: build ## dist/: swdt for linux, macOS and Windows
	@for target in linux/amd64 linux/arm64 darwin/amd64 darwin/arm64 windows/amd64; do \
		out=dist/swdt-$${target/\//-}; [[ $$target == windows/* ]] && out+=.exe; \
		echo "$$out"; \
		GOOS=$${target%/*} GOARCH=$${target#*/} CGO_ENABLED=0 go build $(SWDT_FLAGS) -o $$out ./cmd/swdt || exit 1; \
	done

.PHONY: demo
demo: build ## what swdt does, on a simulated node, in under a minute
	scripts/demo.sh

.PHONY: test
test: ## everything: unit tests with -race, the Windows side under Wine, end to end
	scripts/test.sh

.PHONY: unit
unit: ## the quick part of test: no Wine, no race detector
	go test ./internal/... ./api/... ./cmd/...

.PHONY: e2e
e2e: build lab ## the end-to-end tests alone, with a real control plane and a node that joins it
	SWDT_LAB=$$(lab/build.sh) SWDT_BIN=$$PWD/bin/swdt SWDT_LAB_CLUSTER=required \
		go test -count=1 -tags e2e -timeout 40m ./e2e/... ./internal/controlplane/... ./internal/cluster/... ./internal/preflight/...

.PHONY: bench
bench: ## swdt beside its peers, into docs/benchmarks.md; takes half an hour
	scripts/bench.sh

.PHONY: verify
verify: ## formatting, vet for three systems, lint, layers, generated files, go.mod
	scripts/verify.sh

.PHONY: generate
generate: ## generated files
	scripts/generate.sh

.PHONY: lab
lab: ## all that tests and the demo push, a node to join and a control plane; the first time takes a quarter of an hour
	lab/build.sh
	@echo "lab: next, kubelet.exe, kubeadm.exe and containerd.exe for a node (minutes, the first time)"
	lab/build.sh node
	@echo "lab: next, etcd, kube-apiserver and the rest of a control plane (ten minutes on two cores, the first time)"
	lab/build.sh cluster

.PHONY: clean
clean: ## what was built here; the caches in ~/.cache/swdt stay
	rm -rf bin dist $(AGENT)

.PHONY: help
help: ## this list
	@grep -hE '^[a-z0-9]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z0-9]+):[^#]*## /  \1\t/' | expand -t 12
