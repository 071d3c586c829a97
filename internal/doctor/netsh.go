package doctor

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	agentv1 "github.com/swdt-dev/swdt/api/agent/v1"
	"github.com/swdt-dev/swdt/internal/command"
	"github.com/swdt-dev/swdt/internal/host"
)

// What netsh.exe prints is in the machine's language, and in its code page: only
// numbers are read, by their place in a line, and the names that people have given.

// output is what a program of the node prints.
func (g *gatherer) output(ctx context.Context, program string, args ...string) (string, error) {
	var out, complaint bytes.Buffer
	code, err := command.Run(ctx, g.Node.Processes, &agentv1.RunCommand{Path: program, Args: args}, command.Streams{Stdout: &limited{w: &out}, Stderr: &limited{w: &complaint}})
	switch {
	case errors.Is(err, host.ErrNotExist):
		return "", fmt.Errorf("the node has no %s", program)
	case err != nil:
		return "", fmt.Errorf("run %s: %w", program, err)
	case code != 0:
		return "", &command.FailedError{Command: program + " " + strings.Join(args, " "), ExitCode: code, Stderr: complaint.String() + out.String()}
	}
	return strings.ToValidUTF8(out.String(), "\uFFFD"), nil
}

// largestOutput is what is kept of what a program prints, bytes.
const largestOutput = 1 << 20

// limited keeps the beginning.
type limited struct {
	w    io.Writer
	kept int
}

func (l *limited) Write(p []byte) (int, error) {
	keep := p[:min(len(p), max(0, largestOutput-l.kept))]
	l.kept += len(keep)
	if _, err := l.w.Write(keep); err != nil {
		return 0, err
	}
	return len(p), nil
}

func (g *gatherer) ports(ctx context.Context) error {
	excluded, err := g.output(ctx, "netsh.exe", "int", "ipv4", "show", "excludedportrange", "protocol=tcp")
	if err != nil {
		g.facts.Ports = learn(Ports{}, err)
		return err
	}
	dynamic, err := g.output(ctx, "netsh.exe", "int", "ipv4", "show", "dynamicport", "tcp")
	var ports Ports
	if err == nil {
		ports.Excluded, err = excludedPorts(excluded)
	}
	if err == nil {
		ports.DynamicFirst, ports.DynamicCount, err = dynamicPorts(dynamic)
	}
	g.facts.Ports = learn(ports, err)
	return err
}

// errNotUnderstood: Wine's netsh prints something else, or nothing.
var errNotUnderstood = errors.New("the node's netsh.exe does not print what Windows' does")

// excludedPorts are the lines of two ports under a ruler, and a star where a person
// excluded them.
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
		return nil, errNotUnderstood
	}
	return ranges, nil
}

// dynamicPorts are the first port and how many: two lines that end in a number.
func dynamicPorts(text string) (first uint16, count int, err error) {
	var numbers []int
	for line := range strings.Lines(text) {
		fields := strings.Fields(line)
		if len(fields) < 2 {
			continue
		}
		if n, err := strconv.Atoi(strings.TrimLeft(fields[len(fields)-1], ":")); err == nil {
			numbers = append(numbers, n)
		}
	}
	if len(numbers) != 2 || numbers[0] < 0 || numbers[0] > 0xffff {
		return 0, 0, errNotUnderstood
	}
	return uint16(numbers[0]), numbers[1], nil
}

func (g *gatherer) interfaces(ctx context.Context) error {
	text, err := g.output(ctx, "netsh.exe", "int", "ipv4", "show", "subinterfaces")
	interfaces := subinterfaces(text)
	if err == nil && len(interfaces) == 0 {
		err = errNotUnderstood
	}
	g.facts.Interfaces = learn(interfaces, err)
	return err
}

// loopbackMTU is what Windows says of its loopback, in 32 bits.
const loopbackMTU = 1<<32 - 1

// unconnected is the state of an adapter whose medium is not there: no packet of it
// is too large for anybody.
const unconnected = "5"

// subinterfaces are lines of an MTU, the state of the medium, two counters and a
// name.
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
