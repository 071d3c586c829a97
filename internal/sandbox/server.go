package sandbox

import (
	"context"
	"crypto/subtle"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"slices"
	"strings"

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
	shell.noSFTPServer = o.NoSFTPServer
	s := &server{
		machine:        &simulatedMachine{machine: o.Machine, shell: shell},
		hostKey:        o.HostKey,
		authorizedKeys: o.AuthorizedKeys,
		password:       o.Password,
		noSFTP:         o.NoSFTP,
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

// server is an SSH server in front of a machine.
type server struct {
	machine        machine
	hostKey        ssh.Signer
	authorizedKeys []ssh.PublicKey
	ownKeys        func() []ssh.PublicKey // the keys in the machine's own file; nil: not accepted
	password       string
	noSFTP         bool
	forward        bool
	onStop         func() // called for a stopRequest; nil: the request is refused
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
			stopRequest:             s.stop,
			"keepalive@openssh.com": func(gssh.Context, *gssh.Server, *ssh.Request) (bool, []byte) { return true, nil },
		},
		PublicKeyHandler: func(ctx gssh.Context, key gssh.PublicKey) bool {
			return s.isAllowed(ctx.User()) && s.authorizes(key)
		},
	}
	if s.forward {
		front.ChannelHandlers = map[string]gssh.ChannelHandler{
			"session": gssh.DefaultSessionHandler, "direct-tcpip": gssh.DirectTCPIPHandler,
		}
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

// connect refuses connections while the machine is down, and cuts the open ones when it goes down.
func (s *server) connect(ctx gssh.Context, conn net.Conn) net.Conn {
	up, ok := s.machine.up()
	if !ok {
		conn.Close()
		return nil
	}
	stop := context.AfterFunc(up, func() { conn.Close() })
	context.AfterFunc(ctx, func() { stop() })
	return conn
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
	code := session.run(channel.Context(), c)
	s.log.Debug("ended", "line", c.line, "code", code)
	channel.Exit(code)
}

// serveSFTP answers SFTP as Win32-OpenSSH's sftp-server.exe does: paths are /C:/folder/file, and relative paths begin
// in the folder.
func serveSFTP(stream io.ReadWriteCloser, d disk, folder string) error {
	h := &sftpHandlers{disk: d, written: map[string]*written{}}
	server := sftp.NewRequestServer(stream, sftp.Handlers{FileGet: h, FilePut: h, FileCmd: h, FileList: h},
		sftp.WithStartDirectory("/"+strings.ReplaceAll(folder, `\`, "/")))
	defer server.Close()
	if err := server.Serve(); err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	return nil
}
