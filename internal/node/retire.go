package node

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"time"

	"github.com/pkg/sftp"

	"github.com/swdt-dev/swdt/internal/format/windowstext"
	"github.com/swdt-dev/swdt/internal/node/carrier"
	"github.com/swdt-dev/swdt/internal/wait"
	"github.com/swdt-dev/swdt/internal/wire/layout"
)

// retireLimit bounds the time in which removeOwn retries the removal: Windows does not remove a
// program that still runs.
const retireLimit = 30 * time.Second

// Retire removes all of swdt's files from the machine, and then runs last, a command of cmd. The command may switch the
// machine off: if the connection breaks while the command runs, Retire returns no error.
//
// Before the removal, Retire makes a new connection for its work, and then calls the function
// prepare. prepare can still use the agent, and may remove the keys with which swdt logs in.
// Afterwards n is not connected.
func (n *Node) Retire(ctx context.Context, prepare func(context.Context) error, last string) error {
	way, err := n.needsSSH("remove swdt from the machine")
	if err != nil {
		return err
	}
	n.connections.Add(1)
	client, err := way.dial(ctx)
	if err != nil {
		return &UnreachableError{Node: n.Name, Err: err}
	}
	defer client.Close()
	if err := prepare(ctx); err != nil {
		return err
	}
	if err := n.Close(); err != nil {
		n.opts.Reporter.Debug("end the agent: %v", err)
	}
	if err := removeOwn(ctx, sshConnection{client, way}); err != nil {
		return err
	}
	out, err := client.Run(ctx, way.shell.cmd("/c", last))
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case err != nil && client.Err() != nil: // the machine went down
		return nil
	case err != nil:
		return fmt.Errorf("run %s: %w", last, err)
	case out.ExitCode != 0:
		return fmt.Errorf("run %s: exit code %s: %s", last, windowstext.ExitCode(out.ExitCode), strings.TrimSpace(out.Stderr+" "+out.Stdout))
	}
	return nil
}

// removeOwn removes swdt's folder, and the agents that were uploaded into the user's profile.
func removeOwn(ctx context.Context, conn sshConnection) error {
	profile, err := conn.profile(ctx)
	if err != nil {
		return err
	}
	profile = sftpPath(profile)
	files, err := conn.SFTP(ctx)
	if err != nil {
		return err
	}
	defer files.Close()
	defer context.AfterFunc(ctx, func() { files.Close() })()
	if entries, err := files.ReadDir(profile); err == nil {
		for _, each := range entries {
			if carrier.IsStaged(each) {
				_ = files.Remove(profile + "/" + each.Name()) // ownGone checks below that the file is gone
			}
		}
	}
	err = wait.Condition{
		Name: layout.Root + " to be gone", Interval: time.Second, Limit: retireLimit,
		Look: func(ctx context.Context) error {
			out, err := conn.Client.Run(ctx, conn.way.shell.cmd("/c", "rmdir /s /q "+layout.Root))
			if err != nil {
				return wait.Stop(err)
			}
			return ownGone(files, profile, out.Stderr)
		},
	}.Wait(ctx)
	if err != nil {
		return fmt.Errorf("remove swdt's files: %w", err)
	}
	return nil
}

// ownGone returns an error if files of swdt are left. profile is the profile's path for SFTP. said is the error output of the command that
// removed the folder.
func ownGone(files *sftp.Client, profile, said string) error {
	_, err := files.Lstat(sftpPath(layout.Root))
	switch {
	case err == nil:
		return fmt.Errorf("%s is still there: %s", layout.Root, strings.TrimSpace(said))
	case !errors.Is(err, fs.ErrNotExist):
		return err
	}
	entries, err := files.ReadDir(profile)
	if err != nil {
		return err
	}
	for _, each := range entries {
		if carrier.IsStaged(each) {
			return fmt.Errorf("the uploaded agent %s is still there", each.Name())
		}
	}
	return nil
}
