//go:build e2e && linux

package e2e

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/swdt-dev/swdt/internal/wait"
)

// carryServices takes packets of this machine's programs to the backends of the load balancers in a folder of the
// imitation of HNS, until the test ends. It stands for VFP, the packet filter of Windows' virtual switch, which HNS
// programs. It reads the objects again and again, and writes none. Load balancers without an address, those of node ports,
// are left out: no test sends to a node port.
func carryServices(t *testing.T, folder string) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- carry(ctx, folder) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("carry traffic to Services: %v", err)
		}
		if err := replaceRules(noRules); err != nil {
			t.Errorf("remove the table of nftables: %v", err)
		}
	})
}

// carry follows the load balancers until ctx ends.
func carry(ctx context.Context, folder string) error {
	is := ""
	for {
		objects, err := readHNS(folder)
		switch {
		case errors.Is(err, fs.ErrNotExist): // an object was deleted meanwhile
		case err != nil:
			return err
		default:
			if wanted := serviceRules(objects); wanted != is {
				if err := replaceRules(wanted); err != nil {
					return err
				}
				is = wanted
			}
		}
		if wait.For(ctx, 50*time.Millisecond) != nil {
			return nil
		}
	}
}

// noRules deletes the table, also if there is none.
const noRules = "table ip hns\ndelete table ip hns\n"

// serviceRules returns a table of nftables with a rule for each backend of each load balancer.
func serviceRules(o hnsObjects) string {
	var rules []string
	for _, b := range o.balancers {
		for _, vip := range b.FrontendVIPs {
			for _, p := range b.PortMappings {
				rules = append(rules, backendRules(vip, p, b.HostComputeEndpoints, o)...)
			}
		}
	}
	slices.Sort(rules)
	return noRules + "table ip hns {\nchain services {\ntype nat hook output priority -110;\n" +
		strings.Join(slices.Compact(rules), "") + "}\n}\n"
}

// backendRules returns the rules of one port. Each connection is given to one of the backends, by turns.
func backendRules(vip string, p hnsPort, backends []string, o hnsObjects) []string {
	protocol := map[int]string{6: "tcp", 17: "udp"}[p.Protocol]
	var text strings.Builder
	for i, id := range backends {
		turn := ""
		if left := len(backends) - i; left > 1 {
			turn = fmt.Sprintf("numgen inc mod %d 0 ", left)
		}
		fmt.Fprintf(&text, "ip daddr %s %s dport %d %sdnat to %s:%d\n", vip, protocol, p.ExternalPort, turn,
			o.endpoints[id].address(), p.InternalPort)
	}
	return []string{text.String()}
}

func replaceRules(rules string) error {
	command := exec.Command("nft", "-f", "-")
	command.Stdin = strings.NewReader(rules)
	if out, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("nft: %w: %s\n%s", err, out, rules)
	}
	return nil
}
