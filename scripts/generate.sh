#!/usr/bin/env bash
# Writes the generated files: the agent's RPC code from the .proto files, the definitions of the
# fleet's objects, the JSON schema of the node file, the reference pages, the page of contributed reports, the licences of linked
# modules. Needs protoc (Debian: protobuf-compiler).
set -euo pipefail
cd "$(dirname "$0")/.."
tools=$(mktemp -d)
trap 'rm -rf "$tools"' EXIT
GOBIN=$tools go install google.golang.org/protobuf/cmd/protoc-gen-go google.golang.org/grpc/cmd/protoc-gen-go-grpc
PATH=$tools:$PATH protoc -I api/agent/v1 \
	--go_out=api/agent/v1 --go_opt=paths=source_relative \
	--go-grpc_out=api/agent/v1 --go-grpc_opt=paths=source_relative \
	api/agent/v1/*.proto
# Remove the deprecated Descriptor methods, which only the first version of Go's protobuf
# module used. The linker would keep all of them, 40 kB of the agent.
for file in api/agent/v1/*.pb.go; do
	sed -e '/^\/\/ Deprecated: Use .*\.Descriptor instead\.$/,/^$/d' -e '/_rawDescGZIP() \[\]byte {$/,/^$/d' \
		"$file" >"$tools/out"
	cp "$tools/out" "$file"
done
go -C tools build -o "$tools/controller-gen" sigs.k8s.io/controller-tools/cmd/controller-gen
"$tools/controller-gen" object paths=./api/fleet/v1alpha1
"$tools/controller-gen" crd paths=./api/fleet/v1alpha1 output:crd:dir=internal/rollout/manifests
go run ./internal/config/schemagen api/v1alpha1
go run ./internal/docgen docs/reference
go run ./internal/proof/selftest/seenon docs/seen docs/seen-on.md
go -C tools build -o "$tools/licenses" ./licenses
"$tools/licenses" -write
