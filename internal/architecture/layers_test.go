package architecture_test

import (
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/swdt-dev/swdt/"

// floors says on which floor each package stands. A package may import those on
// floors below its own, and no others.
func floors() map[string]int {
	levels := [][]string{
		0: {"api/v1alpha1", "api/agent/v1", "internal/browsertest", "internal/handshake", "internal/layout", "internal/host", "internal/access", "internal/ui",
			"internal/agentbin", "internal/commandline", "internal/containerdconfig", "internal/logline", "internal/redact", "internal/cri", "internal/cri/simulated", "internal/wine", "internal/architecture", "internal/delta", "internal/localfile", "internal/ssh/sshtest", "internal/stats", "internal/pcapng", "internal/vfp", "internal/wait", "internal/once", "internal/remedy", "e2e"},
		1: {"internal/packed", "internal/reply", "internal/custody", "internal/guard", "internal/host/windows", "internal/pktmon/imitation", "internal/vfp/imitation", "internal/host/hosttest", "internal/rpcerror",
			"internal/finding", "internal/redact/document", "internal/blobs", "internal/wine/winetest", "internal/hashcache", "internal/scm", "internal/settings", "internal/command", "internal/config", "internal/build", "internal/stats/record", "internal/stats/watch", "internal/cri/measure", "internal/kubeletargs", "internal/trace/record"},
		2: {"internal/host/simulated", "internal/pktmon", "internal/stats/report", "internal/stats/export", "internal/controlplane", "internal/cluster", "internal/cluster/simulated", "internal/swap", "internal/ssh", "internal/source", "internal/powershell"},
		3: {"internal/stats/source", "internal/agent", "internal/node", "internal/artifact"},
		4: {"internal/plan", "internal/preflight", "internal/smallfile", "internal/transfer", "internal/fleet", "internal/watch", "internal/criproxy", "internal/criclient", "internal/events", "internal/hns", "internal/hcs", "internal/node/nodetest"},
		5: {"internal/hns/hnstest", "internal/capture", "internal/logs", "internal/tasks", "internal/setup", "internal/deploy", "internal/sandbox"},
		6: {"internal/trace", "internal/join", "internal/doctor", "internal/diag"},
		7: {"internal/cli"},
		8: {"cmd/swdt", "cmd/swdt-agent", "internal/agentbin/pack", "internal/wine/exec", "internal/config/schemagen", "internal/docgen", "e2e/criversion", "e2e/crinode", "e2e/pktmon", "e2e/vfpctrl", "bench"},
	}
	floor := map[string]int{}
	for level, packages := range levels {
		for _, p := range packages {
			floor[p] = level
		}
	}
	return floor
}

// nodeSide is what runs on the node: it may import itself and the contracts that
// both sides share, never anything of the host side.
func nodeSide() []string {
	return []string{"internal/agent", "internal/swap", "internal/scm", "internal/settings", "internal/hashcache",
		"internal/host", "internal/host/windows", "internal/host/simulated", "internal/cri", "internal/cri/simulated", "internal/pktmon", "internal/pktmon/imitation", "internal/vfp/imitation", "internal/guard", "internal/custody", "cmd/swdt-agent"}
}

func shared() []string {
	return []string{"api/agent/v1", "internal/handshake", "internal/layout", "internal/rpcerror", "internal/delta", "internal/commandline", "internal/logline", "internal/redact", "internal/packed", "internal/pcapng", "internal/wait", "internal/access"}
}

type listed struct {
	ImportPath string
	Imports    []string
}

func TestImportsGoDownOnly(t *testing.T) {
	floor := floors()
	for _, p := range packages(t, "linux") {
		from, ok := floor[p.ImportPath]
		if !ok {
			t.Errorf("%s stands on no floor: give it one in floors and in docs/architecture.md", p.ImportPath)
			continue
		}
		for _, imported := range p.Imports {
			if to, ok := floor[imported]; ok && to >= from {
				t.Errorf("%s (floor %d) imports %s (floor %d)", p.ImportPath, from, imported, to)
			}
		}
	}
}

func TestTheNodeSideNeverImportsTheHostSide(t *testing.T) {
	allowed := map[string]bool{}
	for _, p := range append(nodeSide(), shared()...) {
		allowed[p] = true
	}
	seen := 0
	for _, p := range packages(t, "windows") {
		if !slices.Contains(nodeSide(), p.ImportPath) {
			continue
		}
		seen++
		for _, imported := range p.Imports {
			if !allowed[imported] {
				t.Errorf("%s runs on the node and imports %s", p.ImportPath, imported)
			}
		}
	}
	if seen != len(nodeSide()) {
		t.Errorf("found %d packages of the node side, expected %d", seen, len(nodeSide()))
	}
}

// packages lists the module's packages and what they import of the module, with
// the module's name cut off.
func packages(t *testing.T, goos string) (all []listed) {
	t.Helper()
	cmd := exec.Command("go", "list", "-json=ImportPath,Imports", module+"...")
	cmd.Env = append(cmd.Environ(), "GOOS="+goos, "CGO_ENABLED=0")
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	decoder := json.NewDecoder(strings.NewReader(string(out)))
	for {
		var p listed
		err := decoder.Decode(&p)
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		p.ImportPath = strings.TrimPrefix(p.ImportPath, module)
		var ours []string
		for _, imported := range p.Imports {
			if own, ok := strings.CutPrefix(imported, module); ok {
				ours = append(ours, own)
			}
		}
		p.Imports = ours
		all = append(all, p)
	}
}
