// Package attach attaches Delve to the process of a service on a node: it brings dlv.exe to the node, starts it there as
// a headless server on the node's loopback, forwards a port of your machine to it, and detaches at the end, so that the
// service runs on.
//
// Windows ends a process together with its debugger, and Delve does not ask it not to (pkg/proc/native/proc_windows.go
// of v1.27.2 calls no DebugSetProcessKillOnExit). So swdt makes dlv detach before its call ends, over its own JSON-RPC.
// If the connection to the node is lost, Windows ends both: then the service is started again.
package attach

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"time"

	agentv1 "github.com/swdt-dev/swdt/api/agent/v1"
	"github.com/swdt-dev/swdt/internal/fleet"
	"github.com/swdt-dev/swdt/internal/format/access"
	"github.com/swdt-dev/swdt/internal/format/bounded"
	"github.com/swdt-dev/swdt/internal/node"
	"github.com/swdt-dev/swdt/internal/node/command"
	"github.com/swdt-dev/swdt/internal/node/criproxy/streaming"
	"github.com/swdt-dev/swdt/internal/node/portforward"
	"github.com/swdt-dev/swdt/internal/node/transfer"
	"github.com/swdt-dev/swdt/internal/ui"
	"github.com/swdt-dev/swdt/internal/ui/remedy"
	"github.com/swdt-dev/swdt/internal/wait"
	"github.com/swdt-dev/swdt/internal/wire/fault"
	"github.com/swdt-dev/swdt/internal/wire/layout"
)

// Options are the options of Run.
type Options struct {
	Service  string
	Dlv      transfer.File // dlv.exe, on your machine
	Listener net.Listener  // the port of your machine
	// Stop ends the debugging when it is closed; a ctx that ends does so, too.
	Stop <-chan struct{}
	// Attached is called when a client can connect.
	Attached func(Report) error
}

const (
	// attachLimit bounds the time until dlv listens: it reads the debugging information of a kubelet in some seconds.
	attachLimit = 2 * time.Minute
	// detachLimit bounds the end.
	detachLimit = 15 * time.Second
	// returnLimit bounds all that follows the debugging, with the reconnection. The help and the guide name it.
	returnLimit = 10 * time.Minute
	// endLimit bounds the wait for a service whose dlv was ended. The agent notices a lost connection after at most 40 s
	// (pingAfter and pingTimeout in internal/agent), and gives its calls 10 s to end.
	endLimit = time.Minute
)

// Run attaches dlv to the process of a service, and detaches it at the end. It returns after the service was seen to run,
// or was started again.
func Run(ctx context.Context, n *node.Node, o Options, r ui.Reporter) error {
	own, pid, err := processesOf(ctx, n, o.Service)
	if err != nil {
		return err
	}
	program := layout.Dlv(o.Dlv.SHA256)
	removeLeft(ctx, n, program, r)
	o.Dlv.Label, o.Dlv.SDDL = "dlv", access.SafeFile
	if _, err := transfer.Send(ctx, n, o.Dlv, program, r); err != nil {
		return fmt.Errorf("bring dlv.exe to the node: %w", err)
	}
	s := &session{Options: o, node: n, reporter: r, own: own, pid: pid, program: program}
	err = s.debug(ctx)
	return errors.Join(err, s.leave(context.WithoutCancel(ctx)))
}

// removeLeft removes the debuggers that sessions left whose swdt was killed. Windows refuses to remove those that run.
func removeLeft(ctx context.Context, n *node.Node, own string, r ui.Reporter) {
	found, err := n.Files.List(ctx, &agentv1.ListFilesRequest{Path: layout.Debuggers})
	if err != nil {
		return // there is no such folder, or Send reports what is wrong
	}
	for _, entry := range found.GetEntries() {
		path := entry.GetPath()
		if name := path[strings.LastIndex(path, `\`)+1:]; entry.GetFolder() || entry.GetLink() || !strings.HasPrefix(name, "dlv-") || strings.EqualFold(path, own) {
			continue
		}
		if _, err := n.Files.Remove(ctx, &agentv1.RemoveRequest{Path: path}); err != nil {
			r.Debug("remove %s, which another session left or uses: %v", path, err)
		}
	}
}

// processesOf returns the process that the SCM has started for a service, and that of its program, which a wrapper may
// have started.
func processesOf(ctx context.Context, n *node.Node, service string) (own, program uint32, err error) {
	reply, err := n.Services.Get(ctx, &agentv1.GetServiceRequest{Name: service})
	if errors.Is(err, fault.ErrNoService) {
		return 0, 0, fmt.Errorf("there is no service %s on the node: %s lists them", service, remedy.Command("services"))
	}
	if err != nil {
		return 0, 0, fmt.Errorf("look at service %s: %w", service, err)
	}
	inspected, err := n.Swap.Inspect(ctx, &agentv1.InspectRequest{Components: []*agentv1.InspectComponent{
		{Name: service, Service: service, Destination: layout.Root + `\` + service + `.exe`}}})
	if err != nil {
		return 0, 0, fmt.Errorf("look at the process of service %s: %w", service, err)
	}
	own = reply.GetStatus().GetPid()
	program = own
	for _, c := range inspected.GetComponents() {
		if running := c.GetRunning().GetPid(); running != 0 {
			program = running
		}
	}
	if program == 0 {
		return 0, 0, fmt.Errorf("service %s does not run: %s starts it", service, remedy.Command("restart", service))
	}
	return own, program, nil
}

// session is one run of dlv on a node.
type session struct {
	Options
	node     *node.Node
	reporter ui.Reporter
	own      uint32 // the process that the SCM has started
	pid      uint32 // the process of the program
	program  string // dlv.exe on the node
	address  netip.AddrPort
	// killed is set if dlv ended, or may have ended, without a detach: Windows then ends the service.
	killed bool
}

// ended is the end of dlv.
type ended struct {
	code int
	err  error
}

func (s *session) debug(ctx context.Context) error {
	running, kill := context.WithCancel(context.WithoutCancel(ctx))
	defer kill()
	listening, stderr := &announcement{address: make(chan netip.AddrPort, 1)}, &bounded.Tail{Most: longestTail}
	end := make(chan ended, 1)
	go func() {
		code, err := command.Run(running, s.node.Processes, &agentv1.RunCommand{Path: s.program, Args: []string{"attach",
			strconv.FormatUint(uint64(s.pid), 10), "--headless", "--continue", "--accept-multiclient", "--api-version=2",
			"--listen=127.0.0.1:0"}}, command.Streams{Stdout: listening, Stderr: stderr})
		end <- ended{code, err}
	}()
	s.reporter.Step("attaching dlv to %s, process %d", s.Service, s.pid)
	late, cancel := context.WithTimeout(ctx, attachLimit)
	defer cancel()
	select {
	case s.address = <-listening.address:
	case e := <-end:
		s.killed = e.err != nil
		return fmt.Errorf("%w; if %s does not answer, %s", e.failed(stderr), s.Service, remedy.Command("restart", s.Service))
	case <-late.Done():
		s.killed = true
		return fmt.Errorf("wait for dlv to attach: %w", context.Cause(late))
	}
	select {
	case <-s.Stop: // to end dlv while it attached would have ended the service
		return s.detach(ctx, end)
	default:
	}
	if err := s.Attached(s.report()); err != nil {
		return errors.Join(err, s.detach(ctx, end))
	}
	ui.Done(s.reporter)
	serving, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	served := make(chan error, 1)
	go func() {
		served <- portforward.Serve(serving, []portforward.Forward{{Listener: s.Listener}}, s.dial, s.reporter)
	}()
	var err error
	select {
	case e := <-end: // a client has detached, or the connection is lost
		stop(nil)
		<-served
		err = e.failedUnlessDetached(stderr)
		s.killed = err != nil
		return err
	case <-s.Stop:
	case <-ctx.Done():
	case err = <-served:
		served <- err
	}
	stop(nil)
	<-served
	return errors.Join(err, s.detach(ctx, end))
}

// dial connects to dlv, whatever port the caller asks for.
func (s *session) dial(ctx context.Context, _ netip.AddrPort) (streaming.Conn, error) {
	conn, err := s.node.DialPort(ctx, s.address)
	if err != nil {
		return nil, err // and no nil pointer in an interface
	}
	return conn, nil
}

// detach makes dlv leave the process, and waits for its end.
func (s *session) detach(ctx context.Context, end <-chan ended) (failed error) {
	defer func() { s.killed = failed != nil }()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), detachLimit)
	defer cancel()
	s.reporter.Step("detaching dlv from %s", s.Service)
	conn, err := s.node.DialPort(ctx, s.address)
	if err == nil {
		err = leaveProcess(ctx, conn)
	}
	select {
	case e := <-end:
		return e.err
	default:
	}
	if err != nil {
		return fmt.Errorf("detach dlv from %s: %w", s.Service, err)
	}
	select {
	case e := <-end:
		return e.err
	case <-ctx.Done():
		return fmt.Errorf("wait for dlv to end after it has detached: %w", context.Cause(ctx))
	}
}

// leave removes dlv.exe from the node, and starts the service if it has ended with dlv. After a lost connection, dlv and
// the service may still run when the next session begins.
func (s *session) leave(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, returnLimit)
	defer cancel()
	if !s.killed {
		s.clean(ctx)
		return nil
	}
	if _, err := s.status(ctx); err != nil { // it reconnects
		return fmt.Errorf("look at service %s after the end of dlv: %w", s.Service, err)
	}
	status, err := s.awaitEnd(ctx)
	s.clean(ctx)
	if err != nil {
		return err
	}
	if status.GetState() != agentv1.ServiceState_SERVICE_STATE_STOPPED {
		return nil
	}
	return s.startAgain(ctx)
}

// clean removes dlv.exe; a failure is a warning.
func (s *session) clean(ctx context.Context) {
	if err := s.node.Reconnecting(ctx, s.reporter, s.remove); err != nil {
		s.reporter.Warn("could not remove %s from the node: %v", s.program, err)
	}
}

// startAgain starts the service, unless a push is at work, which may have stopped it.
func (s *session) startAgain(ctx context.Context) error {
	inspected, err := s.node.Swap.Inspect(ctx, &agentv1.InspectRequest{})
	if err != nil {
		return fmt.Errorf("look for an unfinished push before the start of service %s: %w", s.Service, err)
	}
	for _, t := range inspected.GetTransactions() {
		if t.GetOutcome() == nil {
			s.reporter.Warn("service %s is stopped, and transaction %s is unfinished: its end decides about the service",
				s.Service, t.GetId())
			return nil
		}
	}
	s.reporter.Warn("service %s ended with dlv; starting it again", s.Service)
	if _, err := s.node.Services.Start(ctx, &agentv1.StartServiceRequest{Name: s.Service}); err != nil {
		return fmt.Errorf("start service %s again: %w; see why: %s", s.Service, err, remedy.Command("logs", s.Service))
	}
	return nil
}

func (s *session) status(ctx context.Context) (status *agentv1.ServiceStatus, err error) {
	err = s.node.Reconnecting(ctx, s.reporter, func(ctx context.Context) error {
		reply, err := s.node.Services.Get(ctx, &agentv1.GetServiceRequest{Name: s.Service})
		status = reply.GetStatus()
		return err
	})
	return status, err
}

// awaitEnd waits for the service to end with dlv, and returns its state. The agent of the lost session ends dlv when it
// notices the loss.
func (s *session) awaitEnd(ctx context.Context) (status *agentv1.ServiceStatus, err error) {
	var failed error
	err = wait.Condition{Name: "the service to end with dlv", Interval: 50 * time.Millisecond, MaxInterval: time.Second,
		Limit: endLimit,
		Look: func(ctx context.Context) error {
			if status, failed = s.status(ctx); failed != nil {
				return wait.Stop(failed)
			}
			if status.GetPid() == s.own {
				return errors.New("it still runs")
			}
			return nil
		}}.Wait(ctx)
	switch {
	case failed != nil:
		return nil, fmt.Errorf("look at service %s after the end of dlv: %w", s.Service, failed)
	case err != nil:
		return nil, fmt.Errorf("service %s still runs as process %d, to which dlv may be attached; see %s, and end both with %s",
			s.Service, s.own, remedy.Command("ps"), remedy.Command("restart", s.Service))
	}
	return status, nil
}

// remove removes dlv.exe, which Windows allows only some time after its process has ended.
func (s *session) remove(ctx context.Context) error {
	return wait.Condition{Name: "Windows to release dlv.exe", Interval: 50 * time.Millisecond, MaxInterval: time.Second,
		Limit: detachLimit,
		Look: func(ctx context.Context) error {
			_, err := s.node.Files.Remove(ctx, &agentv1.RemoveRequest{Path: s.program})
			if errors.Is(err, fault.ErrNotExist) {
				return nil
			}
			return wait.StopIf(errors.As(err, new(*node.LostError)), err)
		}}.Wait(ctx)
}

// failed returns the error of a dlv that ended before it had attached.
func (e ended) failed(stderr *bounded.Tail) error {
	if e.err != nil {
		return fmt.Errorf("run dlv on the node: %w", e.err)
	}
	return fmt.Errorf("dlv did not attach, and ended with exit code %d: %s", e.code, strings.TrimSpace(stderr.String()))
}

func (e ended) failedUnlessDetached(stderr *bounded.Tail) error {
	if e.err == nil && e.code == 0 {
		return nil
	}
	return e.failed(stderr)
}

// announcement finds the address in dlv's first line: "API server listening at: 127.0.0.1:40404".
type announcement struct {
	text    bytes.Buffer
	address chan netip.AddrPort
	found   bool
}

const (
	mostAnnounced = 64 << 10 // bytes
	longestTail   = 2000     // bytes of dlv's stderr
)

func (a *announcement) Write(data []byte) (int, error) {
	if a.found || a.text.Len() > mostAnnounced {
		return len(data), nil
	}
	a.text.Write(data)
	for line := range strings.Lines(a.text.String()) {
		at, ok := strings.CutPrefix(strings.TrimRight(line, "\r\n"), "API server listening at: ")
		if !ok || !strings.HasSuffix(line, "\n") {
			continue
		}
		if address, err := netip.ParseAddrPort(at); err == nil && address.Addr().IsLoopback() {
			a.found = true
			a.address <- address
		}
	}
	return len(data), nil
}

// Report is the result of `swdt attach`.
type Report struct {
	Nodes []NodeReport `json:"nodes"` // always one node
}

// NodeReport is a service to which dlv is attached.
type NodeReport struct {
	fleet.Outcome
	Service string `json:"service"`
	PID     uint32 `json:"pid"`
	Local   string `json:"local"` // the address on this machine, to which clients connect
	Node    string `json:"node"`  // the address on the node
}

func (s *session) report() Report {
	return Report{Nodes: []NodeReport{{fleet.NewOutcome(s.node.Name, fleet.OK, nil), s.Service, s.pid,
		s.Listener.Addr().String(), s.address.String()}}}
}

// WriteText writes how to connect, for Delve's own client and for VS Code, and what to know.
func (r Report) WriteText(p *ui.Page) error {
	for _, n := range r.Nodes {
		host, port, err := net.SplitHostPort(n.Local)
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(p, `%s of %s, process %d: Delve listens at %s

  dlv connect %[4]s

  VS Code, in the configurations of .vscode/launch.json:
    {"name": "%[1]s on %[2]s", "type": "go", "request": "attach", "mode": "remote",
     "host": "%[5]s", "port": %[6]s, "substitutePath": [{"from": "${workspaceFolder}", "to": "FOLDER OF THE BUILD"}]}

While the process is stopped at a breakpoint, it does not answer its health checks: a
kubelet's node becomes NotReady after less than a minute. Ctrl-C detaches, and the
service runs on. Without the connection, Windows ends the service with Delve, and swdt
starts it again.
`, n.Service, n.Name, n.PID, n.Local, host, port)
		if err != nil {
			return err
		}
	}
	return nil
}
