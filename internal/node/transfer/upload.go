package transfer

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	agentv1 "github.com/swdt-dev/swdt/api/agent/v1"
	"github.com/swdt-dev/swdt/api/v1alpha1"
	"github.com/swdt-dev/swdt/internal/localfile"
	"github.com/swdt-dev/swdt/internal/node"
	"github.com/swdt-dev/swdt/internal/obtain/source"
	"github.com/swdt-dev/swdt/internal/ui"
	"github.com/swdt-dev/swdt/internal/wire/fault"
	"github.com/swdt-dev/swdt/internal/wire/layout"
)

// CopyResult is the result of copying files and folders.
type CopyResult struct {
	Files     int   `json:"files"`     // all files, including unchanged ones
	Unchanged int   `json:"unchanged"` // files that were already at the destination
	Skipped   int   `json:"skipped"`   // links and other things that are not files
	SizeBytes int64 `json:"sizeBytes"`
	SentBytes int64 `json:"sentBytes"` // bytes sent over the link
}

// And returns the sum of two results.
func (r CopyResult) And(other CopyResult) CopyResult {
	return CopyResult{Files: r.Files + other.Files, Unchanged: r.Unchanged + other.Unchanged,
		Skipped: r.Skipped + other.Skipped, SizeBytes: r.SizeBytes + other.SizeBytes, SentBytes: r.SentBytes + other.SentBytes}
}

// Upload copies a local file or folder to the node as cp -r does: into the path remote if that path
// is a folder or ends in a slash, otherwise to that path itself. It skips a file that is already
// there, continues an interrupted copy of a file, and verifies each file before the file gets its
// final name.
func Upload(ctx context.Context, n *node.Node, local, remote string, r ui.Reporter) (CopyResult, error) {
	info, err := os.Stat(local)
	if err != nil {
		return CopyResult{}, fmt.Errorf("copy %s: %w", local, err)
	}
	c := &copying{node: n, reporter: r}
	remote, err = c.remoteName(ctx, remote, local)
	if err != nil {
		return c.result, err
	}
	if info.IsDir() {
		return c.result, c.uploadFolder(ctx, local, remote)
	}
	return c.result, c.uploadFile(ctx, local, remote)
}

// copying is one copy of files and folders.
type copying struct {
	node     *node.Node
	reporter ui.Reporter
	result   CopyResult
	seen     int // files and folders that the node has listed
}

// remoteName returns the path of the copy on the node.
func (c *copying) remoteName(ctx context.Context, remote, local string) (string, error) {
	inside := strings.HasSuffix(remote, `\`) || strings.HasSuffix(remote, "/")
	clean, err := v1alpha1.CleanWindowsPath(remote)
	if err != nil {
		return "", fmt.Errorf("copy to %s: %w", remote, err)
	}
	if !inside {
		info, err := c.node.Files.Stat(ctx, &agentv1.StatRequest{Path: clean})
		if err != nil && !errors.Is(err, fault.ErrNotExist) {
			return "", fmt.Errorf("copy to %s: %w", remote, err)
		}
		inside = err == nil && info.GetFolder()
	}
	if !inside {
		return clean, nil
	}
	whole, err := filepath.Abs(local) // resolves . and ..
	if err != nil {
		return "", fmt.Errorf("copy %s: %w", local, err)
	}
	return joinRemote(clean, filepath.Base(whole))
}

// joinRemote adds a name to a folder on the node, and refuses names that Windows does
// not allow.
func joinRemote(folder, name string) (string, error) {
	if strings.ContainsAny(name, `\/:`) {
		return "", fmt.Errorf("copy %s: Windows does not allow this name: rename it", name)
	}
	path, err := v1alpha1.CleanWindowsPath(strings.TrimRight(folder, `\`) + `\` + name)
	if err != nil {
		return "", fmt.Errorf("copy %s: %w", name, err)
	}
	return path, nil
}

func (c *copying) uploadFolder(ctx context.Context, local, remote string) error {
	if _, err := c.node.Files.MakeFolder(ctx, &agentv1.MakeFolderRequest{Path: remote}); err != nil {
		return fmt.Errorf("make the folder %s: %w", remote, err)
	}
	entries, err := os.ReadDir(local)
	if err != nil {
		return fmt.Errorf("copy %s: %w", local, err)
	}
	for _, entry := range entries {
		path := filepath.Join(local, entry.Name())
		to, err := joinRemote(remote, entry.Name())
		if err != nil {
			return err
		}
		switch kind := entry.Type(); {
		case kind.IsDir():
			err = c.uploadFolder(ctx, path, to)
		case kind.IsRegular():
			err = c.uploadFile(ctx, path, to)
		default:
			c.skip(path, kind)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (c *copying) skip(path string, kind fs.FileMode) {
	what := "not a regular file"
	if kind&fs.ModeSymlink != 0 {
		what = "a link"
	}
	c.result.Skipped++
	c.reporter.Warn("%s is %s and is skipped", path, what)
}

func (c *copying) uploadFile(ctx context.Context, local, remote string) error {
	file, err := describe(ctx, local)
	if err != nil {
		return err
	}
	part := Part(layout.Staged(remote, file.SHA256))
	result, err := send(ctx, c.node, file, part, remote, c.reporter)
	c.result.SentBytes += result.SentBytes
	if fault.IsHeld(err) {
		return fmt.Errorf("%w: a running program cannot be copied over; `swdt push` can replace it", err)
	}
	if err != nil {
		return err
	}
	c.result.Files++
	c.result.SizeBytes += file.Size
	if result.Method == MethodNone {
		c.result.Unchanged++
	}
	return nil
}

// describe returns the File for a local file, with the file's hash.
func describe(ctx context.Context, path string) (File, error) {
	info, err := os.Stat(path)
	if err != nil {
		return File{}, fmt.Errorf("copy %s: %w", path, err)
	}
	sum, err := localfile.Hash(ctx, path)
	if err != nil {
		return File{}, fmt.Errorf("copy %s: %w", path, err)
	}
	return File{Binary: source.Binary{Path: path, Size: info.Size(), SHA256: sum, Modified: info.ModTime()}}, nil
}
