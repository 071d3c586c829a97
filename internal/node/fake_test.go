package node_test

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	server "github.com/gliderlabs/ssh"
	"github.com/pkg/sftp"
	"golang.org/x/text/encoding/unicode"
	"google.golang.org/grpc"

	agentv1 "github.com/swdt-dev/swdt/api/agent/v1"
	"github.com/swdt-dev/swdt/api/v1alpha1"
	"github.com/swdt-dev/swdt/internal/config"
	"github.com/swdt-dev/swdt/internal/node"
	"github.com/swdt-dev/swdt/internal/node/agentbin"
	"github.com/swdt-dev/swdt/internal/node/ssh/sshtest"
	"github.com/swdt-dev/swdt/internal/wire/handshake"
	"github.com/swdt-dev/swdt/internal/wire/layout"
)

// fakeNode is the part of a Windows node that connecting to it needs: an SSH server with drive C:,
// on which a file at the agent's path runs as an agent.
type fakeNode struct {
	compute *fakeCompute // nil: the node has no such service
	t       *testing.T
	ssh     *sshtest.Server
	disk    *disk
	files   *sftp.Client // the test's own access to the disk
	doc     config.Document
	opts    node.Options
	agent   agentbin.Agent
	faults  faults

	installing sync.Mutex // the installed agent is replaced as a whole

	mu       sync.Mutex
	commands []string // run on the node, the agent's path as "agent"
	bootID   string
	removed  []string
	guardian string // command line of the registered guardian
	capture  string // command line of the registered owner of a capture
	agentEnd func() // kills the running agent
}

// faults are the faults of a fake node.
type faults struct {
	shell       func(server.Session) // answers everything instead
	profile     string               // of the account; "": the constant profile
	startsIn    string               // the folder of the default shell; "": the account's profile
	noSFTP      bool
	maxSessions int  // of a connection; 0: no limit
	unix        bool // has no drive C:
	blocked     bool // the agent does not start
	mute        bool // the agent prints nothing
	noAdmin     bool // the agent may not install itself
	otherAgent  bool // the agent reports another hash
	disk        diskFaults
	lastWords   string
	hangs       func() // called when a mute agent starts, and when a call waits for a lock
}

// profile is the profile of the account that logs in.
const profile = `C:\Users\Administrator`

const agentContent = "MZ this is the agent"

func newFakeNode(t *testing.T, f faults) *fakeNode {
	t.Helper()
	f.profile = cmp.Or(f.profile, profile)
	f.startsIn = cmp.Or(f.startsIn, f.profile)
	n := &fakeNode{t: t, faults: f, bootID: "boot-1",
		agent: agentbin.FromBytes([]byte(strings.Repeat(agentContent, 5000)))}
	n.disk = newDisk(f.disk)
	n.files = n.disk.client(t)
	if !f.unix {
		n.mkdir("/C:", "/C:/ProgramData", "/C:/Users", slashed(f.profile))
	}
	o := sshtest.Options{Password: "right", Run: n.run, MaxSessions: f.maxSessions, SFTPFolder: slashed(f.startsIn)}
	if !f.noSFTP {
		handlers := n.disk.handlers()
		o.SFTP = &handlers
	}
	n.ssh = sshtest.Start(t, o)
	n.doc.Node.Metadata.Name = "win1"
	n.doc.Node.Spec.Credentials = v1alpha1.Credentials{Hostname: n.ssh.Address, Password: "right"}
	n.opts = node.Options{
		Agent:      n.agent,
		HomeDir:    t.TempDir(),
		KnownHosts: sshtest.Trust(t, n.ssh),
		StateFile:  filepath.Join(t.TempDir(), "machines.json"),
		LookupEnv:  func(string) (string, bool) { return "", false },
	}
	return n
}

func (n *fakeNode) mkdir(names ...string) {
	n.t.Helper()
	for _, name := range names {
		if err := n.files.Mkdir(name); err != nil {
			n.t.Fatal(err)
		}
	}
}

// connect connects to the node; the connection is closed at the end of the test.
func (n *fakeNode) connect() *node.Node {
	n.t.Helper()
	c, err := node.Connect(n.t.Context(), n.doc, n.opts)
	if err != nil {
		n.t.Fatal(err)
	}
	n.t.Cleanup(func() { c.Close() })
	return c
}

func (n *fakeNode) ran() []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Clone(n.commands)
}

func slashed(windows string) string { return "/" + strings.ReplaceAll(windows, `\`, "/") }

// askProfile is the command that prints the profile in UTF-16.
const askProfile = "cmd /u /c set USERPROFILE"

// run runs a command as the node's shell would.
func (n *fakeNode) run(s server.Session) {
	command := s.RawCommand()
	path := layout.Agent(n.agent.Hash)
	n.mu.Lock()
	uploaded, installs := strings.CutSuffix(command, " "+handshake.InstallArgument)
	switch {
	case installs:
		n.commands = append(n.commands, "install")
	case command == askProfile:
	default:
		n.commands = append(n.commands, strings.ReplaceAll(command, path, "agent"))
	}
	n.mu.Unlock()
	switch {
	case n.faults.shell != nil:
		n.faults.shell(s)
	case command == askProfile:
		answerProfile(n.t, s, n.faults.profile)
	case installs && strings.HasPrefix(uploaded, n.faults.profile+`\`) && !strings.ContainsFunc(uploaded, interpreted):
		n.installAgent(s, slashed(uploaded))
	case installs && strings.HasPrefix(uploaded, `.\`):
		n.installAgent(s, slashed(n.faults.startsIn+uploaded[1:]))
	case command == "cmd /c ver":
		fmt.Fprintln(s, "Microsoft Windows [Version 10.0.20348.2849]")
	case command == path:
		n.runAgent(s, path)
	default:
		n.t.Errorf("unexpected command %q", command)
		s.Exit(1)
	}
}

// interpreted reports whether a shell may do something else with the character than take it as it is.
func interpreted(r rune) bool {
	plain := r >= '0' && r <= '9' || r >= 'A' && r <= 'Z' || r >= 'a' && r <= 'z'
	return !plain && !strings.ContainsRune(`:\._-`, r)
}

// answerProfile answers askProfile.
func answerProfile(t *testing.T, s server.Session, profile string) {
	text, err := unicode.UTF16(unicode.LittleEndian, unicode.IgnoreBOM).NewEncoder().
		String("USERPROFILE=" + profile + "\r\n")
	if err != nil {
		t.Error(err)
	}
	fmt.Fprint(s, "Welcome to win1!\r\n", text) // some login shells greet, in the console's code page
}

// installAgent does the work of the uploaded agent, which installs itself.
func (n *fakeNode) installAgent(s server.Session, uploaded string) {
	content, err := n.read(uploaded)
	if err != nil || n.faults.blocked {
		fmt.Fprintln(s.Stderr(), "This program is blocked by group policy.")
		s.Exit(5)
		return
	}
	path := layout.Agent(n.agent.Hash)
	result := handshake.Installed{Path: path}
	root, err := n.files.Lstat(slashed(layout.Root))
	switch {
	case n.faults.noAdmin:
		result.Failure, result.Message = handshake.NotAllowed, "make "+layout.Root+": access is denied"
	case err == nil && !root.IsDir():
		result.Failure, result.Message = handshake.Foreign, "refuse to use "+layout.Root
	default:
		n.installing.Lock()
		if there, err := n.read(slashed(path)); err != nil || there != content {
			n.write(slashed(path), content)
		}
		n.installing.Unlock()
	}
	fmt.Fprintln(s, "Welcome to win1!")     // some login shells greet
	_ = handshake.PrintInstalled(s, result) // the client may have gone
}

func (n *fakeNode) runAgent(s server.Session, path string) {
	content, err := n.read(slashed(path))
	switch {
	case err != nil:
		fmt.Fprintln(s.Stderr(), "The system cannot find the path specified.")
		s.Exit(1)
		return
	case n.faults.blocked || !strings.HasPrefix(content, "MZ"):
		fmt.Fprintln(s.Stderr(), "This program is blocked by group policy.")
		s.Exit(5)
		return
	case n.isMute():
		n.hang()
		<-s.Context().Done()
		return
	}
	sum := sha256.Sum256([]byte(content))
	hash := hex.EncodeToString(sum[:])
	if n.faults.otherAgent {
		hash = strings.Repeat("ab", 32)
	}
	fmt.Fprintln(s, "Welcome to win1!") // some login shells greet
	if err := handshake.Serve(s, hash); err != nil {
		s.Exit(1)
		return
	}
	n.serve(s)
}

// serve serves the agent's calls until stdin ends.
func (n *fakeNode) serve(s server.Session) {
	conn := &sessionConn{Session: s, closed: make(chan struct{})}
	srv := grpc.NewServer()
	agentv1.RegisterMachineServer(srv, fakeMachine{n: n})
	agentv1.RegisterFilesServer(srv, fakeFiles{n: n})
	agentv1.RegisterServicesServer(srv, fakeServices{n: n})
	if n.compute != nil {
		agentv1.RegisterComputeServer(srv, n.compute)
	}
	n.mu.Lock()
	n.agentEnd = func() {
		io.WriteString(s.Stderr(), n.faults.lastWords)
		s.Exit(9)
		conn.Close()
	}
	n.mu.Unlock()
	srv.Serve(&oneListener{conn: conn})
	srv.Stop()
	s.Exit(0)
}

// hang reports that the client waits for something that never happens.
func (n *fakeNode) hang() {
	if n.faults.hangs != nil {
		n.faults.hangs()
	}
}

func (n *fakeNode) killAgent() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.agentEnd()
}

func (n *fakeNode) setMute(mute bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.faults.mute = mute
}

func (n *fakeNode) isMute() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.faults.mute
}

func (n *fakeNode) setBootID(id string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.bootID = id
}

func (n *fakeNode) read(name string) (string, error) {
	f, err := n.files.Open(name)
	if err != nil {
		return "", err
	}
	defer f.Close()
	data, err := io.ReadAll(f)
	return string(data), err
}

func (n *fakeNode) write(name, content string) {
	n.t.Helper()
	if err := n.files.MkdirAll(path.Dir(name)); err != nil {
		n.t.Fatal(err)
	}
	f, err := n.files.Create(name)
	if err == nil {
		_, err = f.Write([]byte(content))
		f.Close()
	}
	if err != nil {
		n.t.Fatal(err)
	}
}

type sessionConn struct {
	server.Session
	once   sync.Once
	closed chan struct{}
}

func (c *sessionConn) Close() error {
	c.once.Do(func() { close(c.closed) })
	return c.Session.Close()
}

func (c *sessionConn) LocalAddr() net.Addr { return &net.UnixAddr{} }

func (c *sessionConn) SetDeadline(time.Time) error { return nil }

func (c *sessionConn) SetReadDeadline(time.Time) error { return nil }

func (c *sessionConn) SetWriteDeadline(time.Time) error { return nil }

// oneListener accepts its connection once and ends with it.
type oneListener struct {
	conn  *sessionConn
	given bool
}

func (l *oneListener) Accept() (net.Conn, error) {
	if l.given {
		<-l.conn.closed
		return nil, io.EOF
	}
	l.given = true
	return l.conn, nil
}

func (l *oneListener) Close() error { return nil }

func (l *oneListener) Addr() net.Addr { return &net.UnixAddr{} }
