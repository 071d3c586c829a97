package sandbox

import (
	"context"
	"io"

	"github.com/swdt-dev/swdt/internal/sandbox/wine"
	"github.com/swdt-dev/swdt/internal/ui"
)

// ShellOptions are the settings of a default shell in front of a Wine prefix.
type ShellOptions struct {
	Prefix  string // the prefix's folder
	Shell   string // a name of ShellNames; "": cmd
	Profile string // the lines that the shell runs at each start
}

// RunShell is the body of the hidden command `swdt sandbox shell --prefix DIR`, which turns any SSH
// server into a Windows node: as OpenSSH's ForceCommand it runs the client's command line
// (SSH_ORIGINAL_COMMAND) in a Wine prefix and returns its exit code. As on Windows, the command line of the SFTP
// subsystem is sftp-server.exe.
func RunShell(ctx context.Context, o ShellOptions, line string, streams ui.Streams) (int, error) {
	prefix, err := wine.Open(o.Prefix)
	if err != nil {
		return 1, err
	}
	shell, err := parseShell(o.Shell, o.Profile)
	if err != nil {
		return 1, err
	}
	ctx, end := context.WithCancel(ctx)
	defer end()
	s := &wineSession{prefix: prefix, shell: shell, ctx: ctx, end: end}
	c := command{line: line, stdin: streams.In, stdout: copied{streams.Out}, stderr: copied{streams.Err}}
	return s.run(ctx, c), nil
}

// copied hides that a stream is a file, so that Wine's programs get a pipe instead. The program
// that boots a prefix passes its open files on to the prefix's services, and sshd ends a session
// only when no process has the session's files open any more.
type copied struct{ io.Writer }

// stdio stays open when SFTP ends, because sshd may still send an exit code.
type stdio struct {
	io.Reader
	io.Writer
}

func (stdio) Close() error { return nil }
