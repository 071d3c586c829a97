package sandbox

import (
	"context"
	"io"

	"github.com/swdt-dev/swdt/internal/sandbox/wine"
	"github.com/swdt-dev/swdt/internal/ui"
)

// RunShell is the body of the hidden command `swdt sandbox shell --prefix DIR`, which turns any SSH
// server into a Windows node: as OpenSSH's ForceCommand it runs the client's command line
// (SSH_ORIGINAL_COMMAND) in a Wine prefix and returns its exit code.
func RunShell(ctx context.Context, prefixFolder, line string, streams ui.Streams) (int, error) {
	prefix, err := wine.Open(prefixFolder)
	if err != nil {
		return 1, err
	}
	ctx, end := context.WithCancel(ctx)
	defer end()
	s := &wineSession{prefix: prefix, shell: shellCmd, ctx: ctx, end: end}
	return s.run(ctx, command{line: line, stdin: streams.In, stdout: copied{streams.Out}, stderr: copied{streams.Err}}),
		nil
}

// copied hides that a stream is a file, so that Wine's programs get a pipe instead. The program
// that boots a prefix passes its open files on to the prefix's services, and sshd ends a session
// only when no process has the session's files open any more.
type copied struct{ io.Writer }

// RunSFTP is the body of the hidden command `swdt sandbox sftp --prefix DIR`. Like RunShell, it
// turns any SSH server into a Windows node: it is an SFTP subsystem with Windows' paths.
func RunSFTP(prefixFolder string, streams ui.Streams) error {
	prefix, err := wine.Open(prefixFolder)
	if err != nil {
		return err
	}
	return serveSFTP(stdio{streams.In, streams.Out}, prefixDisk{prefix})
}

// stdio stays open when SFTP ends, because sshd may still send an exit code.
type stdio struct {
	io.Reader
	io.Writer
}

func (stdio) Close() error { return nil }
