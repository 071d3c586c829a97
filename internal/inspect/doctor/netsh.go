package doctor

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	agentv1 "github.com/swdt-dev/swdt/api/agent/v1"
	"github.com/swdt-dev/swdt/internal/format/bounded"
	"github.com/swdt-dev/swdt/internal/join/preflight"
	"github.com/swdt-dev/swdt/internal/node/command"
	"github.com/swdt-dev/swdt/internal/wire/fault"
)

// netsh.exe prints in the machine's language and code page. Therefore the functions of this file
// read from its output only numbers, by their position in a line, and names given by users.

// output runs a program on the node, and returns its stdout.
func (g *gatherer) output(ctx context.Context, program string, args ...string) (string, error) {
	out, stderr := &bounded.Head{Most: maxOutput}, &bounded.Head{Most: maxOutput}
	code, err := command.Run(ctx, g.Node.Processes, &agentv1.RunCommand{Path: program, Args: args},
		command.Streams{Stdout: out, Stderr: stderr})
	switch {
	case errors.Is(err, fault.ErrNotExist):
		return "", fmt.Errorf("the node has no %s", program)
	case err != nil:
		return "", fmt.Errorf("run %s: %w", program, err)
	case code != 0:
		return "", &command.FailedError{Command: program + " " + strings.Join(args, " "), ExitCode: code,
			Stderr: stderr.String() + out.String()}
	}
	return strings.ToValidUTF8(out.String(), "\uFFFD"), nil
}

// maxOutput is the maximum number of bytes of a program's output that are kept.
const maxOutput = 1 << 20

func (g *gatherer) ports(ctx context.Context) error {
	excluded, err := g.output(ctx, "netsh.exe", "int", "ipv4", "show", "excludedportrange", "protocol=tcp")
	if err != nil {
		g.facts.Ports = factOf(Ports{}, err)
		return err
	}
	dynamic, err := g.output(ctx, "netsh.exe", "int", "ipv4", "show", "dynamicport", "tcp")
	var ports Ports
	if err == nil {
		ports.Excluded, err = excludedPorts(excluded)
	}
	if err == nil {
		ports.DynamicFirst, ports.DynamicCount, err = preflight.DynamicPorts(dynamic)
	}
	g.facts.Ports = factOf(ports, err)
	return err
}

// excludedPorts reads the port ranges from a table, which has a line of dashes below its header.
// The line of a range has the range's first and last port, and a star if an administrator excluded
// the range.
func excludedPorts(text string) ([]PortRange, error) {
	ranges, ruled := []PortRange{}, false
	for line := range strings.Lines(text) {
		fields := strings.Fields(line)
		ruled = ruled || len(fields) > 1 && strings.Trim(line, "- \r\n") == ""
		if len(fields) < 2 || len(fields) > 3 {
			continue
		}
		first, err := strconv.ParseUint(fields[0], 10, 16)
		last, lastErr := strconv.ParseUint(fields[1], 10, 16)
		if errors.Join(err, lastErr) == nil {
			ranges = append(ranges, PortRange{First: uint16(first), Last: uint16(last), Administered: len(fields) == 3})
		}
	}
	if !ruled {
		return nil, preflight.ErrNotUnderstood
	}
	return ranges, nil
}

func (g *gatherer) interfaces(ctx context.Context) error {
	text, err := g.output(ctx, "netsh.exe", "int", "ipv4", "show", "subinterfaces")
	interfaces := subinterfaces(text)
	if err == nil && len(interfaces) == 0 {
		err = preflight.ErrNotUnderstood
	}
	g.facts.Interfaces = factOf(interfaces, err)
	return err
}

// loopbackMTU is the MTU that Windows prints for its loopback interface.
const loopbackMTU = 1<<32 - 1

// unconnected is the state of an adapter without a medium. The adapter sends no packets, so
// its MTU does not matter.
const unconnected = "5"

// subinterfaces reads the lines with an MTU, the state of the medium, two counters and
// a name.
func subinterfaces(text string) (all []Interface) {
	for line := range strings.Lines(text) {
		fields := strings.Fields(line)
		if len(fields) < 5 || !numbers(fields[1:4]) || fields[1] == unconnected {
			continue
		}
		mtu, err := strconv.ParseUint(fields[0], 10, 32)
		if err == nil && mtu != loopbackMTU {
			all = append(all, Interface{Name: strings.Join(fields[4:], " "), MTU: int(mtu)})
		}
	}
	return all
}

func numbers(fields []string) bool {
	return !slices.ContainsFunc(fields, func(field string) bool {
		_, err := strconv.ParseUint(field, 10, 64)
		return err != nil
	})
}
