# All targets work on a fresh clone with Go, git and make. Tests need more:
# scripts/install-test-deps.sh installs it (as root on Debian or Ubuntu) or lists it.

SHELL := bash
.DEFAULT_GOAL := build

# The one set of flags of scripts/env.sh, so that all targets share Go's cache.
export GOFLAGS := $(GOFLAGS) $(filter-out $(GOFLAGS),-trimpath -buildvcs=false)
export CGO_ENABLED := 0

VERSION ?= $(shell git describe --tags --always --dirty --abbrev=12 2>/dev/null || echo devel)
COMMIT  ?= $(shell git rev-parse --short=12 HEAD 2>/dev/null || echo unknown)

AGENT   := internal/node/agentbin/swdt-agent.exe.zst
# The agent has no version: its hash is its identity, and changes with its source
# alone. It is sent to every node, so it is built for size: without inlining (except
# in the decompressor) it is half a megabyte smaller, and with less padding between
# functions another 0.2. Its own code is fast enough without either.
AGENT_FLAGS := -tags grpcnotrace -trimpath -buildvcs=false -ldflags "-s -w -funcalign=8" \
	-gcflags=all=-l -gcflags=github.com/klauspost/compress/...=
# The probes of swdt netpol, one for each system of nodes. The one for Windows has the flags of the agent,
# so that Go's own packages are compiled once for both.
PROBES  := internal/proof/probebin
PROBE_FLAGS := -trimpath -buildvcs=false -ldflags "-s -w"
SWDT_FLAGS  := -trimpath -buildvcs=false -ldflags "-s -w -X main.version=$(VERSION) -X main.commit=$(COMMIT)"
# pack shares swdt's flags for the same reason.
PACK    := CGO_ENABLED=0 go run -trimpath -buildvcs=false ./internal/node/agentbin/pack

.PHONY: build
build: ## build bin/swdt with the agent and the probes inside, and bin/swdt-agent.exe
	GOOS=windows GOARCH=amd64 CGO_ENABLED=0 go build $(AGENT_FLAGS) -o bin/swdt-agent.exe ./cmd/swdt-agent
	$(PACK) bin/swdt-agent.exe $(AGENT)
	GOOS=linux GOARCH=amd64 CGO_ENABLED=0 go build $(PROBE_FLAGS) -o bin/probes/swdt-probe-linux-amd64 ./cmd/swdt-probe
	GOOS=linux GOARCH=arm64 CGO_ENABLED=0 go build $(PROBE_FLAGS) -o bin/probes/swdt-probe-linux-arm64 ./cmd/swdt-probe
	GOOS=windows GOARCH=amd64 CGO_ENABLED=0 go build $(AGENT_FLAGS) -o bin/probes/swdt-probe-windows-amd64 ./cmd/swdt-probe
	@for probe in linux-amd64 linux-arm64 windows-amd64; do \
		$(PACK) bin/probes/swdt-probe-$$probe $(PROBES)/swdt-probe-$$probe.zst || exit 1; \
	done
	CGO_ENABLED=0 go build $(SWDT_FLAGS) -o bin/ ./cmd/swdt

TARGETS := linux/amd64 linux/arm64 darwin/amd64 darwin/arm64 windows/amd64 windows/arm64

.PHONY: programs
programs: build ## build bin/programs: swdt for Linux, macOS and Windows
	@for target in $(TARGETS); do \
		out=bin/programs/swdt-$${target/\//-}; [[ $$target == windows/* ]] && out+=.exe; \
		echo "$$out"; \
		GOOS=$${target%/*} GOARCH=$${target#*/} CGO_ENABLED=0 go build $(SWDT_FLAGS) -o $$out ./cmd/swdt || exit 1; \
	done

.PHONY: release
release: programs ## make dist/, a release that is not published: archives, packages, manifests, SBOM, checksums
	@mkdir -p bin/share/completions
	bin/swdt completion bash >bin/share/completions/swdt.bash
	bin/swdt completion zsh >bin/share/completions/_swdt
	bin/swdt completion fish >bin/share/completions/swdt.fish
	bin/swdt completion powershell >bin/share/completions/swdt.ps1
	rm -rf bin/share/man
	go run ./internal/docgen/man -version "$(VERSION)" -date "$$(git log -1 --format=%cd --date=format:%F)" bin/share/man
	go -C tools build -o ../bin/release ./release
	@$(MAKE) --no-print-directory pack

DIST := dist

.PHONY: pack
pack: ## make dist/ of what make release has put into bin/, signed if there is a key; compiles nothing
	changed=$$(git status --porcelain) && bin/release build -version "$(VERSION)" -commit "$$(git rev-parse HEAD)" \
		-time "$$(git log -1 --format=%ct)" $${changed:+-changed} -out "$(DIST)"
	bin/release inspect "$(DIST)"

.PHONY: images
images: build ## make bin/images: the images of a fleet's controller and of the program on its nodes, as OCI layouts
	@for target in controller-linux/amd64 controller-linux/arm64 node-windows/amd64; do \
		program=swdt-$${target%%-*} system=$${target#*-} out=bin/fleet/swdt-$${target/\//-}; \
		if [[ $$system == windows/* ]]; then out=bin/fleet/$$program.exe; fi; \
		echo "$$out"; \
		GOOS=$${system%/*} GOARCH=$${system#*/} CGO_ENABLED=0 go build -trimpath -buildvcs=false -ldflags "-s -w" \
			-o $$out ./cmd/$$program || exit 1; \
	done
	go -C tools build -o ../bin/fleet-images ./images
	bin/fleet-images build -version "$(VERSION)" -commit "$$(git rev-parse HEAD)" -time "$$(git log -1 --format=%ct)" -out bin/images

.PHONY: releasetest
releasetest: release ## make a release, look into it, install its packages and remove them (as root)
	KUBECTL=$$(command -v kubectl) VERSION="$(VERSION)" scripts/release-test.sh

.PHONY: reproducible
reproducible: ## make the release in two new folders, once with an empty build cache, and compare all bytes; an hour on two cores
	scripts/reproducible.sh

.PHONY: demo
demo: ## show swdt on a simulated node; the first time, this compiles swdt for minutes
	CGO_ENABLED=0 go build $(SWDT_FLAGS) -o bin/demo/ ./cmd/swdt
	scripts/demo.sh bin/demo

.PHONY: record
record: build ## record the session of scripts/session.txt again: docs/img/session.cast and .svg, docs/guides/session.md
	scripts/record.sh

.PHONY: windesk
windesk: ## run the scripts of internal/cli with a swdt.exe under Wine, and write docs/windows-desk.md
	scripts/windows-desk.sh

.PHONY: site
site: ## make dist/site, the documents as a web site with search
	scripts/site.sh

.PHONY: shots
shots: ## make the site, and pictures of its pages in two widths, in bin/shots
	scripts/site.sh --shots

STAGES := go -C tools run ./stages

.PHONY: unit
unit: ## run the quick tests, most of them from the cache: no Wine, no race detector
	@$(STAGES) stamp
	@scripts/stage.sh unit

.PHONY: test
test: ## run all tests of a change: unit tests, race detector, the Windows side under Wine, end to end
	@$(STAGES) stamp
	@$(STAGES) run test

.PHONY: kind
kind: ## make a real cluster of kind with a Windows node, unless that has passed with the same files (as root on Debian, Ubuntu)
	@$(STAGES) run kind

.PHONY: nightly
nightly: ## run all that does not fit into each change, in stages that can be run again; STAGE=NAME runs one
	@$(STAGES) run nightly $(STAGE)

.PHONY: e2e
e2e: ## run the end-to-end tests with a real control plane, a cluster of kind, nodes that join, and VMs (as root on Debian, Ubuntu)
	@$(STAGES) run nightly containerds cluster vms kinds specs

.PHONY: bench
bench: ## compare swdt with its peers, into docs/benchmarks.md; takes half an hour
	scripts/bench.sh

.PHONY: verify
verify: ## check formatting, vet, types on three systems, lint, licences, generated files, go.mod, the site, scripts, PowerShell, workflows, language
	@$(STAGES) stamp
	@$(STAGES) run verify

GOLANGCI_LINT := github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v2.15.0

.PHONY: verifytest
verifytest: build ## show with planted defects that checks of verify can fail
	scripts/verify-test.sh

.PHONY: lint
lint: ## run golangci-lint, which verify leaves out; the first time builds it in minutes
	go run $(GOLANGCI_LINT) run ./...

.PHONY: generate
generate: ## write the generated files
	scripts/generate.sh

.PHONY: crosstest
crosstest: ## link all tests for Windows, which verify only vets; takes minutes
	GOOS=windows CGO_ENABLED=0 go test -c -o /dev/null ./api/... ./cmd/... ./internal/...

.PHONY: lab
lab: ## build the programs for tests, the demo, a node and a control plane; the first time takes a quarter of an hour
	lab/build.sh
	@echo "lab: next, kubelet.exe, kubeadm.exe and containerd.exe for a node (minutes, the first time)"
	lab/build.sh node
	@echo "lab: next, etcd, kube-apiserver and the rest of a control plane (ten minutes on two cores, the first time)"
	lab/build.sh cluster

.PHONY: speclists
speclists: ## compare the recorded specs of e2e.test with the real programs; the first time builds these in half an hour
	go run ./internal/proof/readiness/recordspecs internal/proof/readiness/testdata \
		$$(nice lab/build.sh e2etest)/e2e.test-v*[0-9]
	git diff --exit-code --stat internal/proof/readiness/testdata

.PHONY: clean
clean: ## remove build outputs; the caches in ~/.cache/swdt stay
	rm -rf bin dist $(AGENT) $(PROBES)/*.zst

.PHONY: help
help: ## print this list
	@grep -hE '^[a-z0-9]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z0-9]+):[^#]*## /  \1\t/' | expand -t 12
