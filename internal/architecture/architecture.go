// Package architecture defines which folders of swdt may import which others. The package's test
// checks all code against these rules, and docgen draws the picture in docs/architecture.md.
//
//   - architecture.go: the rules
//   - imports.go: reads the imports of the code
//   - picture.go: the picture
package architecture

import "strings"

// Side is the place where the code of a room runs.
type Side string

const (
	YourMachine Side = "Your machine"
	BothSides   Side = "Both sides"
	Node        Side = "The node"
	StandIns    Side = "Stand-ins and tests"
	Tools       Side = "Programs and tools"
)

// Room is a top-level folder of internal/ or of the repository, with all packages
// below it.
type Room struct {
	Name string
	Side Side
	Is   string // a short description of the room's code
}

// Floors lists the rooms from the ground floor up. A room imports only rooms of lower floors, so
// the imports of rooms cannot form a cycle.
func Floors() [][]Room {
	return [][]Room{
		{{"format", BothSides, "logs, command lines, secrets, packets, access lists"}},
		{
			{"api", BothSides, "node file, RPC messages"},
			{"wait", BothSides, "waiting for a condition"},
			{"ui", YourMachine, "terminal output, findings, remedies"},
			{"localfile", YourMachine, "atomic files, locks"},
		},
		{
			{"wire", BothSides, "handshake, errors, patches, layout"},
			{"config", YourMachine, "node files, contexts"},
			{"cluster", YourMachine, "the API server"},
		},
		{
			{"platform", Node, "what the agent needs of Windows"},
			{"fleet", YourMachine, "many nodes side by side"},
			{"obtain", YourMachine, "downloads, releases, registries, cache"},
		},
		{{"plan", YourMachine, "steps that can be previewed"}},
		{
			{"agent", Node, "gRPC services, swap transaction, captures"},
			{"node", YourMachine, "the handle on a node: SSH, transfer, runtime"},
			{"vm", YourMachine, "Windows VMs: install media, disks, QEMU"},
		},
		{
			{"setup", YourMachine, "a bare Windows becomes manageable"},
			{"push", YourMachine, "binaries onto nodes, at every change"},
		},
		{
			{"join", YourMachine, "into the cluster and out of it"},
			{"trace", YourMachine, "debug logs on and off"},
		},
		{
			{"inspect", YourMachine, "logs, doctor, diag, stats, captures, HNS, HCS"},
			{"day0", YourMachine, "from nothing to a cluster: kind, up"},
			{"rollout", YourMachine, "a fleet of nodes, run by Kubernetes"},
			{"sandbox", StandIns, "a node to try swdt on"},
			{"testing", StandIns, "helpers of tests"},
		},
		{{"proof", YourMachine, "proofs of a cluster: e2e tests, readiness, policies, scale"}},
		{
			{"cli", YourMachine, "flags, calls, printing"},
			{"architecture", Tools, "these rules"},
		},
		{
			{"cmd", Tools, "swdt, swdt-agent, swdt-probe, swdt-controller, swdt-node"},
			{"docgen", Tools, "generated pages"},
			{"bench", Tools, "benchmarks"},
			{"e2e", Tools, "end-to-end tests"},
		},
	}
}

// standIns lists the stand-ins inside rooms of the product: packages that imitate a part of a real
// system. The product's other code never imports a stand-in.
func standIns() []string {
	return []string{
		"internal/platform/simulated", "internal/platform/imitation", "internal/platform/platformtest",
		"internal/node/ssh/sshtest", "internal/inspect/hns/hnstest",
		"internal/wire/cri/measure", "internal/vm/simulatedvm", "internal/vm/vmtest",
		"internal/vm/media/mediatest", "internal/vm/hyperv/hypervtest",
		"internal/cluster/clustertest", "internal/format/logline/slowlog",
	}
}

// Forbidden returns the reason why one package must not import another, or "" if the import is
// allowed. Both arguments are import paths within the module; from is that of the importing package.
func Forbidden(from, imported string) string {
	rooms := byName()
	a, b := rooms[RoomOf(from)], rooms[RoomOf(imported)]
	if from == "cmd/swdt-agent" {
		a.Side = Node
	}
	switch {
	case a.Name == b.Name && !isStandIn(imported):
		return ""
	case a.floor <= b.floor && a.Name != b.Name:
		return "a room imports rooms of lower floors only"
	case a.Side == Tools:
		return ""
	case isStandIn(from):
		return onlyIf(b.Name != "cli", "only programs and tools import cli")
	case isStandIn(imported):
		return onlyIf(from == "internal/cli" && imported == "internal/sandbox",
			"the product imports no stand-in; only cli starts a sandbox")
	case a.Side == BothSides:
		return onlyIf(b.Side == BothSides, "code of both sides imports neither side")
	case a.Side == Node && imported == "api/v1alpha1":
		return "code of the node does not use node files"
	case a.Side == Node:
		return onlyIf(b.Side == Node || b.Side == BothSides, "code of the node imports no code of your machine")
	case b.Side == Node:
		return onlyIf(imported == "internal/platform",
			"code of your machine imports only package platform of the node's code")
	}
	return ""
}

func onlyIf(allowed bool, reason string) string {
	if allowed {
		return ""
	}
	return reason
}

// RoomOf returns the name of the room that holds a package.
func RoomOf(path string) string {
	path = strings.TrimPrefix(path, "internal/")
	room, _, _ := strings.Cut(path, "/")
	return room
}

func isStandIn(path string) bool {
	if byName()[RoomOf(path)].Side == StandIns {
		return true
	}
	for _, folder := range standIns() {
		if path == folder || strings.HasPrefix(path, folder+"/") {
			return true
		}
	}
	return false
}

type placed struct {
	Room
	floor int
}

func byName() map[string]placed {
	rooms := map[string]placed{}
	for floor, all := range Floors() {
		for _, room := range all {
			rooms[room.Name] = placed{room, floor}
		}
	}
	return rooms
}
