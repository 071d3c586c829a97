package cli_test

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/swdt-dev/swdt/internal/cli"
	"github.com/swdt-dev/swdt/internal/platform"
	"github.com/swdt-dev/swdt/internal/platform/simulated"
	"github.com/swdt-dev/swdt/internal/sandbox"
	"github.com/swdt-dev/swdt/internal/ui"
)

// workplace has a simulated node and a node file for it.
type workplace struct {
	t       *testing.T
	machine *simulated.Machine
	folder  string
}

func newWorkplace(t *testing.T) *workplace {
	t.Helper()
	w := &workplace{t: t, folder: t.TempDir()}
	var text string
	w.machine, text, _ = simulatedNode(t, "win", w.folder)
	w.write("swdt.yaml", []byte(text))
	return w
}

// simulatedNode serves a simulated machine. It returns the machine, its document of a
// node file, with two binaries in that file's folder, and a function that ends its SSH
// server.
func simulatedNode(t *testing.T, name, folder string) (machine *simulated.Machine, document string, unplug func()) {
	t.Helper()
	return simulatedNodeWith(t, name, folder, sandbox.AgentMain)
}

// simulatedNodeWith is simulatedNode with another agent.
func simulatedNodeWith(t *testing.T, name, folder string,
	main func(hash string) simulated.AgentMain, options ...func(*simulated.Options)) (machine *simulated.Machine, document string, unplug func()) {
	t.Helper()
	embedded, err := agent()
	if err != nil {
		t.Fatal(err)
	}
	of := simulated.Options{Agent: &simulated.Agent{Hash: embedded.Hash, Main: main(embedded.Hash)}}
	for _, change := range options {
		change(&of)
	}
	machine = simulated.New(of)
	t.Cleanup(machine.Close)
	hostKey, _, err := sandbox.NewKey("host")
	if err != nil {
		t.Fatal(err)
	}
	clientKey, private, err := sandbox.NewKey("client")
	if err != nil {
		t.Fatal(err)
	}
	key := filepath.Join(folder, name+".key")
	if err := os.WriteFile(key, private, 0o600); err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() {
		served <- sandbox.Serve(ctx, listener, sandbox.ServerOptions{
			Machine: machine, HostKey: hostKey, AuthorizedKeys: []ssh.PublicKey{clientKey.PublicKey()},
		})
	}()
	unplug = sync.OnceFunc(func() { cancel(); <-served })
	t.Cleanup(unplug)
	return machine, sandbox.NodeFile(name, listener.Addr().String(), key, hostKey.PublicKey()) + `
  kubernetes:
    provisioners:
      - name: containerd
        sourceURL: ./containerd.exe
        destination: 'C:\Program Files\containerd\bin\containerd.exe'
        health: {settle: 5ms}
      - {name: kubelet, sourceURL: ./kubelet.exe, destination: 'C:\k\kubelet.exe', health: {settle: 5ms}}
`, unplug
}

func (w *workplace) write(name string, content []byte) {
	w.t.Helper()
	if err := os.WriteFile(filepath.Join(w.folder, name), content, 0o600); err != nil {
		w.t.Fatal(err)
	}
}

func (w *workplace) build(version string) {
	w.write("kubelet.exe", simulated.Binary(simulated.BinarySpec{Name: "kubelet", Version: version}))
	w.write("containerd.exe", simulated.Binary(simulated.BinarySpec{Name: "containerd", Version: version}))
}

func (w *workplace) swdt(ctx context.Context, stderr *lines, args ...string) (code int, stdout string) {
	w.t.Helper()
	w.t.Setenv("XDG_CACHE_HOME", filepath.Join(w.folder, "cache"))
	var out bytes.Buffer
	args = append(args, "-c", filepath.Join(w.folder, "swdt.yaml"))
	code = cli.Run(ctx, ui.Streams{Out: &out, Err: stderr}, args,
		cli.Environment{Agent: agent, Drivers: drivers, Getenv: func(string) string { return "" }})
	return code, out.String()
}

// lines counts the written lines and calls reached at line number at.
type lines struct {
	mutex   sync.Mutex
	text    bytes.Buffer
	seen    int
	at      int
	reached func()
}

func (l *lines) Write(p []byte) (int, error) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	for range bytes.Count(p, []byte("\n")) {
		l.seen++
		if l.seen == l.at {
			l.reached()
		}
	}
	return l.text.Write(p)
}

func (l *lines) String() string {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	return l.text.String()
}

// Ctrl-C at every moment of a push, where a moment is a line of its progress: the
// command ends, and the next push succeeds and removes all remains of the first one.
func TestCtrlCAtAnyMomentOfAPush(t *testing.T) {
	w := newWorkplace(t)
	var whole *lines
	for _, version := range []string{"1.0.0", "2.0.0"} { // the first installs the agent too
		w.build(version)
		whole = &lines{}
		if code, _ := w.swdt(t.Context(), whole, "push"); code != 0 {
			t.Fatalf("exit code %d: %s", code, whole)
		}
	}
	if whole.seen < 10 {
		t.Fatalf("a push has only %d moments: %s", whole.seen, whole)
	}
	for moment := 1; moment <= whole.seen; moment++ {
		w.build(fmt.Sprintf("2.%d.0", moment))
		ctx, cancel := context.WithCancelCause(t.Context())
		story := &lines{at: moment, reached: func() { cancel(&cli.InterruptedError{Signal: "test"}) }}
		code, _ := w.swdt(ctx, story, "push")
		if code != 130 {
			t.Errorf("moment %d: exit code %d: %s", moment, code, story)
		}
		w.consistent(fmt.Sprintf("interrupted at line %d", moment))
		again := &lines{}
		if code, _ := w.swdt(t.Context(), again, "push"); code != 0 {
			t.Errorf("moment %d: the next push: exit code %d: %s\nafter: %s", moment, code, again, story)
		}
		w.consistent(fmt.Sprintf("pushed again after line %d", moment))
	}
}

// consistent waits until the guardian, if one is at work, has ended, and then
// checks the node.
func (w *workplace) consistent(when string) {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), 30*time.Second)
	defer cancel()
	p := w.machine.Process("test")
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for {
		list, err := p.Services.List(ctx)
		if err != nil {
			w.t.Fatal(err)
		}
		guarded, stopped := false, []string{}
		for _, service := range list {
			guarded = guarded || strings.HasPrefix(service.Name, "swdt-")
			if (service.Name == "kubelet" || service.Name == "containerd") && service.State != platform.Running {
				stopped = append(stopped, service.Name)
			}
		}
		if !guarded && len(stopped) == 0 {
			break
		}
		select {
		case <-ctx.Done():
			w.t.Fatalf("%s: a guardian is at work: %v; stopped: %v", when, guarded, stopped)
		case <-tick.C:
		}
	}
	for _, folder := range []string{`C:\k`, `C:\Program Files\containerd\bin`} {
		for path := range w.machine.Snapshot(folder) {
			if strings.Contains(strings.ToLower(path), ".swdt-undo") {
				w.t.Errorf("%s: left behind: %s", when, path)
			}
		}
	}
}
