package platform

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"time"

	"github.com/swdt-dev/swdt/internal/wire/fault"
)

// Network examines the network from the machine.
type Network interface {
	// HTTPGet performs one GET without following redirects and returns the
	// status code and at most the first MiB of the body.
	HTTPGet(ctx context.Context, url string) (status int, body []byte, err error)
	// DialPipe connects to a named pipe such as \\.\pipe\containerd-containerd.
	// If no process serves the pipe, the error is fault.ErrNotExist. PipeServer returns the process that serves it.
	DialPipe(ctx context.Context, path string) (net.Conn, error)
	// Connect connects by TCP to a port of the machine itself: to a loopback address, or to an
	// address of one of its network interfaces. For any other address the error is
	// fault.ErrPermission, and nothing is sent. If no process listens, the error is
	// fault.ErrNotExist.
	Connect(ctx context.Context, address netip.AddrPort) (Connection, error)
	// Reach connects to host:port by TCP, closes the connection at once and
	// reports the outcome. A failed connection is an outcome, not an error; err
	// is set only for an invalid address, and when ctx ends.
	Reach(ctx context.Context, address string, timeout time.Duration) (Reach, error)
	// Resolve returns the addresses that programs on the machine get for a name, including those
	// from the hosts file. If the name is not found, the error is fault.ErrNotExist.
	Resolve(ctx context.Context, name string) ([]string, error)
	// Listeners returns every TCP port on which a process listens, sorted by port. If the machine
	// cannot list these ports, the error is fault.ErrNotSupported.
	Listeners(ctx context.Context) ([]Listener, error)
}

// PipeServer returns the PID of the process that serves the other end of a connection that DialPipe returned. If that
// is unknown, the error is fault.ErrNotSupported.
func PipeServer(conn net.Conn) (pid uint32, err error) {
	served, ok := conn.(interface{ ServerPID() (uint32, error) })
	if !ok {
		return 0, fmt.Errorf("find the process that serves a pipe: %w", fault.ErrNotSupported)
	}
	return served.ServerPID()
}

// Connection is a TCP connection. Its directions end separately: after CloseWrite the peer reads the
// end, and Read still returns what the peer sends.
type Connection interface {
	net.Conn
	CloseWrite() error
}

// ReachOutcome is how an attempt to connect ended.
type ReachOutcome string

const (
	Reached      ReachOutcome = "reached"
	Refused      ReachOutcome = "refused"      // the host responds, but no process listens on the port
	TimedOut     ReachOutcome = "timedOut"     // no response, because of a firewall or because no host has the address
	NoRoute      ReachOutcome = "noRoute"      // the machine has no route to that network or host
	NameNotFound ReachOutcome = "nameNotFound" // no such name
	ReachFailed  ReachOutcome = "failed"       // see Detail
)

// Reach is the result of an attempt to connect.
type Reach struct {
	Outcome ReachOutcome
	// Address is the address:port of the attempt; empty if there was none, as for an unknown name.
	Address string
	// Source is the machine's own address of the connection; empty if there is no connection.
	Source string
	Took   time.Duration // from the beginning of the attempt until its outcome
	Detail string        // the operating system's error text, after a failure
}

// Listener is a TCP port on which a process listens.
type Listener struct {
	Address string // such as 0.0.0.0:10250 or [::]:10250
	Port    uint16
	PID     uint32 // 4: the kernel, for http.sys; 0: unknown
}
