//go:build e2e

package e2e

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/swdt-dev/swdt/internal/cli"
	"github.com/swdt-dev/swdt/internal/node/agentbin"
	"github.com/swdt-dev/swdt/internal/testing/cases"
	"github.com/swdt-dev/swdt/internal/testing/gobuild"
	"github.com/swdt-dev/swdt/internal/ui"
)

// TestKilledInEveryState kills the session's agent, the guardian, or both, or
// cuts the connection, in every state that a transaction's journal can have,
// with real processes under Wine. At last a program of the node holds a binary. The test's agent is built to stay in a state while a file
// demands it.
func TestKilledInEveryState(t *testing.T) {
	t.Parallel()
	n := newVictim(t)
	for _, s := range cases.Of(t, strikes(), 8) {
		t.Run(s.state+"/"+s.name, func(t *testing.T) { n.interrupt(t, s) })
	}
	t.Run("held", n.holdFiles)
}

// strike interrupts a push in one state of its journal.
type strike struct {
	state   string
	name    string
	victims []string // processes to kill; none: the connection is cut
	// unattended reports whether the node must heal without any contact.
	unattended bool
}

// undone reports whether the strike hits a push of a kubelet that crashes, which the guardian undoes.
func (s strike) undone() bool { return s.state == "rollingBack" }

func strikes() []strike {
	// In the state prepared, the guardian does not run yet: the test can only kill the session's
	// agent or cut the connection, and the next contact heals the node.
	all := []strike{{"prepared", "agent", []string{agentProcess}, false}, {"prepared", "connection cut", nil, false}}
	for _, state := range []string{"stopping", "swapping", "swapped", "starting", "checking", "committing", "rollingBack"} {
		all = append(all,
			strike{state, "agent", []string{agentProcess}, true},
			strike{state, "guardian", []string{guardianProcess}, false},
			strike{state, "both", []string{agentProcess, guardianProcess}, false})
		if state != "rollingBack" {
			all = append(all, strike{state, "connection cut", nil, true})
		}
	}
	return all
}

// victim is a node with two services, whose binaries the test exchanges between two versions.
type victim struct {
	info    sandboxInfo
	agent   agentbin.Agent
	proxy   *proxy
	configs [2]string // node files of the two sets of versions
	hashes  [2][2]string
	current int    // which set is on the node
	broken  string // node file of a kubelet that crashes at its start
}

func newVictim(t *testing.T) *victim {
	t.Helper()
	n := &victim{info: wineSandbox(t), agent: heldAgent(t)}
	n.proxy = newProxy(t, n.info.Hostname, 0)
	credentials := strings.Replace(credentialsOf(t, n.info), n.info.Hostname, n.proxy.address(), 1)
	sets := [2][2]string{
		{lab(t, "containerd-v1.7.11.exe"), lab(t, "kubelet-v1.28.0.exe")},
		{lab(t, "containerd-v1.7.12.exe"), lab(t, "kubelet-v1.29.0.exe")},
	}
	// The program of the service containerd serves no CRI, so its health check is turned off.
	const quick = "        health: {none: true, settle: 100ms}\n"
	for i, set := range sets {
		n.configs[i] = nodeFile(t, credentials,
			provisioner("containerd", "", set[0], containerdExe, quick)+
				provisioner("kubelet", "", set[1], kubeletExe, "        health: {settle: 100ms}\n"))
		n.hashes[i] = [2]string{hashFile(t, set[0]), hashFile(t, set[1])}
	}
	n.broken = nodeFile(t, credentials, provisioner("kubelet", "", lab(t, "kubelet-v1.29.1-crash-at-start.exe"),
		kubeletExe, "        health: {settle: 100ms}\n"))
	first := n.configs[0]
	ok(t, "push", "-c", first)
	createService(t, first, "containerd", containerdExe)
	createService(t, first, "kubelet", kubeletExe, "depend=", "containerd")
	for _, name := range []string{"containerd", "kubelet"} {
		ok(t, "exec", "-c", first, "--", "net", "start", name)
	}
	return n
}

func createService(t testing.TB, config, name, exe string, more ...string) {
	t.Helper()
	args := []string{"exec", "-c", config, "--", "sc", "create", name, "binpath=", exe, "start=", "auto"}
	ok(t, append(args, more...)...)
}

// heldAgent builds an agent that stays in the state of a transaction that a file names.
func heldAgent(t *testing.T) agentbin.Agent {
	t.Helper()
	executable, err := os.ReadFile(gobuild.Build(t, gobuild.Program{Package: "../cmd/swdt-agent", Windows: true,
		Flags: []string{"-tags", "grpcnotrace,swdtpause", "-trimpath", "-ldflags", "-s -w"}}))
	if err != nil {
		t.Fatal(err)
	}
	return agentbin.FromBytes(executable)
}

// interrupt pushes the other set of versions, and interrupts the push when the journal
// has the state.
func (n *victim) interrupt(t *testing.T, s strike) {
	wanted, config := 1-n.current, n.configs[1-n.current]
	if s.undone() {
		wanted, config = n.current, n.broken
	}
	release := n.hold(t, s.state)
	struck := n.begin(config)
	defer struck.cancel()
	id, ok := n.awaitStruck(t, struck, s.state)
	if !ok {
		struck.cancel()
		t.Fatalf("no transaction came to the state %s: %s", s.state, <-struck.ended)
	}
	if s.victims == nil {
		n.proxy.cut()
	}
	for _, name := range s.victims {
		n.kill(t, name)
	}
	release()
	if s.unattended {
		struck.cancel() // end the swdt process that pushes: the node must heal without it
	}
	t.Logf("the push that was struck: %s", <-struck.ended)
	if s.unattended {
		if _, ok := n.awaitState(id, "done"); !ok {
			t.Fatal("the node did not bring the transaction to its end by itself")
		}
		n.checkFiles(t, "without any contact")
	}
	// The next contact is a push, since status and a dry run would change nothing.
	again := n.push(context.Background(), n.configs[wanted])
	t.Logf("the next contact: %s", again)
	if again.code != 0 {
		t.Errorf("the next push ended with %d", again.code)
	}
	n.current = wanted
	n.checkFiles(t, "after the next contact")
	n.checkServices(t)
	n.checkLeftovers(t)
}

// hold makes the agents of the node stay in a state of a transaction until release is called.
func (n *victim) hold(t *testing.T, state string) (release func()) {
	t.Helper()
	file := n.path(`C:\swdt-hold.txt`)
	if err := os.WriteFile(file, []byte(state), 0o600); err != nil {
		t.Fatal(err)
	}
	release = sync.OnceFunc(func() {
		if err := os.Remove(file); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(release)
	return release
}

// awaitStruck waits until the transaction that a push begins is in the state, and returns the path of
// its journal. If the push ends before that, the test fails. After commandLimit, awaitStruck logs the
// processes of the node and returns false.
func (n *victim) awaitStruck(t *testing.T, p push, state string) (journal string, ok bool) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	deadline := time.After(commandLimit)
	for {
		if journal, ok := n.inState("", state); ok {
			return journal, true
		}
		select {
		case <-tick.C:
		case ended := <-p.ended:
			p.ended <- ended // the next reader needs the result too
			if journal, ok := n.inState("", state); ok {
				return journal, true
			}
			t.Fatalf("the push ended before it came to the state %s: %s", state, ended)
		case <-deadline:
			t.Logf("agents on the node: %v, guardians: %v, journals: %v",
				processesOf(t, n.info.Prefix, agentProcess), processesOf(t, n.info.Prefix, guardianProcess),
				n.journals())
			return "", false
		}
	}
}

// push is one running push.
type push struct {
	cancel func()
	ended  chan result
}

func (n *victim) begin(config string) push {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan result, 1)
	go func() { ended <- n.push(ctx, config) }()
	return push{cancel, ended}
}

func (n *victim) push(ctx context.Context, config string) result {
	var stdout, stderr bytes.Buffer
	code := cli.Run(ctx, ui.Streams{In: strings.NewReader(""), Out: &stdout, Err: &stderr},
		[]string{"push", "-c", config, "-o", "json"},
		cli.Environment{Agent: func() (agentbin.Agent, error) { return n.agent, nil }})
	return result{code, stdout.String(), stderr.String()}
}

func (n *victim) path(windows string) string {
	path := strings.ReplaceAll(strings.TrimPrefix(windows, `C:\`), `\`, "/")
	return filepath.Join(n.info.Prefix, "drive_c", path)
}

// awaitState waits until the journal with a path, or any journal if the path is "", has a record of
// this state. It returns the journal's path, or false after commandLimit.
func (n *victim) awaitState(journal, state string) (string, bool) {
	deadline := time.After(commandLimit)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		if path, ok := n.inState(journal, state); ok {
			return path, true
		}
		select {
		case <-tick.C:
		case <-deadline:
			return "", false
		}
	}
}

// inState reports whether the journal with a path, or any journal if the path is "", has a record of
// this state, and returns the journal's path.
func (n *victim) inState(journal, state string) (string, bool) {
	for _, path := range n.journals() {
		text, err := os.ReadFile(path)
		if err == nil && (journal == "" || journal == path) && bytes.Contains(text, []byte(`"state":"`+state+`"`)) {
			return path, true
		}
	}
	return "", false
}

func (n *victim) journals() []string {
	paths, _ := filepath.Glob(n.path(`C:\ProgramData\swdt\journal\*.jsonl`)) // the pattern is valid
	return paths
}

// kill kills the prefix's processes of a kind, as kill -9 does.
func (n *victim) kill(t *testing.T, kind string) {
	t.Helper()
	killed := 0
	for _, pid := range processesOf(t, n.info.Prefix, kind) {
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
			t.Logf("kill %s %d: %v", kind, pid, err)
			continue
		}
		killed++
	}
	if killed == 0 {
		t.Fatalf("there was no %s to kill", kind)
	}
}

func (n *victim) checkFiles(t *testing.T, when string) {
	t.Helper()
	now := [2]string{hashFile(t, n.path(containerdExe)), hashFile(t, n.path(kubeletExe))}
	if now != n.hashes[0] && now != n.hashes[1] {
		t.Errorf("%s: the binaries are neither the old nor the new ones: %v", when, now)
	}
}

func (n *victim) checkServices(t *testing.T) {
	t.Helper()
	type status struct {
		Nodes []struct {
			Components []struct {
				Name, SHA256 string
				Service      struct{ State string }
			}
			PendingJournal bool
		}
	}
	s := decoded[status](t, ok(t, "status", "-c", n.configs[n.current], "-o", "json"))
	for i, c := range s.Nodes[0].Components {
		if c.Service.State != "running" || c.SHA256 != n.hashes[n.current][i] {
			t.Errorf("%s is %s with %.12s", c.Name, c.Service.State, c.SHA256)
		}
	}
	if s.Nodes[0].PendingJournal {
		t.Error("a journal is pending")
	}
}

func (n *victim) checkLeftovers(t *testing.T) {
	t.Helper()
	for _, exe := range []string{containerdExe, kubeletExe} {
		paths, err := filepath.Glob(n.path(exe) + ".swdt-*")
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range paths {
			if !strings.HasSuffix(path, ".swdt-old") {
				t.Errorf("left behind: %s, held by %v", path, holdersOf(t, path))
			}
		}
	}
	if left := n.journals(); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
	if left := processesOf(t, n.info.Prefix, guardianProcess); len(left) > 0 {
		t.Errorf("a guardian still runs: %v", left)
	}
}

func hashFile(t *testing.T, path string) string {
	t.Helper()
	content, err := os.ReadFile(path)
	if os.IsNotExist(err) {
		return "none"
	}
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:])
}

// proxy forwards TCP connections to target, and can cut all of them, or slow them down.
type proxy struct {
	listener net.Listener
	target   string
	idle     time.Duration // a connection ends that transfers nothing for so long in a direction; 0: none does
	rate     atomic.Int64  // bytes per second that each direction of a connection carries; 0: unlimited
	mu       sync.Mutex
	open     map[net.Conn]bool
}

func newProxy(t *testing.T, target string, idle time.Duration) *proxy {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{listener: listener, target: target, idle: idle, open: map[net.Conn]bool{}}
	go p.serve()
	t.Cleanup(func() {
		listener.Close()
		p.cut()
	})
	return p
}

func (p *proxy) address() string { return p.listener.Addr().String() }

func (p *proxy) serve() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		server, err := net.Dial("tcp", p.target)
		if err != nil {
			client.Close()
			continue
		}
		p.mu.Lock()
		p.open[client], p.open[server] = true, true
		p.mu.Unlock()
		go p.pass(client, server)
		go p.pass(server, client)
	}
}

func (p *proxy) pass(from, to net.Conn) {
	buffer := make([]byte, 64<<10)
	for {
		if p.idle > 0 && from.SetReadDeadline(time.Now().Add(p.idle)) != nil {
			break
		}
		n, err := from.Read(buffer)
		if rate := p.rate.Load(); rate > 0 {
			time.Sleep(time.Duration(n) * time.Second / time.Duration(rate)) // as a slow link does
		}
		if n > 0 {
			if _, err := to.Write(buffer[:n]); err != nil {
				break
			}
		}
		if err != nil {
			break
		}
	}
	from.Close()
	to.Close()
}

// cut resets every connection.
func (p *proxy) cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for conn := range p.open {
		if tcp, ok := conn.(*net.TCPConn); ok {
			_ = tcp.SetLinger(0)
		}
		conn.Close()
	}
	clear(p.open)
}
