// Package portforward relays TCP ports of a node to ports of your machine, for `swdt forward` and `swdt rdp`.
package portforward

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"sync"

	"github.com/swdt-dev/swdt/internal/fleet"
	"github.com/swdt-dev/swdt/internal/node/criproxy/streaming"
	"github.com/swdt-dev/swdt/internal/ui"
)

// mostConnections is how many connections one port relays at a time; a further one waits.
const mostConnections = 256

// Port is a port of the node and the port of your machine that leads to it.
type Port struct {
	local uint16 // 0: a free one
	node  uint16
}

// FormatError reports a port that Parse does not understand.
type FormatError struct{ Text string }

func (e *FormatError) Error() string {
	return fmt.Sprintf("%q is no port: write PORT, LOCAL:PORT or :PORT, which takes a free port here", e.Text)
}

// Parse reads PORT, LOCAL:PORT or :PORT, as kubectl port-forward does. The error is a *FormatError.
func Parse(text string) (Port, error) {
	local, remote, two := strings.Cut(text, ":")
	if !two {
		remote = local
	}
	node, err := strconv.ParseUint(remote, 10, 16)
	if err != nil || node == 0 {
		return Port{}, &FormatError{text}
	}
	p := Port{node: uint16(node)}
	if local != "" {
		number, err := strconv.ParseUint(local, 10, 16)
		if err != nil {
			return Port{}, &FormatError{text}
		}
		p.local = uint16(number)
	}
	return p, nil
}

// Address returns the address on the node.
func (p Port) Address() netip.AddrPort {
	return netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), p.node)
}

// LocalPortError reports a port of your machine at which swdt cannot listen, such as one that another program uses.
type LocalPortError struct {
	Port Port
	Err  error
}

func (e *LocalPortError) Error() string {
	return fmt.Sprintf("%v; write LOCAL:%d for another port of this machine, or :%[2]d for a free one", e.Err, e.Port.node)
}
func (e *LocalPortError) Unwrap() error { return e.Err }

// Listen listens for the port on the loopback address of your machine, so that no other machine can use it. The error is
// a *LocalPortError.
func Listen(ctx context.Context, p Port) (net.Listener, error) {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(int(p.local))))
	if err != nil {
		return nil, &LocalPortError{p, err}
	}
	return listener, nil
}

// Forward is a port with the listener that leads to it.
type Forward struct {
	Port     Port
	Listener net.Listener
}

// Serve relays each connection to the node until ctx ends, and returns the cause. A connection that the node refuses is
// closed, with a warning. If a port can accept no connection any more, Serve ends all, and returns the error.
func Serve(ctx context.Context, forwards []Forward, dial streaming.Dial, r ui.Reporter) error {
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	var all sync.WaitGroup
	for _, f := range forwards {
		all.Go(func() { f.serve(ctx, end, dial, r) })
	}
	all.Wait()
	return context.Cause(ctx)
}

// serve calls end with the error if the listener fails before ctx ends.
func (f Forward) serve(ctx context.Context, end context.CancelCauseFunc, dial streaming.Dial, r ui.Reporter) {
	defer context.AfterFunc(ctx, func() { _ = f.Listener.Close() })()
	slots := make(chan struct{}, mostConnections)
	var connections sync.WaitGroup
	defer connections.Wait()
	for {
		local, err := f.Listener.Accept()
		if err != nil {
			end(fmt.Errorf("accept connections for port %d of the node: %w", f.Port.node, err)) // a ctx that has ended keeps its cause
			return
		}
		slots <- struct{}{}
		connections.Go(func() {
			defer func() { <-slots }()
			f.relay(ctx, local.(*net.TCPConn), dial, r)
		})
	}
}

func (f Forward) relay(ctx context.Context, local *net.TCPConn, dial streaming.Dial, r ui.Reporter) {
	remote, err := dial(ctx, f.Port.Address())
	if err != nil {
		_ = local.Close()
		if ctx.Err() == nil {
			r.Warn("connect to port %d of the node: %v", f.Port.node, err)
		}
		return
	}
	streaming.Copy(ctx, local, remote)
}

// Report is the result of `swdt forward` and `swdt rdp`.
type Report struct {
	Nodes []NodePorts `json:"nodes"` // always one node
}

// NodePorts has the ports of one node.
type NodePorts struct {
	fleet.Outcome
	Ports []Relayed `json:"ports"`
}

// Relayed is a relayed port.
type Relayed struct {
	Local string `json:"local"` // the address on this machine, such as 127.0.0.1:10250
	Node  string `json:"node"`  // the address on the node
}

// NewReport returns the report of the forwards to one node.
func NewReport(name string, forwards []Forward) Report {
	of := NodePorts{Outcome: fleet.NewOutcome(name, fleet.OK, nil), Ports: []Relayed{}}
	for _, f := range forwards {
		of.Ports = append(of.Ports, Relayed{f.Listener.Addr().String(), f.Port.Address().String()})
	}
	return Report{Nodes: []NodePorts{of}}
}

// WriteText writes a line for each port.
func (r Report) WriteText(p *ui.Page) error {
	for _, n := range r.Nodes {
		for _, port := range n.Ports {
			if _, err := fmt.Fprintf(p, "%s leads to %s of %s\n", port.Local, port.Node, n.Name); err != nil {
				return err
			}
		}
	}
	return nil
}
