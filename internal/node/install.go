package node

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"time"

	"github.com/pkg/sftp"

	"github.com/swdt-dev/swdt/internal/node/ssh"
	"github.com/swdt-dev/swdt/internal/ui"
	"github.com/swdt-dev/swdt/internal/wire/handshake"
	"github.com/swdt-dev/swdt/internal/wire/layout"
)

// sftpPath returns a Windows path as Win32-OpenSSH's SFTP spells it.
func sftpPath(windows string) string { return "/" + strings.ReplaceAll(windows, `\`, "/") }

// install brings the agent to the node. silent is the failure of an earlier attempt to start the
// agent; its err is nil if no start was tried. The cause of that failure need not be a missing
// agent. known reports whether this user has restricted the agent's folder, so that its content can
// be trusted.
func (n *Node) install(ctx context.Context, client *ssh.Client, silent *silentError, known bool) error {
	files, err := n.sftp(ctx, client, silent)
	if err != nil {
		return err
	}
	defer files.Close()
	defer context.AfterFunc(ctx, func() { files.Close() })()

	i := &installation{files: files, client: client, node: n, path: layout.Agent(n.opts.Agent.Hash), known: known}
	err = i.run(ctx)
	if err != nil && ctx.Err() != nil {
		return fmt.Errorf("install the agent: %w", ctx.Err())
	}
	return err
}

// sftp opens SFTP and looks for drive C:, which identifies a Windows node.
func (n *Node) sftp(ctx context.Context, client *ssh.Client, silent *silentError) (*sftp.Client, error) {
	files, err := client.SFTP(ctx)
	var missing *ssh.NoSFTPError
	switch {
	case errors.As(err, &missing):
		if other := notWindows(ctx, client, silent); other.exitCode == noSuchCommand {
			return nil, other.err
		}
		return nil, err
	case err != nil:
		return nil, err
	}
	if _, err := files.Stat("/C:/"); errors.Is(err, fs.ErrNotExist) {
		files.Close()
		return nil, notWindows(ctx, client, silent).err
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
func notWindows(ctx context.Context, client *ssh.Client, silent *silentError) otherMachine {
	output, exitCode := silent.output, silent.exitCode
	if silent.err == nil {
		if out, err := client.Run(ctx, "cmd /c ver"); err == nil {
			output, exitCode = out.Stdout+out.Stderr, out.ExitCode
		}
	}
	return otherMachine{exitCode, &NotWindowsError{Address: client.Address(), Output: output}}
}

// installation is one attempt to install the agent on the node.
type installation struct {
	files  *sftp.Client
	client *ssh.Client
	node   *Node
	path   string // the agent's path, as Windows spells it
	known  bool   // the content of the agent's folder can be trusted
}

// run uploads the agent into the profile of the user that logs in, where no ordinary user of the
// node can write. It then runs the uploaded agent, which installs itself into its folder: only
// native calls can create that folder without a moment in which other users have access to it.
func (i *installation) run(ctx context.Context) error {
	if i.known {
		// If the agent's folder already has this agent, there are two cases: another swdt has
		// installed the agent since the failed start, or the start failed for another reason. In
		// both cases the caller starts the agent again, and that start reports any other reason.
		if there, err := i.alreadyThere(); err != nil || there {
			return err
		}
	}
	i.node.opts.Reporter.Step("installing the agent on %s", i.client.Address())
	i.removeStale()
	uploaded := uploadedPrefix + strings.ToLower(rand.Text()) + uploadedSuffix
	defer i.files.Remove(uploaded) // best effort: removeStale removes a file that is left
	if err := i.upload(uploaded, i.node.opts.Reporter); err != nil {
		return err
	}
	return i.install(ctx, uploaded)
}

// An uploaded agent's name has no character that a shell interprets.
const (
	uploadedPrefix = "swdt-agent-"
	uploadedSuffix = ".exe"
	// staleAfter is the age from which removeStale takes an uploaded agent for the remainder of a
	// lost connection.
	staleAfter = 24 * time.Hour
)

// removeStale removes uploaded agents that were left behind. It measures their age against the
// newest file of the folder and not against a clock, so that a wrong clock does not make it remove
// an agent too early.
func (i *installation) removeStale() {
	entries, err := i.files.ReadDir(".")
	if err != nil {
		return
	}
	var newest time.Time
	for _, each := range entries {
		if each.ModTime().After(newest) {
			newest = each.ModTime()
		}
	}
	for _, each := range entries {
		if isUploaded(each) && newest.Sub(each.ModTime()) > staleAfter {
			i.files.Remove(each.Name())
		}
	}
}

// isUploaded reports whether a file has the name of an uploaded agent.
func isUploaded(file fs.FileInfo) bool {
	random, ours := strings.CutPrefix(file.Name(), uploadedPrefix)
	random, exe := strings.CutSuffix(random, uploadedSuffix)
	return ours && exe && len(random) == len(rand.Text()) && file.Mode().IsRegular()
}

// install runs the uploaded agent once. The command consists of the agent's name in the current
// folder and one plain argument, so that cmd and PowerShell parse it alike, however the user's
// profile is named.
func (i *installation) install(ctx context.Context, uploaded string) error {
	const attempt = "install the agent"
	limited, cancel := context.WithTimeout(ctx, i.node.opts.AgentTimeout)
	defer cancel()
	out, err := i.client.Run(limited, `.\`+uploaded+" "+handshake.InstallArgument)
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case limited.Err() != nil:
		return &NoAnswerError{Path: uploaded, Err: limited.Err()}
	case err != nil:
		return &InstallError{Attempt: attempt, Err: err}
	}
	result, ok := handshake.FindInstalled(out.Stdout)
	if !ok {
		_, err := i.files.Lstat(uploaded)
		return &AgentBlockedError{
			Path: i.path, Vanished: errors.Is(err, fs.ErrNotExist), ExitCode: out.ExitCode,
			Output: out.Stdout + " " + out.Stderr,
		}
	}
	if result.MovedAside != "" {
		i.node.opts.Reporter.Warn("%s: other users could change %s: moved it to %s, and made a new one. "+
			"Its records of earlier joins and traces are not used, since others could have changed them",
			i.node.Name, layout.Root, result.MovedAside)
	}
	reported := errors.New(result.Message)
	switch result.Failure {
	case "":
		return nil
	case handshake.NotAllowed:
		return &NotAdministratorError{Attempt: attempt, Err: reported}
	case handshake.DiskFull:
		return &DiskFullError{Path: i.path, Size: i.node.opts.Agent.Size, Err: reported}
	case handshake.Foreign:
		return &ForeignFolderError{Err: reported}
	default:
		return &InstallError{Attempt: attempt, Err: reported}
	}
}

// alreadyThere reports whether exactly this agent is on the node.
func (i *installation) alreadyThere() (bool, error) {
	sum, err := i.hash(sftpPath(i.path))
	switch {
	case err == nil:
		return sum == i.node.opts.Agent.Hash, nil
	case errors.Is(err, fs.ErrNotExist):
		return false, nil
	case errors.Is(err, fs.ErrPermission):
		return false, &NotAdministratorError{Attempt: "read the agent on the node", Err: err}
	default:
		return false, &InstallError{Attempt: "read the agent on the node", Err: err}
	}
}

func (i *installation) hash(file string) (string, error) {
	f, err := i.files.Open(file)
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
func (i *installation) upload(name string, r ui.Reporter) error {
	if err := i.write(name, r); err != nil {
		return err
	}
	sum, err := i.hash(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return &AgentBlockedError{Path: i.path, Vanished: true, ExitCode: -1}
	case err != nil:
		return &InstallError{Attempt: "read the uploaded agent back", Err: err}
	case sum != i.node.opts.Agent.Hash:
		return &InstallError{Attempt: "read the uploaded agent back",
			Err: fmt.Errorf("it is not what was sent (SHA-256 %.12s, not %.12s); try again", sum,
				i.node.opts.Agent.Hash)}
	}
	return nil
}

func (i *installation) write(name string, r ui.Reporter) error {
	const attempt = "put the agent on the node"
	agent := i.node.opts.Agent
	from, err := agent.Open()
	if err != nil {
		return &InstallError{Attempt: attempt, Err: err}
	}
	defer from.Close()
	to, err := i.files.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL)
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
	case i.diskFull(err):
		return &DiskFullError{Path: i.path, Size: agent.Size, Err: err}
	case errors.Is(err, fs.ErrPermission):
		return &NotAdministratorError{Attempt: attempt, Err: err}
	default:
		return &InstallError{Attempt: attempt, Err: err}
	}
}

// diskFull reports whether err means that the node's disk is full. For a full disk, Windows' sshd
// returns just "failure", so diskFull also compares the free space with the agent's size.
func (i *installation) diskFull(err error) bool {
	const noSpace, quotaExceeded = 14, 15 // SFTP version 6 defines these codes; some servers use them
	var status *sftp.StatusError
	if !errors.As(err, &status) {
		return false
	}
	if status.Code == noSpace || status.Code == quotaExceeded {
		return true
	}
	disk, err := i.files.StatVFS("/C:/")
	return err == nil && disk.FreeSpace() < uint64(i.node.opts.Agent.Size)
}

// blocked returns the error for an agent that was just installed and still does not
// start.
func (n *Node) blocked(ctx context.Context, client *ssh.Client, silent *silentError) error {
	e := &AgentBlockedError{
		Path: layout.Agent(n.opts.Agent.Hash), ExitCode: silent.exitCode, Output: silent.output,
	}
	files, err := client.SFTP(ctx)
	if err != nil {
		return e
	}
	defer files.Close()
	_, err = files.Lstat(sftpPath(e.Path))
	e.Vanished = errors.Is(err, fs.ErrNotExist)
	return e
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
