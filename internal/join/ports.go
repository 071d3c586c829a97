package join

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	agentv1 "github.com/swdt-dev/swdt/api/agent/v1"
	"github.com/swdt-dev/swdt/internal/join/preflight"
	"github.com/swdt-dev/swdt/internal/node"
	"github.com/swdt-dev/swdt/internal/node/command"
	"github.com/swdt-dev/swdt/internal/plan"
	"github.com/swdt-dev/swdt/internal/ui"
	"github.com/swdt-dev/swdt/internal/wire/fault"
)

// portRange is a range of TCP ports.
type portRange struct {
	First uint16 `json:"first"`
	Count int    `json:"count"`
}

func (r portRange) String() string { return fmt.Sprintf("%d-%d", r.First, int(r.First)+r.Count-1) }

// usualPorts are the dynamic ports of a Windows with its own range
// (learn.microsoft.com/troubleshoot/windows-server/networking/default-dynamic-port-range-tcpip-chang). Each load
// balancer of kube-proxy takes 64 of them, so they suffice for about 225 Services. widePorts are above the NodePorts,
// 30000-32767, as on nodes of image-builder (images/capi/ansible/windows, role systemprep).
func usualPorts() portRange { return portRange{49152, 16384} }
func widePorts() portRange  { return portRange{34000, 31536} }

// dynamicPorts widens the machine's dynamic ports. Any other range than Windows' own is a choice of its
// administrators, and stays.
type dynamicPorts struct{ *joining }

func (s *dynamicPorts) Name() string { return stepPorts }

func (s *dynamicPorts) Plan(ctx context.Context) (plan.Change, error) {
	is, known, err := portsOf(ctx, s.node)
	if err != nil || !known || is != usualPorts() {
		return plan.Change{}, err
	}
	return plan.Change{Needed: true, Summary: "widen the dynamic TCP ports to " + widePorts().String()}, nil
}

func (s *dynamicPorts) Apply(ctx context.Context, _ ui.Reporter) (plan.Outcome, error) {
	is, _, err := portsOf(ctx, s.node)
	if err != nil {
		return plan.Outcome{}, err
	}
	if err := update(ctx, s.node, func(r *record) { r.PortsBefore = &is }); err != nil {
		return plan.Outcome{}, err
	}
	return plan.Outcome{}, setPorts(ctx, s.node, widePorts())
}

// PlanUndo leaves a range that was changed since.
func (s *dynamicPorts) PlanUndo(ctx context.Context) (plan.Change, error) {
	r, err := load(ctx, s.node)
	if err != nil || r.PortsBefore == nil {
		return plan.Change{}, err
	}
	is, known, err := portsOf(ctx, s.node)
	if err != nil || !known || is != widePorts() {
		return plan.Change{}, err
	}
	return plan.Change{Needed: true, Summary: "set the dynamic TCP ports to " + r.PortsBefore.String() + " again"}, nil
}

func (s *dynamicPorts) Undo(ctx context.Context, _ ui.Reporter) (plan.Outcome, error) {
	r, err := load(ctx, s.node)
	if err != nil || r.PortsBefore == nil {
		return plan.Outcome{}, err
	}
	if err := setPorts(ctx, s.node, *r.PortsBefore); err != nil {
		return plan.Outcome{}, err
	}
	return plan.Outcome{}, update(ctx, s.node, func(r *record) { r.PortsBefore = nil })
}

// portsOf returns the machine's dynamic TCP ports. known is false if the machine cannot report them, as Wine.
func portsOf(ctx context.Context, n *node.Node) (is portRange, known bool, err error) {
	text, err := netsh(ctx, n, "int", "ipv4", "show", "dynamicport", "tcp")
	var failed *command.FailedError
	switch {
	case errors.Is(err, fault.ErrNotExist), errors.As(err, &failed):
		return portRange{}, false, nil
	case err != nil:
		return portRange{}, false, fmt.Errorf("read the dynamic ports: %w", err)
	}
	is.First, is.Count, err = preflight.DynamicPorts(text)
	return is, err == nil, nil
}

func setPorts(ctx context.Context, n *node.Node, wanted portRange) error {
	_, err := netsh(ctx, n, "int", "ipv4", "set", "dynamicport", "tcp", fmt.Sprintf("start=%d", wanted.First),
		fmt.Sprintf("num=%d", wanted.Count))
	if err != nil {
		return fmt.Errorf("set the dynamic TCP ports to %s: %w", wanted, err)
	}
	return nil
}

func netsh(ctx context.Context, n *node.Node, args ...string) (string, error) {
	var out bytes.Buffer
	code, err := command.Run(ctx, n.Processes, &agentv1.RunCommand{Path: "netsh.exe", Args: args},
		command.Streams{Stdout: &out, Stderr: &out})
	if err == nil && code != 0 {
		err = &command.FailedError{Command: "netsh.exe", ExitCode: code, Stderr: out.String()}
	}
	return out.String(), err
}
