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

	"github.com/pkg/sftp"

	"github.com/swdt-dev/swdt/internal/layout"
	"github.com/swdt-dev/swdt/internal/ssh"
	"github.com/swdt-dev/swdt/internal/ui"
)

// sftpPath is a Windows path as Win32-OpenSSH's SFTP spells it.
func sftpPath(windows string) string { return "/" + strings.ReplaceAll(windows, `\`, "/") }

func parent(windows string) string { return windows[:strings.LastIndex(windows, `\`)] }

// install brings the agent to the node. silent is how its start failed, if it was
// tried, which may have another cause than that it is missing; known says that
// the folder is safe, and so what stands in it.
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

// sftp opens SFTP and looks for drive C:, by which a Windows node is known.
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

// noSuchCommand is the exit code of every POSIX shell, and of no Windows one, for
// a command that does not exist.
const noSuchCommand = 127

// otherMachine is how a machine that may not be Windows answers.
type otherMachine struct {
	exitCode int
	err      error
}

// notWindows says what the machine answered to the agent's start, or, where that
// was not tried, to a question that only Windows understands.
func notWindows(ctx context.Context, client *ssh.Client, silent *silentError) otherMachine {
	output, exitCode := silent.output, silent.exitCode
	if silent.err == nil {
		if out, err := client.Run(ctx, "cmd /c ver"); err == nil {
			output, exitCode = out.Stdout+out.Stderr, out.ExitCode
		}
	}
	return otherMachine{exitCode, &NotWindowsError{Address: client.Address(), Output: output}}
}

// installation is one attempt to put the agent in its place.
type installation struct {
	files  *sftp.Client
	client *ssh.Client
	node   *Node
	path   string // of the agent, as Windows spells it
	known  bool   // what stands there is to be trusted
}

func (i *installation) run(ctx context.Context) error {
	if i.known {
		if there, err := i.alreadyThere(); err != nil || there {
			return err // another swdt put it there since, or the next start tells what is wrong
		}
	}
	i.node.opts.Reporter.Step("installing the agent on %s", i.client.Address())
	for _, folder := range []string{layout.Root, layout.Agents, parent(i.path)} {
		if err := i.secureFolder(ctx, folder); err != nil {
			return err
		}
	}
	temporary, err := i.upload(i.node.opts.Reporter)
	if err != nil {
		return err
	}
	return i.place(ctx, temporary)
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

// secureFolder makes a folder that only administrators and SYSTEM can write to:
// what is in it will run with all rights. Everybody may create folders in
// C:\ProgramData, so a folder that stands there may be a trap: its owner is
// replaced first, then everything that its access list says.
func (i *installation) secureFolder(ctx context.Context, folder string) error {
	existed, err := i.makeFolder(folder)
	if err != nil {
		return err
	}
	if !existed && folder != layout.Root {
		return nil // new, in a folder that is safe
	}
	// No quotes and no parentheses: cmd and PowerShell disagree on them. So the
	// rights are not inheritable yet; the agent sees to that once it runs.
	commands := []string{`/setowner *S-1-5-32-544`}
	if existed {
		commands = append(commands, `/reset`)
	}
	commands = append(commands, `/inheritance:r /grant:r *S-1-5-32-544:F *S-1-5-18:F`)
	return i.icacls(ctx, folder, commands...)
}

// icacls changes the owner and access list of a file or folder.
func (i *installation) icacls(ctx context.Context, path string, commands ...string) error {
	for _, c := range commands {
		out, err := i.client.Run(ctx, "icacls "+path+" "+c)
		if err != nil {
			return &InstallError{Attempt: "restrict " + path + " to administrators", Err: err}
		}
		if out.ExitCode != 0 {
			return &NotAdministratorError{
				Attempt: fmt.Sprintf("restrict %s to administrators (icacls %s: exit code %d)", path, c, out.ExitCode),
				Output:  out.Stdout + out.Stderr,
			}
		}
	}
	return nil
}

func (i *installation) makeFolder(folder string) (existed bool, err error) {
	name := sftpPath(folder)
	info, err := i.files.Lstat(name)
	if errors.Is(err, fs.ErrNotExist) {
		if err = i.files.Mkdir(name); err == nil {
			return false, nil
		}
		info, _ = i.files.Lstat(name) // another swdt may have been faster
	}
	attempt := "make the folder " + folder
	switch {
	case info != nil && info.Mode()&fs.ModeSymlink != 0:
		return true, &LinkError{Path: folder}
	case info != nil && info.IsDir():
		return true, nil
	case info != nil:
		return true, &InstallError{Attempt: attempt, Err: errors.New("a file is in its place; remove it")}
	case errors.Is(err, fs.ErrPermission):
		return false, &NotAdministratorError{Attempt: attempt, Err: err}
	case i.diskFull(err):
		return false, &DiskFullError{Path: folder, Size: i.node.opts.Agent.Size, Err: err}
	default:
		return false, &InstallError{Attempt: attempt, Err: err}
	}
}

// upload writes the agent under a name of its own and reads it back: with many
// writes in flight, a failure can leave holes.
func (i *installation) upload(r ui.Reporter) (temporary string, err error) {
	temporary = sftpPath(i.path) + "." + strings.ToLower(rand.Text()[:8]) + ".tmp"
	if err := i.write(temporary, r); err != nil {
		i.files.Remove(temporary) // best effort: what failed is worth more than this
		return "", err
	}
	sum, err := i.hash(temporary)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", &AgentBlockedError{Path: i.path, Vanished: true, ExitCode: -1}
	case err != nil:
		err = &InstallError{Attempt: "read the uploaded agent back", Err: err}
	case sum != i.node.opts.Agent.Hash:
		err = &InstallError{Attempt: "read the uploaded agent back",
			Err: fmt.Errorf("it is not what was sent (SHA-256 %.12s, not %.12s); try again", sum, i.node.opts.Agent.Hash)}
	}
	if err != nil {
		i.files.Remove(temporary)
		return "", err
	}
	return temporary, nil
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

// diskFull: sshd says just "failure" for it, so the free space is asked for.
func (i *installation) diskFull(err error) bool {
	const noSpace, quotaExceeded = 14, 15 // SFTP version 6, which some servers use
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

// place renames the uploaded agent over whatever stands there, again where other
// swdt do the same at this moment.
func (i *installation) place(ctx context.Context, temporary string) error {
	for try := 1; ; try++ {
		err := i.files.Rename(temporary, sftpPath(i.path))
		if err == nil {
			return nil
		}
		if _, statErr := i.files.Lstat(temporary); errors.Is(statErr, fs.ErrNotExist) {
			return &AgentBlockedError{Path: i.path, Vanished: true, ExitCode: -1}
		}
		kept, clearErr := i.keepOrRemove(ctx)
		if kept || clearErr != nil || try == placeTries {
			i.files.Remove(temporary) // best effort: it goes with this version's folder
		}
		switch {
		case kept:
			return nil
		case clearErr != nil:
			return clearErr
		case try == placeTries:
			return &InstallError{Attempt: "put the agent in its place as " + i.path, Err: err}
		}
	}
}

// placeTries bounds the renames that others spoil.
const placeTries = 10

// keepOrRemove clears the agent's place, unless this very agent stands there and
// is to be trusted. What cannot be removed runs, in somebody's session, and what
// runs nobody has open for writing: if it is this agent, it stays, for
// administrators only.
func (i *installation) keepOrRemove(ctx context.Context) (kept bool, err error) {
	there, err := i.alreadyThere()
	if err != nil || there && i.known {
		return there, err
	}
	if i.files.Remove(sftpPath(i.path)) == nil || !there {
		return false, nil
	}
	return true, i.icacls(ctx, i.path, `/setowner *S-1-5-32-544`, `/reset`)
}

// blocked says what became of an agent that was just installed and does not start.
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
