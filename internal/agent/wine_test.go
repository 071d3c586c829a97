package agent_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	agentv1 "github.com/swdt-dev/swdt/api/agent/v1"
	"github.com/swdt-dev/swdt/internal/platform/simulated"
	"github.com/swdt-dev/swdt/internal/sandbox/wine"
	"github.com/swdt-dev/swdt/internal/sandbox/wine/winetest"
	"github.com/swdt-dev/swdt/internal/testing/gobuild"
	"github.com/swdt-dev/swdt/internal/wire/fault"
	"github.com/swdt-dev/swdt/internal/wire/handshake"
	"github.com/swdt-dev/swdt/internal/wire/layout"
	"github.com/swdt-dev/swdt/internal/wire/rpcerror"
)

// installed is the real swdt-agent.exe, at the path at which swdt would install
// it.
type installed struct {
	prefix *wine.Prefix
	hash   string
}

func installUnderWine(t *testing.T) installed {
	t.Helper()
	if testing.Short() {
		t.Skip("builds and runs the agent under Wine")
	}
	prefix := winetest.Prepare(t)
	exe, err := os.ReadFile(gobuild.Build(t, gobuild.Program{
		Package: "github.com/swdt-dev/swdt/cmd/swdt-agent", Windows: true,
		Flags: []string{"-tags", "grpcnotrace", "-trimpath", "-buildvcs=false", "-ldflags", "-s -w -funcalign=8",
			"-gcflags=all=-l", "-gcflags=github.com/klauspost/compress/...="}, // as the Makefile does
	}))
	if err != nil {
		t.Fatal(err)
	}
	if size := len(exe); size > 10_000_000 {
		t.Errorf("the agent has %d bytes; it is sent to every node and must stay below 10 MB", size)
	}
	sum := sha256.Sum256(exe)
	a := installed{prefix, hex.EncodeToString(sum[:])}
	a.install(t, exe)
	return a
}

// install makes an uploaded agent install itself twice; the second time changes
// nothing.
func (a installed) install(t *testing.T, exe []byte) {
	t.Helper()
	const uploaded = `C:\Users\Administrator\swdt-agent-upload.exe`
	path, err := a.prefix.Path(uploaded)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, exe, 0o700)); err != nil {
		t.Fatal(err)
	}
	for _, kept := range []bool{false, true} {
		out, err := a.prefix.Command(t.Context(), uploaded, handshake.InstallArgument).Output()
		result, ok := handshake.FindInstalled(string(out))
		switch {
		case err != nil:
			t.Fatalf("install: %v", err)
		case !ok:
			t.Fatal("install: ok is false, want true")
		case result.Failure != "":
			t.Fatalf(`install: result.Failure is %q, want ""`, result.Failure)
		case result.Kept != kept:
			t.Fatalf("install: result.Kept is %v, want %v", result.Kept, kept)
		case result.Path != layout.Agent(a.hash):
			t.Fatalf("install: result.Path is %v, want %v", result.Path, layout.Agent(a.hash))
		}
	}
}

// agentProcess is a running agent and the client of its session.
type agentProcess struct {
	*client
	stdin  io.Closer
	exited chan struct{} // closed when the process has ended
	err    error         // how it ended; set before exited is closed
	stderr bytes.Buffer
	kill   func() error
}

func (a installed) start(t *testing.T) *agentProcess {
	t.Helper()
	return a.startBy(t)
}

// startBy starts the agent by a program, with the agent's path as its last argument.
func (a installed) startBy(t *testing.T, program ...string) *agentProcess {
	t.Helper()
	line := append(program, layout.Agent(a.hash))
	cmd := a.prefix.Command(context.Background(), line[0], line[1:]...)
	p := &agentProcess{client: &client{}, exited: make(chan struct{})}
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, stdoutEnd := io.Pipe()
	cmd.Stdout, cmd.Stderr = stdoutEnd, &p.stderr
	cmd.WaitDelay = 10 * time.Second
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		p.err = cmd.Wait()
		stdoutEnd.Close()
		close(p.exited)
	}()
	p.stdin, p.kill = stdin, cmd.Process.Kill
	near := &halves{Reader: stdout, Writer: stdin, shut: make(chan struct{}), end: func() error {
		return errors.Join(stdin.Close(), stdout.Close())
	}}
	if err := handshake.Dial(near, a.hash); err != nil {
		t.Fatalf("%v\n%s", err, p.stderr.String())
	}
	p.rpc = dial(t, near)
	p.clients()
	t.Cleanup(func() {
		p.rpc.Close()
		p.awaitExit(t)
	})
	return p
}

func (p *agentProcess) awaitExit(t *testing.T) {
	t.Helper()
	select {
	case <-p.exited:
	case <-time.After(60 * time.Second):
		p.kill()
		t.Errorf("the agent did not end with its stdin\n%s", p.stderr.String())
		<-p.exited
	}
}

func TestUnderWine(t *testing.T) {
	a := installUnderWine(t)
	t.Run("files", a.testFiles)
	t.Run("lock", a.testLock)
	t.Run("run", a.testRun)
	t.Run("network", a.testNetwork)
	t.Run("pipes", a.testPipes)
	t.Run("end", a.testEnd)
	t.Run("reboot", a.testReboot)
}

func (a installed) testFiles(t *testing.T) {
	p := a.start(t)
	facts, err := p.Facts(t.Context(), &agentv1.FactsRequest{})
	switch {
	case err != nil:
		t.Fatal(err)
	case facts.GetSimulated() != agentv1.Simulation_SIMULATION_WINE:
		t.Fatalf("facts.GetSimulated() is %v, want wine", facts.GetSimulated())
	case facts.GetBootId() == "":
		t.Fatal("facts.GetBootId() is empty")
	}
	content := random(20 << 20)
	header := &agentv1.WriteHeader{Path: `C:\k\bin\upload.bin`, Size: int64(len(content)), Sha256: sha(content),
		MakeFolder: true, Zstd: true}
	if _, err := p.write(t.Context(), header, compressed(t, content), 512<<10); err != nil {
		t.Fatal(err)
	}
	got, err := p.read(t.Context(), `C:/K/bin/UPLOAD.bin`, 1000)
	if err != nil || !bytes.Equal(got, content[1000:]) {
		t.Fatalf("read %d bytes, %v", len(got), err)
	}
	hash, err := p.files.Hash(t.Context(), &agentv1.HashRequest{Path: header.GetPath()})
	switch {
	case err != nil:
		t.Fatal(err)
	case hash.GetSha256() != sha(content):
		t.Fatalf("hash.GetSha256() is %v, want %v", hash.GetSha256(), sha(content))
	}
	if _, err := p.files.Remove(t.Context(), &agentv1.RemoveRequest{Path: `C:\k`, Recursive: true}); err != nil {
		t.Fatal(err)
	}
	_, err = p.files.Remove(t.Context(), &agentv1.RemoveRequest{Path: layout.Agent(a.hash)})
	if !is(err, fault.ErrPermission) {
		t.Errorf("removed the running agent: %v", err)
	}
	hosts := &agentv1.SetHostsRequest{Entries: []*agentv1.HostsEntry{{Name: "cp", Address: "10.0.0.1"}}}
	environment := &agentv1.SetEnvironmentRequest{AddPath: []string{`C:\swdt test`}}
	for _, want := range []bool{true, false} {
		h, err := p.settings.SetHosts(t.Context(), hosts)
		if err != nil || h.GetChanged() != want {
			t.Errorf("hosts: got %v, %v", h, err)
		}
		e, err := p.settings.SetEnvironment(t.Context(), environment)
		if err != nil || e.GetChanged() != want {
			t.Errorf("environment: got %v, %v", e, err)
		}
	}
}

func (a installed) testLock(t *testing.T) {
	first, second := a.start(t), a.start(t)
	if _, err := first.Lock(t.Context(), &agentv1.LockRequest{Holder: "ann"}); err != nil {
		t.Fatal(err)
	}
	_, err := second.Lock(t.Context(), &agentv1.LockRequest{Holder: "bob"})
	var locked *fault.LockedError
	switch {
	case !errors.As(rpcerror.FromStatus(err), &locked):
		t.Fatalf("the error is %v, a %T, want a %T", rpcerror.FromStatus(err), rpcerror.FromStatus(err), locked)
	case string(locked.Holder) != "ann":
		t.Fatalf("locked.Holder is %q, want %q", string(locked.Holder), "ann")
	}
	if err := first.kill(); err != nil { // without an orderly end
		t.Fatal(err)
	}
	<-first.exited
	if _, err := second.Lock(t.Context(), &agentv1.LockRequest{Holder: "bob"}); err != nil {
		t.Fatal(err)
	}
}

func (a installed) testRun(t *testing.T) {
	p := a.start(t)
	stdout, stderr, code, err := collect(p.run(t, t.Context(), &agentv1.RunCommand{
		Path: "cmd.exe", Args: []string{"/c", "echo out& echo err 1>&2& exit 7"},
	}))
	switch {
	case err != nil:
		t.Error(err)
	case code != 7:
		t.Errorf("code is %v, want 7", code)
	case strings.TrimSpace(string(stdout)) != "out":
		t.Errorf("stdout is %q, want %q", strings.TrimSpace(string(stdout)), "out")
	case strings.TrimSpace(string(stderr)) != "err":
		t.Errorf("stderr is %q, want %q", strings.TrimSpace(string(stderr)), "err")
	}
	if _, _, _, err := collect(p.run(t, t.Context(), &agentv1.RunCommand{Path: `C:\none.exe`})); !is(err,
		fault.ErrNotExist) {
		t.Errorf("the error is %v, want %v", err, fault.ErrNotExist)
	}
}

func (a installed) testNetwork(t *testing.T) {
	p := a.start(t)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "ok")
	}))
	defer server.Close()
	at := server.Listener.Addr().String()
	for address, want := range map[string]agentv1.ReachOutcome{
		at: agentv1.ReachOutcome_REACH_OUTCOME_REACHED, "127.0.0.1:1": agentv1.ReachOutcome_REACH_OUTCOME_REFUSED,
	} {
		reach, err := p.network.Reach(t.Context(), &agentv1.ReachRequest{Address: address})
		if err != nil || reach.GetOutcome() != want {
			t.Errorf("%s: got %v, %v", address, reach, err)
		}
	}
	got, err := p.network.HTTPGet(t.Context(), &agentv1.HTTPGetRequest{Url: server.URL})
	switch {
	case err != nil:
		t.Error(err)
	case got.GetStatus() != 200:
		t.Errorf("got.GetStatus() is %v, want 200", got.GetStatus())
	case string(got.GetBody()) != "ok":
		t.Errorf("got.GetBody() is %q, want %q", string(got.GetBody()), "ok")
	}
	listeners, err := p.network.Listeners(t.Context(), &agentv1.ListenersRequest{})
	if err != nil || !slices.ContainsFunc(listeners.GetListeners(), func(l *agentv1.Listener) bool {
		return l.GetAddress() == at
	}) {
		t.Errorf("got %v, %v", listeners, err)
	}
	if _, err := p.network.CRIVersion(t.Context(), &agentv1.CRIVersionRequest{Pipe: simulated.ContainerdPipe}); !is(err,
		fault.ErrNotExist) {
		t.Errorf("the error is %v, want %v", err, fault.ErrNotExist)
	}
}

// The sshd of Windows gives overlapped pipes to a program, and not those of CreatePipe.
func (a installed) testPipes(t *testing.T) {
	launcher := gobuild.Build(t, gobuild.Program{Package: "github.com/swdt-dev/swdt/internal/testing/sshdpipes",
		Windows: true, Flags: []string{"-trimpath", "-buildvcs=false"}})
	p := a.startBy(t, launcher)
	content := random(20 << 20)
	header := &agentv1.WriteHeader{Path: `C:\piped.bin`, Size: int64(len(content)), Sha256: sha(content)}
	if _, err := p.write(t.Context(), header, content, 512<<10); err != nil {
		t.Fatal(err)
	}
	got, err := p.read(t.Context(), header.GetPath(), 0)
	if err != nil || !bytes.Equal(got, content) {
		t.Fatalf("read %d bytes, %v", len(got), err)
	}
	stdout, _, code, err := collect(p.run(t, t.Context(), &agentv1.RunCommand{Path: "cmd.exe", Args: []string{"/c", "echo out"}}))
	if err != nil || code != 0 || strings.TrimSpace(string(stdout)) != "out" {
		t.Errorf("a program of the agent prints %q, with code %d and %v", stdout, code, err)
	}
	p.stdin.Close()
	p.awaitExit(t)
	if p.err != nil || p.stderr.Len() != 0 {
		t.Errorf("the agent ended with %v and said %q", p.err, p.stderr.String())
	}
}

// The end of stdin ends the agent and everything that it runs, even during an
// upload; the partial upload can be continued.
func (a installed) testEnd(t *testing.T) {
	p := a.start(t)
	p.run(t, context.Background(), &agentv1.RunCommand{Path: "ping.exe", Args: []string{"-n", "1000", "127.0.0.1"}})
	var pid uint32
	await(t, func() bool {
		pid = a.pidOf(t, p, "ping.exe")
		return pid != 0
	})
	content := random(1 << 20)
	w, err := p.files.Write(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	sendHeader(t, w, &agentv1.WriteHeader{Path: `C:\cut.bin`, Size: int64(len(content)), Sha256: sha(content)})
	if err := w.Send(&agentv1.WriteRequest{Data: content[:300_000]}); err != nil {
		t.Fatal(err)
	}
	path, err := a.prefix.Path(`C:\cut.bin`)
	if err != nil {
		t.Fatal(err)
	}
	await(t, func() bool {
		info, err := os.Stat(path)
		return err == nil && info.Size() == 300_000
	})
	p.stdin.Close()
	p.awaitExit(t)
	if p.err != nil || p.stderr.Len() != 0 {
		t.Errorf("the agent ended with %v and said %q", p.err, p.stderr.String())
	}
	next := a.start(t)
	if pid := a.pidOf(t, next, "ping.exe"); pid != 0 {
		t.Errorf("ping still runs as process %d", pid)
	}
	header := &agentv1.WriteHeader{Path: `C:\cut.bin`, Size: int64(len(content)), Offset: 300_000, Sha256: sha(content)}
	if _, err := next.write(t.Context(), header, content[300_000:], 100_000); err != nil {
		t.Error(err)
	}
}

func (a installed) pidOf(t *testing.T, p *agentProcess, name string) uint32 {
	t.Helper()
	list, err := p.processes.List(t.Context(), &agentv1.ListProcessesRequest{})
	if err != nil {
		t.Fatal(err)
	}
	for _, process := range list.GetProcesses() {
		if strings.EqualFold(process.GetName(), name) {
			return process.GetPid()
		}
	}
	return 0
}
