package ssh

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/pkg/sftp"
	"golang.org/x/crypto/ssh"

	"github.com/swdt-dev/swdt/internal/format/windowstext"
	"github.com/swdt-dev/swdt/internal/wire/handshake"
)

// SFTP opens the machine's SFTP subsystem. ctx bounds the opening. The error is a *NoSFTPError if the machine starts no
// SFTP, also if the deadline of ctx has passed.
func (c *Client) SFTP(ctx context.Context) (*sftp.Client, error) {
	var client *sftp.Client
	stream := &sftpStream{}
	refused := false
	_, err := c.open(ctx, func(s *ssh.Session) error {
		in, err := s.StdinPipe()
		if err != nil {
			return err
		}
		if stream.Reader, err = s.StdoutPipe(); err != nil {
			return err
		}
		if err := s.RequestSubsystem("sftp"); err != nil {
			refused = true
			return err
		}
		// Server 2019's sshd fails on writes beyond 100 KiB. Packets of the default size
		// (32 KiB) are as fast if many are sent at once.
		client, err = sftp.NewClientPipe(stream, in, sftp.UseConcurrentWrites(true))
		if err != nil {
			_, _ = stream.Read(nil) // if the shell ended before SFTP's first packet was sent, it may have printed why
		}
		return err
	})
	dropped, _ := errors.AsType[*DroppedError](err)
	switch {
	case err == nil:
		return client, nil
	case errors.Is(ctx.Err(), context.Canceled):
		return nil, fmt.Errorf("start SFTP on %s: %w", c.address, ctx.Err())
	case ctx.Err() != nil:
		return nil, &NoSFTPError{Address: c.address, Printed: stream.printed(), Err: ctx.Err()}
	case dropped != nil:
		return nil, err
	case c.Err() != nil:
		return nil, fmt.Errorf("start SFTP on %s: %w", c.address, c.Err())
	default:
		return nil, &NoSFTPError{Address: c.address, Refused: refused, Printed: stream.printed(), Err: err}
	}
}

// sftpStream is the output of an SFTP server behind a login shell. Windows' sshd starts the server through the default
// shell, whose profile may print text before the server's first packet (Win32-OpenSSH's w32-doexec.c,
// do_exec_windows, and its issue #1674).
type sftpStream struct {
	io.Reader
	begun bool

	mu   sync.Mutex
	seen []byte // the bytes until the server's first packet
}

func (s *sftpStream) Read(p []byte) (int, error) {
	if !s.begun {
		seen, err := handshake.SkipNoise(s.Reader, s.isVersion)
		if err != nil {
			return 0, err
		}
		s.begun = true
		s.Reader = io.MultiReader(bytes.NewReader(seen[len(seen)-versionBegin:]), s.Reader)
	}
	return s.Reader.Read(p)
}

// versionBegin is the length of the beginning of the packet SSH_FXP_VERSION: 4 bytes of length, of which the first two
// are zero, the type 2, and the version 3.
const versionBegin = 4 + 1 + 4

func (s *sftpStream) isVersion(seen []byte) bool {
	s.mu.Lock()
	s.seen = seen
	s.mu.Unlock()
	if len(seen) < versionBegin {
		return false
	}
	begin := seen[len(seen)-versionBegin:]
	return begin[0] == 0 && begin[1] == 0 && bytes.Equal(begin[4:], []byte{2, 0, 0, 0, 3})
}

// printed returns the text that came instead of SFTP.
func (s *sftpStream) printed() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return windowstext.Console(s.seen)
}
