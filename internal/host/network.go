package host

import (
	"context"
	"net"
	"time"
)

// Network is the network as the machine sees it.
type Network interface {
	// HTTPGet performs one GET without following redirects and returns the
	// status code and at most the first 64 KiB of the body.
	HTTPGet(ctx context.Context, url string) (status int, body []byte, err error)
	// DialPipe connects to a named pipe such as \\.\pipe\containerd-containerd.
	// A pipe that nobody serves is ErrNotExist.
	DialPipe(ctx context.Context, path string) (net.Conn, error)
	// Reach connects to host:port by TCP, hangs up at once and says how it went.
	// A connection that fails is an outcome; err is for an address that is none,
	// and for ctx.
	Reach(ctx context.Context, address string, timeout time.Duration) (Reach, error)
	// Resolve returns the addresses of a name, as programs on the machine get
	// them: the hosts file counts. A name that is not found is ErrNotExist.
	Resolve(ctx context.Context, name string) ([]string, error)
	// Listeners returns every TCP port that a process listens on, sorted by
	// port; ErrNotSupported where the machine cannot tell.
	Listeners(ctx context.Context) ([]Listener, error)
}

// ReachOutcome is how an attempt to connect ended.
type ReachOutcome string

const (
	Reached      ReachOutcome = "reached"
	Refused      ReachOutcome = "refused"      // the host answers, nobody listens on the port
	TimedOut     ReachOutcome = "timedOut"     // no answer: a firewall, or nobody has the address
	NoRoute      ReachOutcome = "noRoute"      // the machine has no way to that network or host
	NameNotFound ReachOutcome = "nameNotFound" // no such name
	ReachFailed  ReachOutcome = "failed"       // Detail says how
)

// Reach is what came of an attempt to connect.
type Reach struct {
	Outcome ReachOutcome
	Address string        // address:port of the connection's other end, where there was one
	Took    time.Duration // until the outcome was known
	Detail  string        // what the operating system said about a failure
}

// Listener is a TCP port that a process listens on.
type Listener struct {
	Address string // 0.0.0.0:10250, [::]:10250
	Port    uint16
	PID     uint32 // 4: the kernel, for http.sys; 0: unknown
}
