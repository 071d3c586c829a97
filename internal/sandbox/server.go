package sandbox

import (
	"cmp"
	"context"
	"crypto/subtle"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	gssh "github.com/gliderlabs/ssh"
	"github.com/pkg/sftp"
	"golang.org/x/crypto/ssh"

	"github.com/swdt-dev/swdt/internal/platform/simulated"
)

// Administrator is the only user that can log in to a sandbox.
const Administrator = "Administrator"

// serverVersion has the form of Win32-OpenSSH's version.
const serverVersion = "OpenSSH_for_Windows_9.5 swdt-sandbox"

// stopRequest is the SSH global request by which Down ends a sandbox. Only a client that has logged
// in can send it.
const stopRequest = "stop@swdt.dev"

// ServerOptions are the settings of the SSH server in front of a simulated machine.
type ServerOptions struct {
	// Machine is the machine that clients reach. To make the machine run an agent, use AgentMain.
	Machine *simulated.Machine
	// HostKey identifies the server; NewKey makes one.
	HostKey ssh.Signer
	// Administrator can log in with AuthorizedKeys and Password (if not empty).
	AuthorizedKeys []ssh.PublicKey
	Password       string
	// OwnKeys also accepts the keys in the machine's own file of authorized keys, as sshd does.
	OwnKeys bool
	// Shell is the default shell, a name of ShellNames; "": cmd.
	Shell string
	// Profile has the lines that the shell runs at each start, before the command line: PowerShell's profile, cmd's
	// AutoRun or bash's BASH_ENV.
	Profile string
	// NoSFTP leaves out the SFTP subsystem, which some nodes lack.
	NoSFTP bool
	// NoSFTPServer keeps the subsystem, and hides sftp-server.exe from the shell: OpenSSH 7.7 from a zip starts it by
	// its name alone, unless the shell is cmd (7.7's misc.c, build_session_commandline).
	NoSFTPServer bool
	// SFTPFault, if set, answers a request of SFTP with the error that it returns, if any. method is Get (open for
	// reading), Put (open for writing), Stat, List or a method of sftp.Request; path is the file's path on Windows.
	SFTPFault func(method, path string) error
	// DropsAfterLogin, if set, reports whether connections are closed now after their login, as sshd does if it cannot start a process of the account,
	// for example because a policy denies the account the logon over the network (sshd-session.c: "fork of unprivileged
	// child failed"; issue #1638 of Win32-OpenSSH).
	DropsAfterLogin func() bool
	// RejectsKeys, if set, reports whether keys are rejected now, as a member of a domain does until a domain controller
	// answers (win32_groupaccess.c, ga_init).
	RejectsKeys func() bool
	// MaxStartups bounds the connections that have not logged in; 0: 100, at which sshd's default 10:30:100 drops all
	// (sshd.c, should_drop_connection). A connection beyond it is closed without a word.
	MaxStartups int
	// Forward lets clients connect to other machines through this one, as sshd does by default.
	Forward bool
	Log     *slog.Logger // nil: nothing is logged
}

// Serve answers SSH on the listener, as a Windows node does, until ctx ends. It then cuts every
// connection. While the machine is down (a reboot), Serve cuts connections and refuses new ones.
func Serve(ctx context.Context, listener net.Listener, o ServerOptions) error {
	shell, err := parseShell(o.Shell, o.Profile)
	if err != nil {
		return err
	}
	shell.noSFTPServer, shell.sftpFault = o.NoSFTPServer, o.SFTPFault
	s := &server{
		machine:        &simulatedMachine{machine: o.Machine, shell: shell},
		hostKey:        o.HostKey,
		authorizedKeys: o.AuthorizedKeys,
		password:       o.Password,
		noSFTP:         o.NoSFTP,
		drops:          o.DropsAfterLogin,
		rejectsKeys:    o.RejectsKeys,
		maxStartups:    cmp.Or(o.MaxStartups, 100),
		forward:        o.Forward,
		log:            o.Log,
	}
	if o.OwnKeys {
		s.ownKeys = func() []ssh.PublicKey { return authorizedBy(o.Machine) }
	}
	return s.serve(ctx, listener)
}

// machine is the Windows machine behind the SSH server.
type machine interface {
	// up returns a context that ends when the machine goes down, or false while
	// it is down.
	up() (context.Context, bool)
	// session begins the session of one SSH channel. When the session ends, all processes that were
	// started through it end.
	session() (session, error)
}

// session is one channel's view of a machine.
type session interface {
	// run runs a command line as sshd passes it to the default shell, and returns
	// its exit code. If the line is empty, run runs the shell itself.
	run(ctx context.Context, c command) int
	disk() disk
	close()
}

// command is a command line with its streams.
type command struct {
	line           string
	terminal       bool
	stdin          io.Reader
	stdout, stderr io.Writer
}

// server is an SSH server in front of a machine. The files in the comments are those of PowerShell/openssh-portable a915f06,
// 9.8p1.
type server struct {
	machine        machine
	hostKey        ssh.Signer
	authorizedKeys []ssh.PublicKey
	ownKeys        func() []ssh.PublicKey // the keys in the machine's own file; nil: not accepted
	password       string
	noSFTP         bool
	drops          func() bool // nil: never
	rejectsKeys    func() bool // nil: never
	maxStartups    int         // 0: unlimited
	forward        bool
	startups       atomic.Int64 // connections that have not logged in
	onStop         func()       // called for a stopRequest; nil: the request is refused
	log            *slog.Logger
}

func (s *server) serve(ctx context.Context, listener net.Listener) error {
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	front := &gssh.Server{
		Version:           serverVersion,
		Handler:           s.handle,
		ConnCallback:      s.connect,
		SubsystemHandlers: map[string]gssh.SubsystemHandler{},
		RequestHandlers: map[string]gssh.RequestHandler{
			stopRequest: s.stop,
			// Other requests, such as keepalive@openssh.com, are refused (serverloop.c, server_input_global_request).
		},
		PublicKeyHandler: func(ctx gssh.Context, key gssh.PublicKey) bool {
			return s.isAllowed(ctx.User()) && s.authorizes(key) && (s.rejectsKeys == nil || !s.rejectsKeys())
		},
		// sshd offers the method, and has no device that could ask (auth2-chall.c).
		KeyboardInteractiveHandler: func(gssh.Context, ssh.KeyboardInteractiveChallenge) bool { return false },
		ChannelHandlers:            map[string]gssh.ChannelHandler{"session": s.limitSessions()},
	}
	if s.forward {
		front.ChannelHandlers["direct-tcpip"] = gssh.DirectTCPIPHandler
		front.LocalPortForwardingCallback = func(gssh.Context, string, uint32) bool { return true }
	}
	if !s.noSFTP {
		front.SubsystemHandlers["sftp"] = s.serveSFTP
	}
	if s.password != "" {
		front.PasswordHandler = func(ctx gssh.Context, password string) bool {
			return s.isAllowed(ctx.User()) && subtle.ConstantTimeCompare([]byte(password), []byte(s.password)) == 1
		}
	}
	front.AddHostKey(s.hostKey)
	stop := context.AfterFunc(ctx, func() {
		front.Close()
		listener.Close() // front does not know it yet if the context ends before Serve
	})
	defer stop()
	if err := front.Serve(listener); err != nil && !errors.Is(err, gssh.ErrServerClosed) && ctx.Err() == nil {
		return fmt.Errorf("serve SSH on %s: %w", listener.Addr(), err)
	}
	return nil
}

// maxSessions is sshd's default of MaxSessions, for each connection (servconf.h, DEFAULT_SESSIONS_MAX).
const maxSessions = 10

// limitSessions returns the handler of session channels.
func (s *server) limitSessions() gssh.ChannelHandler {
	var mu sync.Mutex
	open := map[*ssh.ServerConn]int{}
	enter := func(conn *ssh.ServerConn, change int) bool {
		mu.Lock()
		defer mu.Unlock()
		if open[conn]+change > maxSessions {
			return false
		}
		if open[conn] += change; open[conn] == 0 {
			delete(open, conn)
		}
		return true
	}
	return func(srv *gssh.Server, conn *ssh.ServerConn, channel ssh.NewChannel, ctx gssh.Context) {
		if begun, ok := ctx.Value(startupKey{}).(*startup); ok {
			begun.end()
		}
		if s.drops != nil && s.drops() {
			conn.Close()
			return
		}
		if !enter(conn, 1) {
			_ = channel.Reject(ssh.ConnectionFailed, "open failed") // session.c, session_open; the connection may have ended
			return
		}
		defer enter(conn, -1)
		gssh.DefaultSessionHandler(srv, conn, channel, ctx)
	}
}

// connect refuses connections while the machine is down, and cuts the open ones when it goes down.
func (s *server) connect(ctx gssh.Context, conn net.Conn) net.Conn {
	up, ok := s.machine.up()
	if !ok || s.maxStartups > 0 && int(s.startups.Load()) >= s.maxStartups {
		conn.Close()
		return nil
	}
	s.startups.Add(1)
	begun := &startup{Conn: conn, end: sync.OnceFunc(func() { s.startups.Add(-1) })}
	ctx.SetValue(startupKey{}, begun)
	stop := context.AfterFunc(up, func() { conn.Close() })
	context.AfterFunc(ctx, func() { stop() })
	return begun
}

// startup is a connection that counts for MaxStartups until its first session, or its end.
type startup struct {
	net.Conn
	end func()
}

type startupKey struct{}

func (c *startup) Close() error {
	c.end()
	return c.Conn.Close()
}

func (s *server) isAllowed(user string) bool { return strings.EqualFold(user, Administrator) }

func (s *server) authorizes(key ssh.PublicKey) bool {
	all := s.authorizedKeys
	if s.ownKeys != nil {
		all = append(slices.Clone(all), s.ownKeys()...)
	}
	for _, authorized := range all {
		if gssh.KeysEqual(authorized, key) {
			return true
		}
	}
	return false
}

func (s *server) stop(gssh.Context, *gssh.Server, *ssh.Request) (bool, []byte) {
	if s.onStop == nil {
		return false, nil
	}
	s.onStop()
	return true, nil
}

// handle serves one exec or shell channel.
func (s *server) handle(channel gssh.Session) {
	_, _, terminal := channel.Pty()
	s.serveChannel(channel, command{line: channel.RawCommand(), terminal: terminal, stdin: channel, stdout: channel,
		stderr: channel.Stderr()})
}

// serveSFTP runs the SFTP server through the default shell. sshd drops the error output of a subsystem
// (session.c, session_set_fds: ignore_fderr).
func (s *server) serveSFTP(channel gssh.Session) {
	s.serveChannel(channel, command{line: sftpServer, stdin: channel, stdout: channel, stderr: io.Discard})
}

// sftpServer is the command line of the SFTP subsystem (misc.c, build_exec_command).
const sftpServer = "sftp-server.exe"

func (s *server) serveChannel(channel gssh.Session, c command) {
	session, err := s.machine.session()
	if err != nil {
		s.log.Error("begin a session", "err", err)
		channel.Exit(255)
		return
	}
	defer session.close()
	s.log.Debug("run", "line", c.line)
	code := session.run(s.lifetime(channel, c), c)
	s.log.Debug("ended", "line", c.line, "code", code)
	channel.Exit(code)
}

// lifetime returns the context of a channel's shell. Without a terminal, sshd does not end the shell when the channel or
// the connection ends: the shell gets the end of its input. The job of the shell and its children ends with the shell
// (w32-doexec.c, do_exec_windows, which duplicates the job's last handle into the shell; issue #1751).
func (s *server) lifetime(channel gssh.Session, c command) context.Context {
	if up, ok := s.machine.up(); ok && !c.terminal {
		return up
	}
	return channel.Context()
}

// serveSFTP answers SFTP as Win32-OpenSSH's sftp-server.exe does: paths are /C:/folder/file, and relative paths begin
// in the folder.
func serveSFTP(stream io.ReadWriteCloser, d disk, folder string, fault func(method, path string) error) error {
	h := &sftpHandlers{disk: d, fault: fault, written: map[string]*written{}}
	server := sftp.NewRequestServer(stream, sftp.Handlers{FileGet: h, FilePut: h, FileCmd: h, FileList: h},
		sftp.WithStartDirectory("/"+strings.ReplaceAll(folder, `\`, "/")))
	defer server.Close()
	if err := server.Serve(); err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	return nil
}
