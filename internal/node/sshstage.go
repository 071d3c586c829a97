package node

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"

	"github.com/pkg/sftp"

	"github.com/swdt-dev/swdt/internal/node/agentbin"
	"github.com/swdt-dev/swdt/internal/node/carrier"
	"github.com/swdt-dev/swdt/internal/node/ssh"
	"github.com/swdt-dev/swdt/internal/ui"
	"github.com/swdt-dev/swdt/internal/wire/layout"
)

// sftpPath returns a Windows path as Win32-OpenSSH's SFTP spells it.
func sftpPath(windows string) string { return "/" + strings.ReplaceAll(windows, `\`, "/") }

// sshStage is the profile of the user that logs in, where no ordinary user of the node can write.
type sshStage struct {
	files    *sftp.Client
	unhook   func() bool
	uploaded string // the name of the agent's file in the profile; "" before Put
}

func newSSHStage(ctx context.Context, client *ssh.Client, failed *carrier.FailedStart) (*sshStage, error) {
	files, err := openSFTP(ctx, client, failed)
	if err != nil {
		return nil, err
	}
	return &sshStage{files: files, unhook: context.AfterFunc(ctx, func() { files.Close() })}, nil
}

// Put implements carrier.Stage. The program consists of the agent's name in the current folder, which
// cmd and PowerShell parse alike, however the user's profile is named.
func (s *sshStage) Put(_ context.Context, agent agentbin.Agent, r ui.Reporter) (program string, err error) {
	s.removeStale()
	s.uploaded = carrier.StagedName()
	if err := s.upload(s.uploaded, agent, r); err != nil {
		return "", err
	}
	return here + s.uploaded, nil
}

// here begins the path of a program in the current folder.
const here = `.\`

// Vanished implements carrier.Stage.
func (s *sshStage) Vanished(_ context.Context, program string) bool {
	path, relative := strings.CutPrefix(program, here)
	if !relative {
		path = sftpPath(program)
	}
	_, err := s.files.Lstat(path)
	return errors.Is(err, fs.ErrNotExist)
}

// Close implements carrier.Stage.
func (s *sshStage) Close() {
	if s.uploaded != "" {
		_ = s.files.Remove(s.uploaded) // best effort: removeStale removes a file that is left
	}
	s.unhook()
	s.files.Close()
}

// openSFTP opens SFTP and looks for drive C:, which identifies a Windows node.
func openSFTP(ctx context.Context, client *ssh.Client, failed *carrier.FailedStart) (*sftp.Client, error) {
	files, err := client.SFTP(ctx)
	var missing *ssh.NoSFTPError
	switch {
	case errors.As(err, &missing):
		if other := notWindows(ctx, client, failed); other.exitCode == noSuchCommand {
			return nil, other.err
		}
		return nil, err
	case err != nil:
		return nil, err
	}
	if _, err := files.Stat("/C:/"); errors.Is(err, fs.ErrNotExist) {
		files.Close()
		return nil, notWindows(ctx, client, failed).err
	}
	return files, nil
}

// noSuchCommand is the exit code of every POSIX shell, and of no Windows shell, for a
// command that does not exist.
const noSuchCommand = 127

// otherMachine is the answer of a machine that may not be Windows.
type otherMachine struct {
	exitCode int
	err      error
}

// notWindows returns a *NotWindowsError with the output and the exit code of the agent's failed
// start. If no start was tried, notWindows runs a command that only Windows has, and returns the
// output and exit code of that command.
func notWindows(ctx context.Context, client *ssh.Client, failed *carrier.FailedStart) otherMachine {
	output, exitCode := "", 0
	if failed != nil {
		output, exitCode = failed.Output, failed.ExitCode
	} else if out, err := client.Run(ctx, "cmd /c ver"); err == nil {
		output, exitCode = out.Stdout+out.Stderr, out.ExitCode
	}
	return otherMachine{exitCode, &NotWindowsError{Address: client.Address(), Output: output}}
}

// removeStale removes uploaded agents that were left behind.
func (s *sshStage) removeStale() {
	entries, err := s.files.ReadDir(".")
	if err != nil {
		return
	}
	for _, name := range carrier.StaleStaged(entries) {
		s.files.Remove(name)
	}
}

// HasAgent implements carrier.Stage.
func (s *sshStage) HasAgent(_ context.Context, path, hash string) (bool, error) {
	sum, err := s.hash(sftpPath(path))
	switch {
	case err == nil:
		return sum == hash, nil
	case errors.Is(err, fs.ErrNotExist):
		return false, nil
	case errors.Is(err, fs.ErrPermission):
		return false, &NotAdministratorError{Attempt: "read the agent on the node", Err: err}
	default:
		return false, &InstallError{Attempt: "read the agent on the node", Err: err}
	}
}

func (s *sshStage) hash(file string) (string, error) {
	f, err := s.files.Open(file)
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := f.WriteTo(h); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// upload writes the agent into the profile and verifies the hash of the written file. Many writes
// run at once, so a failed write can leave a hole in the file.
func (s *sshStage) upload(name string, agent agentbin.Agent, r ui.Reporter) error {
	if err := s.write(name, agent, r); err != nil {
		return err
	}
	sum, err := s.hash(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return &AgentBlockedError{Path: layout.Agent(agent.Hash), Vanished: true, ExitCode: -1}
	case err != nil:
		return &InstallError{Attempt: "read the uploaded agent back", Err: err}
	case sum != agent.Hash:
		return &InstallError{Attempt: "read the uploaded agent back",
			Err: fmt.Errorf("it is not what was sent (SHA-256 %.12s, not %.12s); try again", sum,
				agent.Hash)}
	}
	return nil
}

func (s *sshStage) write(name string, agent agentbin.Agent, r ui.Reporter) error {
	const attempt = "put the agent on the node"
	from, err := agent.Open()
	if err != nil {
		return &InstallError{Attempt: attempt, Err: err}
	}
	defer from.Close()
	to, err := s.files.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL)
	if err == nil {
		progress := r.Transfer("agent", agent.Size)
		_, err = to.ReadFromWithConcurrency(&counted{from, progress}, 0)
		progress.End()
		if closeErr := to.Close(); err == nil {
			err = closeErr
		}
	}
	switch {
	case err == nil:
		return nil
	case s.diskFull(err, agent.Size):
		return &carrier.DiskFullError{Path: layout.Agent(agent.Hash), Size: agent.Size, Err: err}
	case errors.Is(err, fs.ErrPermission):
		return &NotAdministratorError{Attempt: attempt, Err: err}
	default:
		return &InstallError{Attempt: attempt, Err: err}
	}
}

// diskFull reports whether err means that the node's disk is full. For a full disk, Windows' sshd
// returns just "failure", so diskFull also compares the free space with the agent's size.
func (s *sshStage) diskFull(err error, size int64) bool {
	const noSpace, quotaExceeded = 14, 15 // SFTP version 6 defines these codes; some servers use them
	var status *sftp.StatusError
	if !errors.As(err, &status) {
		return false
	}
	if status.Code == noSpace || status.Code == quotaExceeded {
		return true
	}
	disk, err := s.files.StatVFS("/C:/")
	return err == nil && disk.FreeSpace() < uint64(size)
}

type counted struct {
	io.Reader
	progress ui.Progress
}

func (c *counted) Read(p []byte) (int, error) {
	n, err := c.Reader.Read(p)
	c.progress.Add(int64(n))
	return n, err
}
