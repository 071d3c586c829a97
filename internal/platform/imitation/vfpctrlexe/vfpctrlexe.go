// Package vfpctrlexe is a vfpctrl.exe for machines without one: the simulated Windows and Wine. Its
// switch has a port for the adapter, one for the machine, and one for each HNS endpoint of this
// machine; its counters are invented. Its output has the form of Windows' own vfpctrl, as text or
// as JSON, as far as that form is published: microsoft/SDN, Kubernetes/windows/debug (collectlogs.ps1 and helper.psm1 call it
// and read the text), and issues that quote its output. The names in JSON are a guess: docs/guesses.md.
package vfpctrlexe

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/swdt-dev/swdt/internal/platform"
)

// PlainFile, if it exists, makes the program imitate an older build, which prints only text.
const PlainFile = `C:\Windows\Temp\vfpctrl-plain.txt`

type program struct {
	platform *platform.Platform
	out      io.Writer
	json     bool
}

// Main is vfpctrl's main function; it returns the exit code.
func Main(ctx context.Context, windows *platform.Platform, args []string, out io.Writer) int {
	p := &program{platform: windows, out: out}
	if err := p.run(ctx, args); err != nil {
		fmt.Fprintf(out, "ERROR: %v\r\n", err)
		return 1
	}
	return 0
}

func (p *program) run(ctx context.Context, args []string) error {
	ports, err := p.ports(ctx)
	if err != nil {
		return err
	}
	if n := len(args); n > 2 && args[n-2] == "/format" && args[n-1] == "1" {
		if _, err := p.platform.Files.Stat(PlainFile); err == nil {
			return fmt.Errorf("unknown command /format")
		}
		p.json, args = true, args[:n-2]
	}
	switch {
	case len(args) == 1 && args[0] == "/list-vmswitch-port":
		return p.list(ports)
	case len(args) == 3 && args[0] == "/port":
		for _, port := range ports {
			if strings.EqualFold(port.Name, args[1]) {
				return p.port(port, args[2])
			}
		}
		return fmt.Errorf("failed to open port %s: The system cannot find the file specified", args[1])
	}
	return fmt.Errorf("unknown command %s", strings.Join(args, " "))
}

// port carries out a command about a port. There are no rules and no flows.
func (p *program) port(port port, what string) error {
	switch what {
	case "/get-port-counter":
		return p.counters(port)
	case "/get-port-state":
		return p.print("ITEM LIST\n===========\n\n  Enabled : TRUE\n  Blocked : FALSE\n\nCommand get-port-state " +
			"succeeded!\n")
	case "/list-rule", "/get-flow-stats":
		return p.print("ITEM LIST\n===========\n\nCommand " + what[1:] + " succeeded!\n")
	}
	return fmt.Errorf("unknown command %s", what)
}

// port is a port of the switch; its fields have the names that vfpctrl uses in JSON.
type port struct {
	Name       string
	ID         string `json:"Id"`
	VmsPortID  int    `json:"VmsPortId"`
	MacAddress string
	SwitchName string
}

func (p *program) ports(ctx context.Context) ([]port, error) {
	documents, err := p.platform.Compute.NetworkObjects(ctx, platform.HNSEndpoints)
	if err != nil {
		return nil, err
	}
	all := []port{newPort("ExternalPort", "00155D0A7ADC"), newPort("Container NIC 0a0fa7", "00155D0A7ADC")}
	for _, document := range documents {
		var endpoint struct {
			ID, MacAddress string
			Flags          int
		}
		if err := json.Unmarshal(document, &endpoint); err != nil {
			return nil, err
		}
		if remote := endpoint.Flags&1 != 0; !remote {
			all = append(all, newPort(endpoint.ID, strings.ReplaceAll(endpoint.MacAddress, "-", "")))
		}
	}
	for i := range all {
		all[i].VmsPortID = i + 1
	}
	return all, nil
}

func newPort(label, mac string) port {
	b := sha256.Sum256([]byte("port " + label))
	name := strings.ToUpper(fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:16]))
	return port{Name: name, ID: strings.ToUpper(label[:1]) + label[1:], MacAddress: strings.ToUpper(mac),
		SwitchName: "Calico"}
}

func (p *program) list(ports []port) error {
	if p.json {
		return p.document(map[string]any{"Ports": ports})
	}
	text := "ITEM LIST\n===========\n"
	for _, port := range ports {
		text += fmt.Sprintf("\n  Port name             : %s\n  Port Friendly name    : %s\n  Switch name           "+
			": %s\n"+
			"  Switch Friendly name  : %s\n  PortId                : %d\n  VMQ Usage             : 0\n  SR-IOV Usage  "+
			"        : 0\n"+
			"  Port type             : Synthetic\n  Port is Initialized.\n  MAC Learning is Disabled.\n  MAC address  "+
			"         : %s\n  NIC is Connected.\n",
			port.Name, port.ID, newPort(port.SwitchName, "").Name, port.SwitchName, port.VmsPortID,
			dashed(port.MacAddress))
	}
	return p.print(text + "\nCommand list-vmswitch-port succeeded!\n")
}

// counter is a counter of a port, with its names in JSON and in text.
type counter struct {
	name, text string
	count      int
}

// counted returns a port's counters in one direction: 0 out, 1 in.
func counted(port port, direction int) []counter {
	n := 100*port.VmsPortID + 10*direction
	return []counter{
		{"TotalPackets", "Total packets", n}, {"TotalBytes", "Total bytes", 64 * n},
		{"DroppedPackets", "Dropped packets", 2 * direction}, {"DroppedAcl", "Dropped ACL packets", 2 * direction},
		{"PendingPackets", "Pending packets", 0},
		{"TcpSynPackets", "SYN packets", 3}, {"TcpSynAckPackets", "SYN-ACK packets", 3},
		{"TcpFinPackets", "FIN packets", 2}, {"TcpResetPackets", "RST packets", 1},
		{"TcpConnectionsVerified", "TCP Connections Verified", 3},
		{"TcpConnectionsTimedOut", "TCP Connections Timed Out", 0},
	}
}

func (p *program) counters(port port) error {
	var list []any
	text := "ITEM LIST\n===========\n"
	for direction, name := range []string{"OUT", "IN"} {
		text += "\nDirection - " + name + "\n"
		values := map[string]any{"Direction": direction}
		for _, c := range counted(port, direction) {
			text += fmt.Sprintf("  %-30s : %d\n", c.text, c.count)
			values[c.name] = c.count
		}
		list = append(list, map[string]any{"PortCounters": values})
	}
	if p.json {
		return p.document(map[string]any{"InformationArray": list})
	}
	return p.print(text + "\nCommand get-port-counter succeeded!\n")
}

func dashed(mac string) string {
	var parts []string
	for i := 0; i+1 < len(mac); i += 2 {
		parts = append(parts, mac[i:i+2])
	}
	return strings.Join(parts, "-")
}

func (p *program) document(v any) error {
	text, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return p.print(string(text) + "\n")
}

func (p *program) print(text string) error {
	_, err := io.WriteString(p.out, strings.ReplaceAll(text, "\n", "\r\n"))
	return err
}
