package attach

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"net/rpc"
	"net/rpc/jsonrpc"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	agentv1 "github.com/swdt-dev/swdt/api/agent/v1"
	"github.com/swdt-dev/swdt/internal/node"
	"github.com/swdt-dev/swdt/internal/node/transfer"
	"github.com/swdt-dev/swdt/internal/platform"
	"github.com/swdt-dev/swdt/internal/platform/simulated"
	"github.com/swdt-dev/swdt/internal/testing/nodetest"
	"github.com/swdt-dev/swdt/internal/ui"
	"github.com/swdt-dev/swdt/internal/wire/layout"
)

// bench is a node with a kubelet, and a run of Run.
type bench struct {
	t        *testing.T
	node     *nodetest.Node
	pid      uint32
	program  string // dlv.exe on the node
	stop     chan struct{}
	attached chan Report
	end      chan error
	story    *warnings
}

type warnings struct {
	ui.Discard
	all chan string
}

func (w *warnings) Warn(format string, _ ...any) { w.all <- format }

func newBench(t *testing.T) *bench {
	b := &bench{t: t, node: nodetest.Start(t, "w1", simulated.Options{Preset: simulated.Node}), stop: make(chan struct{}),
		attached: make(chan Report, 1), end: make(chan error, 1), story: &warnings{all: make(chan string, 100)}}
	b.pid = b.service("kubelet").GetPid()
	return b
}

func (b *bench) service(name string) *agentv1.ServiceStatus {
	b.t.Helper()
	reply, err := b.node.Services.Get(b.t.Context(), &agentv1.GetServiceRequest{Name: name})
	if err != nil {
		b.t.Fatal(err)
	}
	return reply.GetStatus()
}

// run attaches a program to a service.
func (b *bench) run(ctx context.Context, service string, program []byte) {
	b.t.Helper()
	file := filepath.Join(b.t.TempDir(), "dlv.exe")
	if err := os.WriteFile(file, program, 0o600); err != nil {
		b.t.Fatal(err)
	}
	info, err := os.Stat(file)
	if err != nil {
		b.t.Fatal(err)
	}
	sum := sha256.Sum256(program)
	var binary transfer.File
	binary.Path, binary.Size, binary.Modified, binary.SHA256 = file, info.Size(), info.ModTime(), hex.EncodeToString(sum[:])
	b.program = layout.Dlv(binary.SHA256)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() { listener.Close() })
	go func() {
		b.end <- Run(ctx, b.node.Node, Options{Service: service, Dlv: binary, Listener: listener, Stop: b.stop,
			Attached: func(r Report) error { b.attached <- r; return nil }}, b.story)
	}()
}

func (b *bench) attach(ctx context.Context) (client *rpc.Client) {
	b.t.Helper()
	b.run(ctx, "kubelet", simulated.Binary(simulated.BinarySpec{Name: "dlv", Version: "1.27.2"}))
	select {
	case r := <-b.attached:
		if r.Nodes[0].PID != b.pid || r.Nodes[0].Service != "kubelet" {
			b.t.Errorf("the report is %+v, and kubelet's process is %d", r, b.pid)
		}
		client, err := jsonrpc.Dial("tcp", r.Nodes[0].Local)
		if err != nil {
			b.t.Fatal(err)
		}
		b.t.Cleanup(func() { client.Close() })
		return client
	case err := <-b.end:
		b.t.Fatalf("Run ended: %v", err)
	}
	return nil
}

// expectGone checks that dlv has left nothing on the node.
func (b *bench) expectGone() {
	b.t.Helper()
	if b.node.Get(b.program) != nil {
		b.t.Errorf("%s is still on the node", b.program)
	}
	processes, err := b.node.Processes.List(b.t.Context(), &agentv1.ListProcessesRequest{})
	if err != nil {
		b.t.Fatal(err)
	}
	for _, p := range processes.GetProcesses() {
		if strings.Contains(p.GetName(), "dlv") {
			b.t.Errorf("%s still runs", p.GetName())
		}
	}
}

type state struct{ State struct{ Running bool } }

// However the debugging ends, the same process runs on, and nothing is left.
func TestTheServiceRunsOn(t *testing.T) {
	for name, end := range map[string]func(b *bench, client *rpc.Client, cancel func()) error{
		"Ctrl-C":         func(b *bench, _ *rpc.Client, _ func()) error { close(b.stop); return nil },
		"a second one":   func(_ *bench, _ *rpc.Client, cancel func()) error { cancel(); return nil },
		"its own detach": func(_ *bench, client *rpc.Client, _ func()) error { return halted(client, "Detach") },
		"at a breakpoint": func(b *bench, client *rpc.Client, _ func()) error {
			err := halted(client, "State")
			close(b.stop)
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			client := b.attach(ctx)
			var now state
			if err := client.Call("RPCServer.State", struct{}{}, &now); err != nil || !now.State.Running {
				t.Errorf("through the forwarded port, the state is %+v, %v", now, err)
			}
			if err := end(b, client, cancel); err != nil {
				t.Error(err)
			}
			if err := <-b.end; err != nil {
				t.Error(err)
			}
			if s := b.service("kubelet"); s.GetPid() != b.pid || s.GetState() != agentv1.ServiceState_SERVICE_STATE_RUNNING {
				t.Errorf("kubelet is %v, want process %d", s, b.pid)
			}
			b.expectGone()
		})
	}
}

// A debugger that a killed session left is removed by the next one, other files are not.
func TestLeftDebuggersAreRemoved(t *testing.T) {
	b := newBench(t)
	left, other := layout.Dlv(strings.Repeat("a", 64)), layout.Debuggers+`\notes.txt`
	b.node.Put(left, []byte("MZ"))
	b.node.Put(other, []byte("mine"))
	b.attach(t.Context())
	if b.node.Get(left) != nil || b.node.Get(other) == nil || b.node.Get(b.program) == nil {
		t.Error("the debugger of another session is there, or another file is gone")
	}
	close(b.stop)
	if err := <-b.end; err != nil {
		t.Error(err)
	}
}

// halted halts the process and makes another call.
func halted(client *rpc.Client, method string) error {
	if err := client.Call("RPCServer.Command", map[string]string{"name": "halt"}, &state{}); err != nil {
		return err
	}
	err := client.Call("RPCServer."+method, struct{}{}, &struct{}{})
	if errors.Is(err, io.ErrUnexpectedEOF) { // dlv has ended before its answer was sent
		return nil
	}
	return err
}

// Windows ends the service with dlv when the session ends. It is started again.
func TestALostConnectionEndsTheService(t *testing.T) {
	b := newBench(t)
	b.attach(t.Context())
	b.node.Cut()
	if err := <-b.end; err == nil {
		t.Error("a lost connection is no error")
	}
	if s := b.service("kubelet"); s.GetPid() == b.pid || s.GetState() != agentv1.ServiceState_SERVICE_STATE_RUNNING {
		t.Errorf("kubelet is %v, its process was %d", s, b.pid)
	}
	b.expectGone()
}

// The connection may be lost while swdt detaches: then Windows ends the service, and that is no success.
func TestALossDuringTheDetachIsAnError(t *testing.T) {
	b := newBench(t)
	b.attach(t.Context())
	b.node.OnCall(func(method string) error {
		if strings.HasSuffix(method, "/Connect") {
			b.node.OnCall(nil)
			b.node.Cut()
			b.node.Settle()
		}
		return nil
	})
	close(b.stop)
	if err := <-b.end; !errors.As(err, new(*node.LostError)) {
		t.Errorf("the error is %v, want that of the lost connection", err)
	}
	if s := b.service("kubelet"); s.GetPid() == b.pid || s.GetState() != agentv1.ServiceState_SERVICE_STATE_RUNNING {
		t.Errorf("kubelet is %v, its process was %d", s, b.pid)
	}
	b.expectGone()
}

// A service that an administrator or a push has stopped meanwhile stays stopped.
func TestAServiceThatWasStoppedStaysStopped(t *testing.T) {
	b := newBench(t)
	b.attach(t.Context())
	if _, err := b.node.Services.Stop(t.Context(), &agentv1.StopServiceRequest{Name: "kubelet"}); err != nil {
		t.Fatal(err)
	}
	close(b.stop)
	if err := <-b.end; err != nil {
		t.Error(err)
	}
	if s := b.service("kubelet"); s.GetState() != agentv1.ServiceState_SERVICE_STATE_STOPPED {
		t.Errorf("kubelet is %v, want it stopped", s)
	}
}

// The agent of a lost session notices the loss up to 40 s later, and dlv and the service run until then.
func TestTheServiceMayEndLate(t *testing.T) {
	for name, test := range map[string]struct {
		after time.Duration // 0: never
		want  string
	}{
		"after 40 s": {40 * time.Second, ""},
		"never": {0, "service kubelet still runs as process %d, to which dlv may be attached; see `swdt ps`, and " +
			"end both with `swdt restart kubelet`"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t)
				s := &session{Options: Options{Service: "kubelet"}, node: b.node.Node, reporter: b.story, own: b.pid, killed: true,
					program: layout.Dlv(strings.Repeat("0", 64))}
				if test.after > 0 {
					time.AfterFunc(test.after, func() {
						if _, err := b.node.Services.Stop(t.Context(), &agentv1.StopServiceRequest{Name: "kubelet"}); err != nil {
							t.Error(err)
						}
					})
				}
				err := s.leave(t.Context())
				if test.want == "" {
					if now := b.service("kubelet"); err != nil || now.GetPid() == b.pid || now.GetPid() == 0 {
						t.Errorf("kubelet is %v, %v; want another process than %d", now, err, b.pid)
					}
				} else if want := fmt.Sprintf(test.want, b.pid); err == nil || err.Error() != want {
					t.Errorf("the error is %v, want %s", err, want)
				}
			})
		})
	}
}

// An unfinished push may have stopped the service.
func TestAServiceInAPushIsNotStarted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.node.Put(layout.Journals+`\20260102-030405-0123abcd.jsonl`, nil)
		if _, err := b.node.Services.Stop(t.Context(), &agentv1.StopServiceRequest{Name: "kubelet"}); err != nil {
			t.Fatal(err)
		}
		s := &session{Options: Options{Service: "kubelet"}, node: b.node.Node, reporter: b.story, own: b.pid, killed: true,
			program: layout.Dlv(strings.Repeat("0", 64))}
		if err := s.leave(t.Context()); err != nil {
			t.Error(err)
		}
		if now := b.service("kubelet"); now.GetPid() != 0 {
			t.Errorf("kubelet is %v, want it stopped", now)
		}
	})
}

// A Ctrl-C while dlv attaches detaches it as soon as it has attached: to end it before would end the service.
func TestCtrlCWhileDlvAttaches(t *testing.T) {
	b := newBench(t)
	close(b.stop)
	b.run(t.Context(), "kubelet", simulated.Binary(simulated.BinarySpec{Name: "dlv", Version: "1.27.2"}))
	if err := <-b.end; err != nil {
		t.Error(err)
	}
	if len(b.attached) != 0 {
		t.Error("swdt reports that clients can connect")
	}
	if s := b.service("kubelet"); s.GetPid() != b.pid {
		t.Errorf("kubelet is %v, want process %d", s, b.pid)
	}
	b.expectGone()
}

func TestWhatCannotBeAttached(t *testing.T) {
	notDlv := simulated.Binary(simulated.BinarySpec{Name: "hostname"})
	for name, test := range map[string]struct {
		service string
		want    string
	}{
		"no such service": {"kublet", "there is no service kublet on the node: `swdt services` lists them"},
		"not dlv":         {"kubelet", "dlv did not attach, and ended with exit code 0: ; if kubelet does not answer, `swdt restart kubelet`"},
		"it does not run": {"docker", "service docker does not run: `swdt restart docker` starts it"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			b.node.Machine.AddService(platform.ServiceConfig{Name: "docker", CommandLine: `C:\d.exe`, StartType: platform.StartManual})
			b.run(t.Context(), test.service, notDlv)
			if err := <-b.end; err == nil || err.Error() != test.want {
				t.Errorf("the error is %v, want %s", err, test.want)
			}
			b.expectGone()
		})
	}
}
