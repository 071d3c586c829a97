package simulated

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/rpc"
	"net/rpc/jsonrpc"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
)

// dlvMain imitates `dlv attach PID --headless --continue --accept-multiclient --listen=ADDRESS` of Delve 1.27.2, as it
// was seen under Wine: it prints its address and serves JSON-RPC to any number of clients. RPCServer.Detach ends it and
// lets the process run on. Windows ends the process with its debugger otherwise, since Delve never calls
// DebugSetProcessKillOnExit (pkg/proc/native/proc_windows.go). A Detach of a running process does not return before a
// halt (service/debugger/debugger.go).
func dlvMain(ctx context.Context, p *Process) int {
	pid, err := strconv.ParseUint(p.Args[min(1, len(p.Args)-1)], 10, 32)
	listen := slices.IndexFunc(p.Args, func(arg string) bool { return strings.HasPrefix(arg, "--listen=") })
	if p.Args[0] != "attach" || err != nil || listen < 0 || !slices.Contains(p.Args, "--headless") {
		fmt.Fprintln(p.Stderr, "Error: you must provide a PID")
		return 1
	}
	d := &debugger{p: p, pid: uint32(pid), detached: make(chan struct{})}
	d.running.Store(slices.Contains(p.Args, "--continue"))
	if err := d.attach(); err != nil {
		fmt.Fprintf(p.Stderr, "could not attach to pid %d: %v\n", pid, err)
		return 1
	}
	listener, err := net.Listen("tcp", strings.TrimPrefix(p.Args[listen], "--listen="))
	if err != nil {
		fmt.Fprintf(p.Stderr, "couldn't start listener: %v\n", err)
		return 1
	}
	defer listener.Close()
	fmt.Fprintf(p.Stdout, "API server listening at: %s\n", listener.Addr())
	go d.serve(listener)
	select {
	case <-d.detached:
		return 0
	case <-ctx.Done():
		return exitKilled
	}
}

// debugger is one run of dlv.
type debugger struct {
	p        *Process
	pid      uint32
	running  atomic.Bool
	once     sync.Once
	detached chan struct{}
}

// attach makes the debugged process end with dlv's, unless it is detached by then.
func (d *debugger) attach() error {
	m := d.p.p.m
	m.mu.Lock()
	defer m.mu.Unlock()
	debugged := m.processes[d.pid]
	if debugged == nil {
		return errors.New("the parameter is incorrect")
	}
	d.p.p.closers = append(d.p.p.closers, func() {
		if !isClosed(d.detached) {
			debugged.end(exitKilled)
		}
	})
	return nil
}

func (d *debugger) serve(listener net.Listener) {
	server := rpc.NewServer()
	if err := server.RegisterName("RPCServer", &dlvCalls{d}); err != nil {
		panic(err)
	}
	for {
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		go server.ServeCodec(jsonrpc.NewServerCodec(conn))
	}
}

// dlvCalls has the calls of a client, as service/rpc2 of Delve names them.
type dlvCalls struct{ *debugger }

// DlvIn is the union of the calls' arguments.
type DlvIn struct {
	Name        string `json:"name"`
	NonBlocking bool
	Kill        bool
}

// DlvOut is the result of State and Command.
type DlvOut struct{ State struct{ Running bool } }

// State reports whether the process runs.
func (c *dlvCalls) State(_ DlvIn, out *DlvOut) error {
	out.State.Running = c.running.Load()
	return nil
}

// Command halts or continues the process.
func (c *dlvCalls) Command(in DlvIn, out *DlvOut) error {
	c.running.Store(in.Name != "halt")
	return c.State(in, out)
}

// Detach ends dlv.
func (c *dlvCalls) Detach(in DlvIn, _ *struct{}) error {
	if c.running.Load() {
		<-c.detached
	}
	if !in.Kill {
		c.once.Do(func() { close(c.detached) })
	}
	return nil
}
