package agent

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/swdt-dev/swdt/internal/agent/custody"
	"github.com/swdt-dev/swdt/internal/agent/internal/patience"
	"github.com/swdt-dev/swdt/internal/platform"
	"github.com/swdt-dev/swdt/internal/wire/fault"
	"github.com/swdt-dev/swdt/internal/wire/handshake"
	"github.com/swdt-dev/swdt/internal/wire/layout"
)

// install installs this program on the node. swdt requests this at the first contact, when the
// program runs from the administrator's own profile, where no other user can write. install reports
// the result in one line on stdout, and returns the exit code.
func install(ctx context.Context, m Machine, stdout io.Writer) int {
	i := &installation{files: custody.Files(m.Platform.Files), executable: m.Executable, hash: m.Hash,
		path: layout.Agent(m.Hash)}
	result := handshake.Installed{Path: i.path}
	var err error
	if result.MovedAside, err = custody.Secure(m.Platform.Files); err == nil {
		result.Kept, err = i.run(ctx)
	}
	if err != nil {
		result.Failure, result.Message = failureKind(err), err.Error()
	}
	if printed := handshake.PrintInstalled(stdout, result); printed != nil {
		m.logger().Print(errors.Join(err, printed))
		return exitFailed
	}
	if err != nil {
		return exitFailed
	}
	return exitDone
}

func failureKind(err error) handshake.FailureKind {
	var foreign *custody.ForeignError
	switch {
	case errors.As(err, &foreign):
		return handshake.Foreign
	case errors.Is(err, fault.ErrPermission):
		return handshake.NotAllowed
	case errors.Is(err, fault.ErrDiskFull):
		return handshake.DiskFull
	}
	return handshake.Failed
}

// installation copies an agent to its place on the node.
type installation struct {
	files      platform.Files
	executable string // this program's own file
	hash       string
	path       string
}

// run installs the agent. If this very agent is installed already, run changes nothing and sets kept.
func (i *installation) run(ctx context.Context) (kept bool, err error) {
	if kept, err := i.isThere(ctx); kept || err != nil {
		return kept, err
	}
	if err := i.files.MakeFolder(parentFolder(i.path)); err != nil {
		return false, err
	}
	temporary := i.path + "." + strings.ToLower(rand.Text()[:8]) + ".tmp"
	if err := i.copyTo(ctx, temporary); err != nil {
		return false, errors.Join(err, i.discard(temporary))
	}
	// The rename fails if a scanner reads the copy, or because another session runs the file at this path. The path
	// contains the agent's hash, so that file should be this same agent; isThere checks the file's hash.
	patient := patience.Patience{Files: i.files, Limit: patience.Long}
	err = patient.Repeat(ctx, func() string { return temporary }, fault.IsHeld, func() (err error) {
		if err = i.files.Rename(temporary, i.path, true); err == nil {
			return nil
		}
		var look error
		if kept, look = i.isThere(ctx); kept {
			return nil
		}
		return cmp.Or(look, err)
	})
	if err == nil && !kept {
		return false, nil
	}
	if err != nil {
		err = fmt.Errorf("install the agent: %w", err)
	}
	return kept, errors.Join(err, i.discard(temporary))
}

// isThere reports whether exactly this agent is installed. i.files opens files through package
// custody, which refuses a file that another account could have changed.
func (i *installation) isThere(ctx context.Context) (bool, error) {
	sum, err := i.hashOf(ctx, i.path)
	if errors.Is(err, fault.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("read the installed agent: %w", err)
	}
	return sum == i.hash, nil
}

func (i *installation) copyTo(ctx context.Context, path string) error {
	from, err := i.files.Open(i.executable)
	if err != nil {
		return fmt.Errorf("read this agent's own file: %w", err)
	}
	defer from.Close()
	to, err := i.files.NewFile(path, "")
	if err != nil {
		return err
	}
	_, err = io.CopyBuffer(onlyWriter{to}, struct{ io.Reader }{from}, make([]byte, readChunk))
	if err == nil {
		err = to.Sync()
	}
	if err = errors.Join(err, to.Close()); err != nil {
		return fmt.Errorf("copy the agent to %s: %w", path, err)
	}
	sum, err := i.hashOf(ctx, path)
	if err == nil && sum != i.hash {
		err = fmt.Errorf("it has the SHA-256 %.12s, not %.12s; try again", sum, i.hash)
	}
	if err != nil {
		return fmt.Errorf("read the copied agent back: %w", err)
	}
	return nil
}

func (i *installation) hashOf(ctx context.Context, path string) (string, error) {
	file, err := i.files.Open(path)
	if err != nil {
		return "", err
	}
	defer file.Close()
	sum := sha256.New()
	buffer := make([]byte, readChunk)
	for {
		n, err := file.Read(buffer)
		sum.Write(buffer[:n])
		if err == io.EOF {
			return hex.EncodeToString(sum.Sum(nil)), nil
		}
		if err = errors.Join(err, ctx.Err()); err != nil {
			return "", err
		}
	}
}

func (i *installation) discard(path string) error {
	if err := i.files.Remove(path); err != nil && !errors.Is(err, fault.ErrNotExist) {
		return fmt.Errorf("remove %s: %w", path, err)
	}
	return nil
}
