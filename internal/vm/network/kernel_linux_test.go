package network

import (
	"net/netip"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/vishvananda/netlink"

	"github.com/swdt-dev/swdt/internal/testing/netspace"
	"github.com/swdt-dev/swdt/internal/ui/finding"
)

// dropIP and dropFrames drop all that a machine forwards: the first as Docker's policy does, the second for the ports of
// bridges.
const (
	dropIP     = "table ip filter {\nchain FORWARD {\ntype filter hook forward priority 0; policy drop;\n}\n}\n"
	dropFrames = "table bridge company {\nchain c {\ntype filter hook forward priority 0; policy drop;\n}\n}\n"
)

// TestTheKernelAgrees compares the findings with what the kernel does to connections between two ports of a bridge: if
// it drops them, there is a finding, and its first command makes them pass.
func TestTheKernelAgrees(t *testing.T) {
	if !netspace.Enter(t) {
		return
	}
	vm := netspace.NewStation(t, "br-kind", "172.18.0.250/24", "172.18.0.1")
	container := netspace.NewStation(t, "br-kind", "172.18.0.2/24", "172.18.0.1")
	const port = 6443
	container.Listen(t, port)
	passes := func(limit time.Duration) bool {
		_, err := vm.Read(netip.AddrPortFrom(container.Address.Addr(), port), limit)
		return err == nil
	}
	findings := func() []finding.Problem {
		f := Findings{Place: Place{Bridge: "br-kind"}}
		f.checkFirewall(t.Context())
		return f.Problems
	}
	for name, c := range map[string]struct {
		shown  bool // to the rules for IPv4
		rules  string
		drops  bool
		found  string // in the finding; empty: there is none
		mended bool   // by the finding's first command
	}{
		"no rules":                      {false, "", false, "", false},
		"rules that see no bridges":     {false, dropIP, false, "", false},
		"rules that see bridges":        {true, dropIP, true, "bridge-nf-call-iptables", true},
		"no rules, but bridges":         {true, "", false, "bridge-nf-call-iptables", true},
		"rules for bridges":             {false, dropFrames, true, "nft list table bridge company", false},
		"rules for bridges, seen twice": {true, dropFrames, true, "nft list table bridge company", false},
	} {
		t.Run(name, func(t *testing.T) {
			netspace.ReplaceRuleset(t, c.rules)
			showBridges(t, c.shown)
			limit := 8 * time.Second
			if c.drops {
				limit = 120 * time.Millisecond
			}
			if passes(limit) == c.drops {
				t.Fatalf("the kernel drops: %v, want %v", !c.drops, c.drops)
			}
			problems := findings()
			text := ""
			for _, p := range problems {
				text += p.What + p.Evidence + p.Remedy + "\n"
			}
			if c.found == "" && len(problems) > 0 || !strings.Contains(text, c.found) {
				t.Fatalf("the findings are %q, want %q", text, c.found)
			}
			if c.mended {
				mendBy(t, problems[0].Remedy)
				if !passes(8 * time.Second) {
					t.Errorf("the kernel drops it after the remedy %q", problems[0].Remedy)
				}
			}
		})
	}
}

// showBridges sets whether rules for IPv4 see the frames between the ports of a bridge.
func showBridges(t *testing.T, on bool) {
	t.Helper()
	value := map[bool]string{true: "1", false: "0"}[on]
	must(t, os.WriteFile("/proc/sys/net/bridge/bridge-nf-call-iptables", []byte(value), 0o600))
}

// mendBy runs the first command of a remedy.
func mendBy(t *testing.T, remedy string) {
	t.Helper()
	_, rest, _ := strings.Cut(remedy, "`sudo ")
	command, _, ok := strings.Cut(rest, "`")
	if !ok {
		t.Fatalf("no command is in %q", remedy)
	}
	if out, err := exec.CommandContext(t.Context(), "sh", "-c", command).CombinedOutput(); err != nil {
		t.Fatalf("%s: %v: %s", command, err, out)
	}
}

func TestATapIsMadeOnceAndRemoved(t *testing.T) {
	if !netspace.Enter(t) {
		return
	}
	tap := Tap{Name: "swdt-tap0", Bridge: "br-kind", Owner: 0}
	if err := tap.Make(); err == nil || !strings.Contains(err.Error(), "no bridge br-kind") {
		t.Errorf("without the bridge: %v", err)
	}
	for _, name := range []string{"br-kind", "br-other"} {
		must(t, netlink.LinkAdd(&netlink.Bridge{LinkAttrs: netlink.LinkAttrs{Name: name}}))
	}
	for range 2 {
		must(t, tap.Make())
		if missing, err := tap.Missing(); err != nil || len(missing) > 0 {
			t.Errorf("after Make: %v, %v", missing, err)
		}
	}
	moved := Tap{Name: tap.Name, Bridge: "br-other"}
	if missing, err := moved.Missing(); err != nil || len(missing) != 1 {
		t.Errorf("on another bridge: %q, %v", missing, err)
	}
	must(t, moved.Make())
	if err := (Tap{Name: "br-other", Bridge: "br-kind"}).Remove(); err == nil {
		t.Error("a bridge was removed as if it were a tap")
	}
	if err := (Tap{Name: tap.Name, Bridge: "br-kind", Owner: 12345}).Remove(); err == nil {
		t.Error("a tap of another user was removed")
	}
	if err := (Tap{Name: "../x", Bridge: "br-kind"}).Make(); err == nil {
		t.Error("a name with a slash was accepted")
	}
	for range 2 {
		must(t, tap.Remove())
	}
	if missing, err := tap.Missing(); err != nil || len(missing) != 1 {
		t.Errorf("after Remove: %q, %v", missing, err)
	}
}
