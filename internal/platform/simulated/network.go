package simulated

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"syscall"

	"github.com/swdt-dev/swdt/internal/wire/fault"
)

const bodyLimit = 1 << 20

// listener serves one address.
type listener struct {
	p       *process
	handler http.Handler
}

func (p *process) listen(address string, handler http.Handler) error {
	p.m.mu.Lock()
	defer p.m.mu.Unlock()
	if p.gone {
		return ErrKilled
	}
	if p.m.listeners[address] != nil {
		return fmt.Errorf("listen on %s: %w", address, syscall.EADDRINUSE)
	}
	l := &listener{p: p, handler: handler}
	p.m.listeners[address] = l
	p.closers = append(p.closers, func() {
		if p.m.listeners[address] == l {
			delete(p.m.listeners, address)
		}
	})
	return nil
}

// networkView implements platform.Network for one process.
type networkView struct{ p *process }

func (v networkView) HTTPGet(ctx context.Context, address string) (status int, body []byte, err error) {
	err = v.p.operate(Operation{Kind: OpHTTPGet, Target: address}, func(Verdict) error {
		status, body, err = v.get(ctx, address)
		return err
	})
	if err != nil {
		return 0, nil, err
	}
	return status, body, nil
}

func (v networkView) get(ctx context.Context, address string) (int, []byte, error) {
	u, err := url.Parse(address)
	if err != nil {
		return 0, nil, fmt.Errorf("GET %s: %w", address, err)
	}
	at := strings.Replace(u.Host, "localhost", "127.0.0.1", 1)
	v.p.m.mu.Lock()
	l := v.p.m.listeners[at]
	v.p.m.mu.Unlock()
	if l == nil {
		return 0, nil, fmt.Errorf("GET %s: connect: %w", address, syscall.ECONNREFUSED)
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return 0, nil, fmt.Errorf("GET %s: %w", address, err)
	}
	answer := &response{header: http.Header{}, status: http.StatusOK}
	l.handler.ServeHTTP(answer, request)
	if err := ctx.Err(); err != nil {
		return 0, nil, fmt.Errorf("GET %s: %w", address, err)
	}
	return answer.status, answer.body.Bytes(), nil
}

type response struct {
	header http.Header
	status int
	body   bytes.Buffer
}

func (r *response) Header() http.Header    { return r.header }
func (r *response) WriteHeader(status int) { r.status = status }
func (r *response) Write(b []byte) (int, error) {
	r.body.Write(b[:min(len(b), bodyLimit-r.body.Len())])
	return len(b), nil
}

// pipe is a named pipe that a process serves; it is a net.Listener. Names ignore case ("Pipe Names"), and there is no file
// without a server (go-winio's pipe.go).
type pipe struct {
	path    string
	p       *process
	waiting chan net.Conn
	closed  chan struct{}
	open    context.Context // ends when the process ends or Close is called
	close   context.CancelFunc
}

// ListenPipe serves a named pipe (\\.\pipe\NAME) until the process ends.
func (p *Process) ListenPipe(path string) (net.Listener, error) {
	m := p.p.m
	m.mu.Lock()
	defer m.mu.Unlock()
	if p.p.gone {
		return nil, ErrKilled
	}
	key := pipeKey(path)
	if m.pipes[key] != nil {
		return nil, fmt.Errorf("listen on %s: %w", path, fault.ErrExist)
	}
	l := &pipe{path: path, p: p.p, waiting: make(chan net.Conn), closed: make(chan struct{})}
	l.open, l.close = context.WithCancel(p.p.ctx)
	m.pipes[key] = l
	p.p.closers = append(p.p.closers, func() { l.forget() })
	m.notify()
	return l, nil
}

func pipeKey(path string) string { return fold(strings.ReplaceAll(path, "/", `\`)) }

// forget removes the pipe; the caller holds the lock.
func (l *pipe) forget() {
	if l.p.m.pipes[pipeKey(l.path)] == l {
		delete(l.p.m.pipes, pipeKey(l.path))
		close(l.closed)
	}
}

func (l *pipe) Accept() (net.Conn, error) {
	select {
	case c := <-l.waiting:
		return c, nil
	case <-l.open.Done():
		return nil, net.ErrClosed
	}
}

func (l *pipe) Close() error {
	l.close()
	l.p.m.mu.Lock()
	defer l.p.m.mu.Unlock()
	l.forget()
	return nil
}

func (l *pipe) Addr() net.Addr { return pipeAddress(l.path) }

type pipeAddress string

func (pipeAddress) Network() string  { return "pipe" }
func (a pipeAddress) String() string { return string(a) }

func (v networkView) DialPipe(ctx context.Context, path string) (conn net.Conn, err error) {
	err = v.p.operate(Operation{Kind: OpPipeDial, Target: path}, func(Verdict) error {
		conn, err = v.dial(ctx, path)
		return err
	})
	if err != nil && conn != nil {
		_ = conn.Close()
		conn = nil
	}
	return conn, err
}

func (v networkView) dial(ctx context.Context, path string) (net.Conn, error) {
	v.p.m.mu.Lock()
	l := v.p.m.pipes[pipeKey(path)]
	v.p.m.mu.Unlock()
	if l == nil {
		return nil, fmt.Errorf("connect to %s: %w", path, fault.ErrNotExist)
	}
	client, server := net.Pipe()
	select {
	case l.waiting <- server:
	case <-l.open.Done():
		return nil, fmt.Errorf("connect to %s: %w", path, fault.ErrNotExist)
	case <-ctx.Done():
		return nil, fmt.Errorf("connect to %s: %w", path, ctx.Err())
	}
	return endsWith(client, v.p, l.p), nil
}

// ServerPID returns the process that serves the pipe.
func (c *pipeConn) ServerPID() (uint32, error) { return c.server, nil }

// pipeConn is the client's end of a pipe; it closes when either of the two processes ends.
type pipeConn struct {
	net.Conn
	server uint32
	stop   []func() bool
}

func endsWith(conn net.Conn, processes ...*process) net.Conn {
	c := &pipeConn{Conn: conn, server: processes[len(processes)-1].pid}
	for _, p := range processes {
		c.stop = append(c.stop, context.AfterFunc(p.ctx, func() { _ = conn.Close() }))
	}
	return c
}

func (c *pipeConn) Close() error {
	for _, stop := range c.stop {
		stop()
	}
	return c.Conn.Close()
}

func (p *process) stopListening(address string) {
	p.m.mu.Lock()
	defer p.m.mu.Unlock()
	if l := p.m.listeners[address]; l != nil && l.p == p {
		delete(p.m.listeners, address)
	}
}
