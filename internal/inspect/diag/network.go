package diag

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	agentv1 "github.com/swdt-dev/swdt/api/agent/v1"
	"github.com/swdt-dev/swdt/internal/format/bounded"
	"github.com/swdt-dev/swdt/internal/format/vfp"
	"github.com/swdt-dev/swdt/internal/ui"
)

type listenerRow struct {
	Address string `json:"address"`
	Port    uint32 `json:"port"`
	PID     uint32 `json:"pid"`
	Process string `json:"process,omitempty"`
	Image   string `json:"image,omitempty"`
}

func listeners(ctx context.Context, t *Task) error {
	reply, err := t.Node.Network.Listeners(ctx, &agentv1.ListenersRequest{})
	if err != nil {
		return err
	}
	var rows []listenerRow
	for _, l := range reply.GetListeners() {
		rows = append(rows, listenerRow{l.GetAddress(), l.GetPort(), l.GetPid(), l.GetProcess(), l.GetImage()})
	}
	return t.Table("listeners", rows, func(w io.Writer) error {
		var lines [][]string
		for _, r := range rows {
			lines = append(lines, []string{r.Address, strconv.Itoa(int(r.PID)), r.Process, r.Image})
		}
		return ui.Table(w, []string{"ADDRESS", "PID", "PROCESS", "IMAGE"}, lines)
	})
}

type connectionRow struct {
	Local  string `json:"local"`
	Remote string `json:"remote"`
	State  string `json:"state"`
	PID    int    `json:"pid"`
}

// connections stores the TCP connections from netstat's output, whose numbers and addresses
// are the same in every language of Windows.
func connections(ctx context.Context, t *Task) error {
	out := bounded.Head{Most: mostOutput}
	if err := t.run(ctx, []string{"netstat", "-ano", "-p", "TCP"}, &out); err != nil {
		return err
	}
	var rows []connectionRow
	for line := range strings.Lines(out.String()) {
		fields := strings.Fields(line)
		if len(fields) < 4 || fields[0] != "TCP" {
			continue
		}
		pid, err := strconv.Atoi(fields[len(fields)-1])
		if err != nil {
			continue
		}
		rows = append(rows, connectionRow{fields[1], fields[2], strings.Join(fields[3:len(fields)-1], " "), pid})
	}
	return t.Table("connections", rows, func(w io.Writer) error {
		var lines [][]string
		for _, r := range rows {
			lines = append(lines, []string{r.Local, r.Remote, r.State, strconv.Itoa(r.PID)})
		}
		return ui.Table(w, []string{"LOCAL", "REMOTE", "STATE", "PID"}, lines)
	})
}

type ruleRow struct {
	Name      string `json:"name"`
	Group     string `json:"group,omitempty"`
	Enabled   bool   `json:"enabled"`
	Direction string `json:"direction"`
	Action    string `json:"action"`
	Protocol  string `json:"protocol"`
	Ports     string `json:"ports,omitempty"`
	Program   string `json:"program,omitempty"`
	Profiles  string `json:"profiles"`
	Addresses string `json:"addresses,omitempty"`
}

func firewall(ctx context.Context, t *Task) error {
	reply, err := t.Node.Firewall.List(ctx, &agentv1.ListFirewallRulesRequest{})
	if err != nil {
		return err
	}
	var rows []ruleRow
	for _, r := range reply.GetRules() {
		row := ruleRow{
			Name: r.GetName(), Group: r.GetGroup(), Enabled: r.GetEnabled(), Direction: "out", Action: "block",
			Protocol: r.GetProtocol(),
			Ports:    r.GetPorts(), Program: r.GetProgram(), Profiles: r.GetProfiles(), Addresses: r.GetAddresses(),
		}
		if r.GetInbound() {
			row.Direction = "in"
		}
		if r.GetAllow() {
			row.Action = "allow"
		}
		rows = append(rows, row)
	}
	return t.Table("firewall", rows, func(w io.Writer) error {
		var lines [][]string
		for _, r := range rows {
			lines = append(lines, []string{r.Name, strconv.FormatBool(r.Enabled), r.Direction, r.Action, r.Protocol,
				r.Ports, r.Profiles, r.Addresses, r.Program})
		}
		return ui.Table(w, []string{"RULE", "ENABLED", "DIRECTION", "ACTION", "PROTOCOL", "PORTS", "PROFILES",
			"FROM", "PROGRAM"}, lines)
	})
}

const (
	vfpctrl = "vfpctrl"
	// mostPorts is the maximum number of ports of the virtual filtering platform that are
	// read in detail, since each port takes four commands.
	mostPorts = 200
)

// switchPorts stores the list of the virtual filtering platform's ports, and the details of the
// first mostPorts ports.
func switchPorts(ctx context.Context, t *Task) error {
	list := bounded.Head{Most: mostOutput}
	if err := t.run(ctx, []string{vfpctrl, "/list-vmswitch-port"}, &list); err != nil {
		return err
	}
	err := t.write(FileRecord{Path: "vfp/ports.txt", From: "vfpctrl /list-vmswitch-port"}, mostOutput,
		func(w io.Writer) error {
			_, err := w.Write(list.Bytes())
			return err
		})
	if err != nil {
		return err
	}
	ports := portNames(list.String())
	var failed []error
	for _, port := range ports[:min(len(ports), mostPorts)] {
		failed = append(failed,
			t.write(FileRecord{Path: "vfp/" + safeName(port) + ".txt", From: "vfpctrl /port " + port}, mostOutput,
				func(w io.Writer) error {
					for _, what := range []string{"/get-port-state", "/get-port-counter", "/list-rule",
						"/get-flow-stats"} {
						if _, err := fmt.Fprintf(w, "\n[%s]\n", what); err != nil {
							return err
						}
						if err := t.run(ctx, []string{vfpctrl, "/port", port, what}, w); err != nil {
							return fmt.Errorf("port %s, %s: %w", port, what, err)
						}
					}
					return nil
				}))
	}
	if len(ports) > mostPorts {
		failed = append(failed, fmt.Errorf("there are %d ports, of which %d were read", len(ports), mostPorts))
	}
	return errors.Join(failed...)
}

// portNames returns those names of ports in list that can be passed as an argument.
func portNames(list string) (names []string) {
	for _, port := range vfp.ParsePorts(list) {
		if port.Name != "" && !strings.ContainsAny(port.Name, ` "/`) {
			names = append(names, port.Name)
		}
	}
	return names
}
