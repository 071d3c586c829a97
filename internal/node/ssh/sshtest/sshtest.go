// Package sshtest is an SSH server on loopback for tests. It accepts the configured
// logins, and passes commands and SFTP to functions of the test.
package sshtest

import (
	"bytes"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	server "github.com/gliderlabs/ssh"
	"github.com/pkg/sftp"
	"golang.org/x/crypto/ssh"
)

// Options configure the server's logins and behaviour.
type Options struct {
	HostKeys []ssh.Signer // default: one ed25519 key
	// User is the only user that may log in; empty: any.
	User string
	// Password, Interactive (keyboard-interactive) and Keys are the logins that work.
	// The server does not offer a method that is not set.
	Password    string
	Interactive string
	Keys        []ssh.PublicKey
	// BreakLogins breaks the connection of each login attempt, before the answer.
	BreakLogins bool
	// Run serves a command; nil: it prints nothing and ends with 0.
	Run func(server.Session)
	// SFTP serves files; nil: the server has no SFTP.
	SFTP *sftp.Handlers
	// SFTPFolder is the folder in which SFTP's relative paths begin; empty: /.
	SFTPFolder string
	// Forward lets clients connect to other machines through the server.
	Forward bool
	// MaxSessions bounds the sessions of one connection, like sshd's MaxSessions. 0: unlimited.
	MaxSessions int
	// WrapConn replaces each connection.
	WrapConn func(net.Conn) net.Conn
}

// Server is a running server.
type Server struct {
	Address  string
	HostKeys []ssh.Signer

	mu       sync.Mutex
	conns    map[net.Conn]struct{}
	accepted int
	logins   []string
}

// Start starts a server that ends with the test.
func Start(t testing.TB, o Options) *Server {
	t.Helper()
	if len(o.HostKeys) == 0 {
		o.HostKeys = []ssh.Signer{NewKey(t).Signer}
	}
	s := &Server{HostKeys: o.HostKeys, conns: map[net.Conn]struct{}{}}
	srv := s.configure(o)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s.Address = listener.Addr().String()
	served := make(chan struct{})
	go func() {
		srv.Serve(listener)
		close(served)
	}()
	t.Cleanup(func() {
		listener.Close()
		s.BreakConnections()
		srv.Close()
		<-served
	})
	return s
}

func (s *Server) configure(o Options) *server.Server {
	srv := &server.Server{
		ConnCallback: func(_ server.Context, conn net.Conn) net.Conn { return s.track(conn, o.WrapConn) },
		Handler:      o.Run,
	}
	if srv.Handler == nil {
		srv.Handler = func(server.Session) {}
	}
	for _, key := range o.HostKeys {
		srv.AddHostKey(key)
	}
	s.setAuth(srv, o)
	if o.SFTP != nil {
		srv.SubsystemHandlers = map[string]server.SubsystemHandler{"sftp": func(session server.Session) {
			files := sftp.NewRequestServer(session, *o.SFTP, sftp.WithStartDirectory(o.SFTPFolder))
			files.Serve()
			files.Close()
		}}
	}
	if o.Forward {
		srv.LocalPortForwardingCallback = func(server.Context, string, uint32) bool { return true }
	}
	srv.ChannelHandlers = map[string]server.ChannelHandler{
		"session": sessions(o.MaxSessions), "direct-tcpip": server.DirectTCPIPHandler,
	}
	return srv
}

// sessions returns a handler that limits how many sessions each connection has at a time. most is
// the largest number; 0: unlimited.
func sessions(most int) server.ChannelHandler {
	if most == 0 {
		return server.DefaultSessionHandler
	}
	var mu sync.Mutex
	open := map[*ssh.ServerConn]int{}
	enter := func(conn *ssh.ServerConn, change int) bool {
		mu.Lock()
		defer mu.Unlock()
		if open[conn]+change > most {
			return false
		}
		open[conn] += change
		return true
	}
	return func(srv *server.Server, conn *ssh.ServerConn, channel ssh.NewChannel, ctx server.Context) {
		if !enter(conn, 1) {
			_ = channel.Reject(ssh.ConnectionFailed, "open failed") // sshd's wording
			return
		}
		defer enter(conn, -1)
		server.DefaultSessionHandler(srv, conn, channel, ctx)
	}
}

func (s *Server) setAuth(srv *server.Server, o Options) {
	userOK := func(ctx server.Context, method string) bool {
		if o.BreakLogins {
			s.BreakConnections()
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		s.logins = append(s.logins, method+" "+ctx.User())
		return o.User == "" || o.User == ctx.User()
	}
	if o.Password != "" {
		srv.PasswordHandler = func(ctx server.Context, password string) bool {
			return userOK(ctx, "password") && password == o.Password
		}
	}
	if o.Interactive != "" {
		srv.KeyboardInteractiveHandler = func(ctx server.Context, ask ssh.KeyboardInteractiveChallenge) bool {
			answers, err := ask("", "", []string{"Password: "}, []bool{false})
			return userOK(ctx, "keyboard-interactive") && err == nil && len(answers) == 1 && answers[0] == o.Interactive
		}
	}
	if o.Keys != nil {
		srv.PublicKeyHandler = func(ctx server.Context, key server.PublicKey) bool {
			ok := userOK(ctx, "publickey")
			for _, k := range o.Keys {
				if server.KeysEqual(k, key) {
					return ok
				}
			}
			return false
		}
	}
}

func (s *Server) track(conn net.Conn, wrap func(net.Conn) net.Conn) net.Conn {
	if wrap != nil {
		conn = wrap(conn)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.accepted++
	s.conns[conn] = struct{}{}
	return conn
}

// BreakConnections breaks all connections.
func (s *Server) BreakConnections() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for conn := range s.conns {
		conn.Close()
	}
	clear(s.conns)
}

// Accepted returns the number of TCP connections so far.
func (s *Server) Accepted() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.accepted
}

// Logins returns the login attempts so far, each with method and user.
func (s *Server) Logins() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.logins...)
}

// Fingerprint returns the fingerprint of the first host key.
func (s *Server) Fingerprint() string { return ssh.FingerprintSHA256(s.HostKeys[0].PublicKey()) }

// Trust writes a known_hosts file with the keys of these servers, and returns its path.
func Trust(t testing.TB, servers ...*Server) string {
	t.Helper()
	var lines strings.Builder
	for _, s := range servers {
		for _, key := range s.HostKeys {
			host, port, _ := net.SplitHostPort(s.Address)
			lines.WriteString("[" + host + "]:" + port + " ")
			lines.Write(ssh.MarshalAuthorizedKey(key.PublicKey()))
		}
	}
	return Write(t, t.TempDir(), "known_hosts", lines.String())
}

// Write writes a file that only its owner can read.
func Write(t testing.TB, folder, name, content string) string {
	t.Helper()
	path := filepath.Join(folder, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// Key is a key pair.
type Key struct {
	Signer  ssh.Signer
	Private ed25519.PrivateKey
}

// NewKey makes an ed25519 key.
func NewKey(t testing.TB) Key {
	t.Helper()
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	signer, err := ssh.NewSignerFromSigner(private)
	if err != nil {
		t.Fatal(err)
	}
	return Key{Signer: signer, Private: private}
}

// Public returns the key's public half.
func (k Key) Public() ssh.PublicKey { return k.Signer.PublicKey() }

// PEM returns the private key in ssh-keygen's format, encrypted unless the passphrase
// is empty.
func (k Key) PEM(t testing.TB, passphrase string) string {
	t.Helper()
	var block *pem.Block
	var err error
	if passphrase == "" {
		block, err = ssh.MarshalPrivateKey(k.Private, "test")
	} else {
		block, err = ssh.MarshalPrivateKeyWithPassphrase(k.Private, "test", []byte(passphrase))
	}
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(block))
}

// ServeSilence accepts connections and never sends a byte, until the test ends. It calls each heard once a client
// has sent its first byte.
func ServeSilence(t testing.TB, heard ...func()) (address string) {
	return listen(t, func(conn net.Conn) {
		if _, err := conn.Read(make([]byte, 1)); err != nil {
			return
		}
		for _, call := range heard {
			call()
		}
		io.Copy(io.Discard, conn)
	})
}

// ServeText answers every connection with text that is not SSH.
func ServeText(t testing.TB, text string) (address string) {
	return listen(t, func(conn net.Conn) { io.Copy(conn, bytes.NewReader([]byte(text))) })
}

func listen(t testing.TB, serve func(net.Conn)) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	var conns []net.Conn
	var serving sync.WaitGroup
	accepting := make(chan struct{})
	go func() {
		defer close(accepting)
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			mu.Lock()
			conns = append(conns, conn)
			mu.Unlock()
			serving.Go(func() {
				serve(conn)
				conn.Close()
			})
		}
	}()
	t.Cleanup(func() {
		listener.Close()
		<-accepting
		mu.Lock()
		for _, conn := range conns {
			conn.Close()
		}
		mu.Unlock()
		serving.Wait()
	})
	return listener.Addr().String()
}

// Closed returns an address on which no process listens.
func Closed(t testing.TB) (address string) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	return listener.Addr().String()
}
