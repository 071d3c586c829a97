package transfer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	agentv1 "github.com/swdt-dev/swdt/api/agent/v1"
	"github.com/swdt-dev/swdt/api/v1alpha1"
	"github.com/swdt-dev/swdt/internal/layout"
	"github.com/swdt-dev/swdt/internal/localfile"
	"github.com/swdt-dev/swdt/internal/node"
	"github.com/swdt-dev/swdt/internal/ui"
)

// Download copies a file or folder of the node here, by the rules of Upload.
func Download(ctx context.Context, n *node.Node, remote, local string, r ui.Reporter) (CopyResult, error) {
	c := &copying{node: n, reporter: r}
	remote, err := v1alpha1.CleanWindowsPath(remote)
	if err != nil {
		return c.result, fmt.Errorf("copy from the node: %w", err)
	}
	info, err := n.Files.Stat(ctx, &agentv1.StatRequest{Path: remote})
	if err != nil {
		return c.result, fmt.Errorf("copy from the node: %w", err)
	}
	local, err = localName(local, remote)
	if err != nil {
		return c.result, err
	}
	if info.GetFolder() {
		return c.result, c.downloadFolder(ctx, remote, local)
	}
	return c.result, c.downloadFile(ctx, info, remote, local)
}

// localName is the path that remote gets here.
func localName(local, remote string) (string, error) {
	if local == "" {
		return "", errors.New("copy from the node: the local path is empty: use . for this folder")
	}
	info, err := os.Stat(local)
	if err == nil && info.IsDir() || os.IsPathSeparator(local[len(local)-1]) {
		return joinLocal(local, remote)
	}
	return local, nil
}

// joinLocal puts what is at a remote path into a local folder, and nowhere
// else: the node chooses its files' names, but not where they land here.
func joinLocal(folder, remote string) (string, error) {
	name := remote[strings.LastIndexAny(remote, `\/`)+1:]
	if name == "" || name == "." || !filepath.IsLocal(name) || strings.ContainsAny(name, `/\`) {
		return "", fmt.Errorf("copy %s: its name is not one for a file here: give one", remote)
	}
	return filepath.Join(folder, name), nil
}

func (c *copying) downloadFolder(ctx context.Context, remote, local string) error {
	if err := os.MkdirAll(local, 0o755); err != nil {
		return fmt.Errorf("copy %s: %w", remote, err)
	}
	reply, err := c.node.Files.List(ctx, &agentv1.ListFilesRequest{Path: remote})
	if err != nil {
		return fmt.Errorf("copy %s: %w", remote, err)
	}
	for _, entry := range reply.GetEntries() {
		to, err := joinLocal(local, entry.GetPath())
		switch {
		case err != nil:
		case entry.GetLink():
			c.skip(entry.GetPath(), fs.ModeSymlink)
		case entry.GetFolder():
			err = c.downloadFolder(ctx, entry.GetPath(), to)
		default:
			err = c.downloadFile(ctx, entry, entry.GetPath(), to)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (c *copying) downloadFile(ctx context.Context, info *agentv1.FileInfo, remote, local string) error {
	hash, err := c.node.Files.Hash(ctx, &agentv1.HashRequest{Path: remote})
	if err != nil {
		return fmt.Errorf("copy %s: %w", remote, err)
	}
	c.result.Files++
	c.result.SizeBytes += hash.GetSize()
	if same(ctx, local, hash) {
		c.result.Unchanged++
		return nil
	}
	part := Part(layout.Staged(local, hash.GetSha256()))
	if err := c.receive(ctx, remote, part, hash); err != nil {
		return err
	}
	if t := info.GetModified(); t.IsValid() {
		if err := os.Chtimes(part, t.AsTime(), t.AsTime()); err != nil {
			return fmt.Errorf("copy %s: %w", remote, err)
		}
	}
	if err := os.Rename(part, local); err != nil {
		return fmt.Errorf("copy %s: %w", remote, err)
	}
	return nil
}

func same(ctx context.Context, path string, hash *agentv1.HashReply) bool {
	info, err := os.Lstat(path)
	if err != nil || !info.Mode().IsRegular() || info.Size() != hash.GetSize() {
		return false
	}
	sum, err := localfile.Hash(ctx, path)
	return err == nil && sum == hash.GetSha256()
}

// receive gets the file's bytes after those that part has, and verifies the
// whole. If the file on the node changes meanwhile, that is an error.
func (c *copying) receive(ctx context.Context, remote, part string, hash *agentv1.HashReply) error {
	file, err := os.OpenFile(part, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o644)
	if err != nil {
		return fmt.Errorf("copy %s: %w", remote, err)
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return fmt.Errorf("copy %s: %w", remote, err)
	}
	offset := info.Size()
	if offset > hash.GetSize() {
		offset = 0
		if err := file.Truncate(0); err != nil {
			return fmt.Errorf("copy %s: %w", remote, err)
		}
	}
	if err := c.read(ctx, remote, file, offset, hash.GetSize()); err != nil {
		return err
	}
	if err := file.Close(); err != nil {
		return fmt.Errorf("copy %s: %w", remote, err)
	}
	sum, err := localfile.Hash(ctx, part)
	if err != nil {
		return fmt.Errorf("verify %s: %w", part, err)
	}
	if sum == hash.GetSha256() {
		return nil
	}
	if err := os.Remove(part); err != nil {
		return fmt.Errorf("remove what is not %s: %w", remote, err)
	}
	if offset > 0 { // the part was no use: once from the start
		return c.receive(ctx, remote, part, hash)
	}
	return &RemoteChangedError{Path: remote}
}

// RemoteChangedError is a file of the node that did not stay the same while it
// was copied, such as a log.
type RemoteChangedError struct{ Path string }

func (e *RemoteChangedError) Error() string {
	return fmt.Sprintf("%s changed on the node while it was copied: copy it again, or make a copy on the node first", e.Path)
}

func (c *copying) read(ctx context.Context, remote string, to io.Writer, offset, size int64) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stream, err := c.node.Files.Read(ctx, &agentv1.ReadRequest{Path: remote, Offset: offset})
	if err != nil {
		return fmt.Errorf("copy %s: %w", remote, err)
	}
	progress := c.reporter.Transfer(remote[strings.LastIndexAny(remote, `\/`)+1:], size)
	defer progress.End()
	progress.Add(offset)
	for {
		reply, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("copy %s: %w", remote, err)
		}
		if _, err := to.Write(reply.GetData()); err != nil {
			return fmt.Errorf("copy %s: %w", remote, err)
		}
		n := int64(len(reply.GetData()))
		c.result.SentBytes += n
		progress.Add(n)
	}
}
