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
	"path"
	"regexp"
	"strings"
	"time"

	"github.com/pkg/sftp"

	"github.com/swdt-dev/swdt/internal/node/agentbin"
	"github.com/swdt-dev/swdt/internal/node/carrier"
	"github.com/swdt-dev/swdt/internal/node/ssh"
	"github.com/swdt-dev/swdt/internal/ui"
	"github.com/swdt-dev/swdt/internal/wait"
)

// sftpPath returns a Windows path as Win32-OpenSSH's SFTP spells it.
func sftpPath(windows string) string { return "/" + strings.ReplaceAll(windows, `\`, "/") }

// sshStage is the profile of the account that logs in, where no ordinary user of the node can write.
type sshStage struct {
	conn     sshConnection
	files    *sftp.Client
	unhook   func() bool
	uploaded string // the path of the agent's file in the profile; "" before Put
}

func newSSHStage(ctx context.Context, conn sshConnection, failed *carrier.FailedStart) (*sshStage, error) {
	files, err := openSFTP(ctx, conn, failed)
	if err != nil {
		return nil, err
	}
	return &sshStage{conn: conn, files: files, unhook: context.AfterFunc(ctx, func() { files.Close() })}, nil
}

// Put implements carrier.Stage.
func (s *sshStage) Put(ctx context.Context, agent agentbin.Agent, r ui.Reporter) (program string, err error) {
	profile, err := s.conn.profile(ctx)
	if err != nil {
		return "", err
	}
	start, err := s.checked(profile)
	if err != nil {
		return "", &InstallError{Attempt: "put the agent into the profile " + profile, Err: err}
	}
	s.removeStale(sftpPath(profile))
	name := carrier.StagedName()
	s.uploaded = sftpPath(profile) + "/" + name
	if err := s.upload(ctx, profile+`\`+name, agent, r); err != nil {
		return "", err
	}
	return start + name, nil
}

// plainPath matches absolute paths that every shell parses alike.
var plainPath = regexp.MustCompile(`^[A-Za-z]:(\\[A-Za-z0-9._-]+)+$`)

// here begins the path of a program in the current folder.
const here = `.\`

// checked returns the path with which the names of programs in the profile begin. Such a path is absolute, since the
// shell's own profile may start programs in another folder, in which ordinary users could exchange the agent. If a
// shell would interpret the path, for example a space in it, checked returns the current folder after it has verified
// that this is the profile.
func (s *sshStage) checked(profile string) (start string, err error) {
	info, err := s.files.Stat(sftpPath(profile))
	switch {
	case err != nil:
		return "", err
	case !info.IsDir():
		return "", errors.New("it is not a folder")
	case info.Mode().Perm()&0o002 != 0: // an access list for S-1-1-0 or S-1-5-11 (misc.c, get_others_file_permissions)
		return "", errors.New("every user of the node may write there; correct its access list")
	case plainPath.MatchString(profile):
		return profile + `\`, nil
	}
	current, err := s.files.RealPath(".")
	if err != nil {
		return "", err
	}
	if !strings.EqualFold(current, sftpPath(profile)) {
		return "", fmt.Errorf("the default shell starts in %s, and the profile's path has characters that shells interpret; "+
			"remove the change of folder from the shell's profile", current)
	}
	return here, nil
}

// Vanished implements carrier.Stage.
func (s *sshStage) Vanished(_ context.Context, program string) bool {
	path := sftpPath(program)
	if strings.HasPrefix(program, here) {
		path = s.uploaded
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
func openSFTP(ctx context.Context, conn sshConnection, failed *carrier.FailedStart) (*sftp.Client, error) {
	client := conn.Client
	limited, cancel := context.WithTimeout(ctx, conn.way.agentTimeout)
	defer cancel()
	files, err := client.SFTP(limited)
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

// removeStale removes uploaded agents that were left behind in the folder.
func (s *sshStage) removeStale(folder string) {
	entries, err := s.files.ReadDir(folder)
	if err != nil {
		return
	}
	for _, name := range carrier.StaleStaged(entries) {
		s.files.Remove(folder + "/" + name)
	}
}

// HasAgent implements carrier.Stage.
func (s *sshStage) HasAgent(ctx context.Context, path, hash string) (bool, error) {
	sum, err := s.hash(ctx, sftpPath(path))
	switch {
	case err == nil:
		return sum == hash, nil
	case errors.Is(err, fs.ErrNotExist):
		return false, nil
	case errors.Is(err, fs.ErrPermission):
		return false, &NotAdministratorError{Attempt: "read the agent on the node", Err: err}
	case isFailure(err):
		return false, &AgentBlockedError{Path: path, Held: true, ExitCode: -1}
	default:
		return false, &InstallError{Attempt: "read the agent on the node", Err: err}
	}
}

// heldLimit bounds how long a scanner of the node may hold a file that swdt reads.
const heldLimit = 15 * time.Second

// isFailure reports whether err is SFTP's code 4. Windows' sshd answers with it if an antivirus has blocked the file
// (ERROR_VIRUS_INFECTED, ERROR_VIRUS_DELETED), if another program holds the file (ERROR_SHARING_VIOLATION), and for all
// other errors without a code of their own (Win32-OpenSSH's fileio.c, errno_from_Win32Error; sftp-server.c,
// errno_to_portable).
func isFailure(err error) bool {
	status, ok := errors.AsType[*sftp.StatusError](err)
	return ok && status.FxCode() == sftp.ErrSSHFxFailure
}

// hash returns the SHA-256 of a file. If the node refuses to open the file without a clear reason, hash tries again for
// a while, since a scanner holds new files.
func (s *sshStage) hash(ctx context.Context, file string) (sum string, err error) {
	waited := wait.Condition{
		Name: file + " to be readable", Interval: 250 * time.Millisecond, Limit: min(heldLimit, s.conn.way.agentTimeout),
		Look: func(context.Context) error {
			if sum, err = s.hashOnce(file); err != nil && !isFailure(err) {
				return wait.Stop(err)
			}
			return err
		},
	}.Wait(ctx)
	if err == nil {
		err = waited
	}
	return sum, err
}

func (s *sshStage) hashOnce(file string) (string, error) {
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
// run at once, so a failed write can leave a hole in the file. path is the file's path, as Windows spells it.
func (s *sshStage) upload(ctx context.Context, path string, agent agentbin.Agent, r ui.Reporter) error {
	if err := s.write(path, agent, r); err != nil {
		return err
	}
	sum, err := s.hash(ctx, s.uploaded)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return &AgentBlockedError{Path: path, Vanished: true, ExitCode: -1}
	case isFailure(err):
		return &AgentBlockedError{Path: path, Held: true, ExitCode: -1}
	case err != nil:
		return &InstallError{Attempt: "read the uploaded agent back", Err: err}
	case sum != agent.Hash:
		return &InstallError{Attempt: "read the uploaded agent back",
			Err: fmt.Errorf("it is not what was sent (SHA-256 %.12s, not %.12s); try again", sum,
				agent.Hash)}
	}
	return nil
}

func (s *sshStage) write(path string, agent agentbin.Agent, r ui.Reporter) error {
	const attempt = "put the agent on the node"
	from, err := agent.Open()
	if err != nil {
		return &InstallError{Attempt: attempt, Err: err}
	}
	defer from.Close()
	to, err := s.files.OpenFile(s.uploaded, os.O_WRONLY|os.O_CREATE|os.O_EXCL)
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
		return &carrier.DiskFullError{Path: path, Size: agent.Size, Err: err}
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
	disk, err := s.files.StatVFS(path.Dir(s.uploaded))
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
