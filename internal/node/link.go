package node

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/swdt-dev/swdt/internal/node/carrier"
	"github.com/swdt-dev/swdt/internal/node/reply"
	"github.com/swdt-dev/swdt/internal/wire/handshake"
	"github.com/swdt-dev/swdt/internal/wire/layout"
	"github.com/swdt-dev/swdt/internal/wire/packed"
)

const (
	// streamWindow and connectionWindow, in bytes, let one stream fill a fast link with a long
	// round-trip time.
	streamWindow     = 8 << 20
	connectionWindow = 16 << 20
	largestMessage   = 16 << 20
	// goodbye is how long the agent may take to end after its stdin is closed.
	goodbye = 3 * time.Second
)

// link is one connection with the agent at its other end.
type link struct {
	conn   carrier.Connection
	agent  carrier.Process
	rpc    *grpc.ClientConn
	bulk   secondLink // the channel for transfers that take long
	relays secondLink // the channel for the node's named pipes
}

func newLink(conn carrier.Connection, agent carrier.Process) (*link, error) {
	var dialed atomic.Bool
	once := func(context.Context, string) (net.Conn, error) {
		if dialed.Swap(true) {
			return nil, errors.New("the agent's stream ended")
		}
		return &agentConn{agent: agent, address: conn.Address()}, nil
	}
	options := []grpc.DialOption{
		grpc.WithTransportCredentials(insecure.NewCredentials()), // the carrier protects the stream
		grpc.WithContextDialer(once),
		grpc.WithInitialWindowSize(streamWindow),
		grpc.WithInitialConnWindowSize(connectionWindow),
		grpc.WithDefaultCallOptions(
			grpc.MaxCallRecvMsgSize(largestMessage), grpc.MaxCallSendMsgSize(largestMessage)),
		grpc.WithChainStreamInterceptor(packed.Client),
		grpc.WithIdleTimeout(0), // an idle stream must not be closed, since it cannot be opened again
		grpc.WithDisableServiceConfig(),
		grpc.WithDisableRetry(),
	}
	rpc, err := grpc.NewClient("passthrough:///node", append(options, reply.Options()...)...)
	if err != nil {
		return nil, fmt.Errorf("connect to the agent's services: %w", err)
	}
	return &link{conn: conn, agent: agent, rpc: rpc}, nil
}

func (l *link) close() error {
	defer l.relays.wait()
	defer l.bulk.wait()
	l.bulk.hangUp()
	l.relays.hangUp()
	l.rpc.Close() // closes the agent's stdin, so that the agent ends
	l.agent.Input().Close()
	limit := time.NewTimer(goodbye)
	defer limit.Stop()
	select {
	case <-l.agent.Done():
	case <-l.conn.Done():
	case <-limit.C:
	}
	return l.conn.Close()
}

// agentConn is the agent's stdin and stdout as a network connection.
type agentConn struct {
	agent   carrier.Process
	address string
}

func (c *agentConn) Read(p []byte) (int, error)  { return c.agent.Output().Read(p) }
func (c *agentConn) Write(p []byte) (int, error) { return c.agent.Input().Write(p) }
func (c *agentConn) Close() error                { return c.agent.Input().Close() }

func (c *agentConn) LocalAddr() net.Addr  { return agentAddr("swdt") }
func (c *agentConn) RemoteAddr() net.Addr { return agentAddr(c.address) }

// Deadlines do not suit a stream that many calls share. Each call is bounded by its
// context.
func (c *agentConn) SetDeadline(time.Time) error      { return nil }
func (c *agentConn) SetReadDeadline(time.Time) error  { return nil }
func (c *agentConn) SetWriteDeadline(time.Time) error { return nil }

type agentAddr string

func (a agentAddr) Network() string { return "ssh" }
func (a agentAddr) String() string  { return string(a) }

// silentError reports that the command at the agent's path was run, but that no agent of this
// version answered.
type silentError struct {
	carrier.FailedStart
	err error
}

func (e *silentError) Error() string { return e.err.Error() }
func (e *silentError) Unwrap() error { return e.err }

// startAgent runs the agent and exchanges the greeting. The command is a path without
// spaces and without arguments. If the way to the node can spell that path otherwise, a start that failed for the
// spelling is repeated.
func (n *Node) startAgent(ctx context.Context, conn carrier.Connection) (carrier.Process, error) {
	path := layout.Agent(n.opts.Agent.Hash)
	n.opts.Reporter.Debug("starting %s", path)
	limited, cancel := context.WithTimeout(ctx, n.opts.AgentTimeout)
	defer cancel()
	agent, err := conn.Start(limited, path)
	if err != nil {
		return nil, n.notAnswered(ctx, limited, "", err)
	}
	// A read cannot be cancelled. When limited ends, swdt closes the whole connection, which has no
	// use without an agent.
	unhook := context.AfterFunc(limited, func() { conn.Close() })
	err = handshake.Dial(struct {
		io.Reader
		io.Writer
	}{agent.Output(), agent.Input()}, n.opts.Agent.Hash)
	if !unhook() || limited.Err() != nil {
		return nil, n.notAnswered(ctx, limited, agent.Stderr(), err)
	}
	if err == nil {
		return agent, nil
	}
	defer agent.Close()
	err = silent(limited, agent, err)
	failed, isSilent := errors.AsType[*silentError](err)
	if learner, ok := conn.(carrier.Learner); ok && isSilent && learner.Learn(failed.ExitCode) {
		return n.startAgent(ctx, conn)
	}
	return nil, err
}

// notAnswered returns the error of a failed start: ctx's error if the whole command
// was cancelled, a *NoAnswerError if the agent's timeout has passed, otherwise err.
func (n *Node) notAnswered(ctx, limited context.Context, output string, err error) error {
	switch {
	case errors.Is(ctx.Err(), context.Canceled):
		return ctx.Err()
	case limited.Err() != nil:
		return &NoAnswerError{Path: layout.Agent(n.opts.Agent.Hash), Output: output, Err: limited.Err()}
	default:
		return err
	}
}

// silent returns err unchanged unless err reports that another program answered. In that case, it
// returns a *silentError with the output and the exit code of the failed start.
func silent(ctx context.Context, agent carrier.Process, err error) error {
	var none *handshake.NoAgentError
	var other *handshake.HashMismatchError
	printed := ""
	switch {
	case errors.As(err, &none):
		printed = string(none.Output)
	case errors.As(err, &other):
	default:
		return err
	}
	agent.Input().Close() // ends the program that was started instead of an agent
	limited, cancel := context.WithTimeout(ctx, goodbye)
	defer cancel()
	code, _ := agent.ExitCode(limited) // -1 if the program has not ended
	return &silentError{carrier.FailedStart{ExitCode: code, Output: printed + " " + agent.Stderr()}, err}
}
