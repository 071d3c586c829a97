// Package smallfile reads and replaces a node's configuration files: files small enough
// to hold in memory. A reader on the node never finds a half-written file.
package smallfile

import (
	"context"
	"errors"
	"fmt"
	"io"

	agentv1 "github.com/swdt-dev/swdt/api/agent/v1"
	"github.com/swdt-dev/swdt/internal/node"
	"github.com/swdt-dev/swdt/internal/ui"
	"github.com/swdt-dev/swdt/internal/wire/fault"
)

const (
	// largest is the maximum size of a file, in bytes.
	largest = 4 << 20
	// unfinished is the suffix of the temporary file that has the new content until it is renamed.
	unfinished = ".swdt-new"
)

// Read returns a file's content. If there is no such file, the error is fault.ErrNotExist.
func Read(ctx context.Context, n *node.Node, path string) ([]byte, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stream, err := n.Files.Read(ctx, &agentv1.ReadRequest{Path: path})
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	var content []byte
	for {
		reply, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return content, nil
		}
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", path, err)
		}
		content = append(content, reply.GetData()...)
		if len(content) > largest {
			return nil, fmt.Errorf("read %s: larger than %s, which cannot be right", path, ui.Size(largest))
		}
	}
}

// Replace replaces the file's content. A reader finds the old content or the new content, never a
// mixture. The new file has the owner and access list of sddl from its first moment on; if sddl is
// empty, the folder determines the owner and the access list. Replace first removes any file that
// has the temporary name, so that no other account has a handle on the new file.
func Replace(ctx context.Context, n *node.Node, path string, content []byte, sddl string) error {
	beside := path + unfinished
	if err := write(ctx, n, beside, content, sddl); err != nil {
		return err
	}
	// A file system without access lists ignores sddl and reports no error.
	if sddl != "" {
		if is, err := Restricted(ctx, n, beside); err != nil || !is {
			return errors.Join(notRestricted(beside, err), remove(ctx, n, beside))
		}
	}
	if _, err := n.Files.Rename(ctx, &agentv1.RenameRequest{From: beside, To: path, Replace: true}); err != nil {
		return fmt.Errorf("put the new %s in place: %w", path, err)
	}
	return nil
}

// Remove removes the file at path, and the temporary file that an interrupted Replace of path left.
// A missing file is not an error.
func Remove(ctx context.Context, n *node.Node, path string) error {
	if err := RemoveUnfinished(ctx, n, path); err != nil {
		return err
	}
	return remove(ctx, n, path)
}

// RemoveUnfinished removes the temporary file that an interrupted Replace of path left.
func RemoveUnfinished(ctx context.Context, n *node.Node, path string) error {
	return remove(ctx, n, path+unfinished)
}

func remove(ctx context.Context, n *node.Node, path string) error {
	_, err := n.Files.Remove(ctx, &agentv1.RemoveRequest{Path: path})
	if err != nil && !errors.Is(err, fault.ErrNotExist) {
		return fmt.Errorf("remove %s: %w", path, err)
	}
	return nil
}

// Exists reports whether there is a file or folder at path.
func Exists(ctx context.Context, n *node.Node, path string) (bool, error) {
	_, err := n.Files.Stat(ctx, &agentv1.StatRequest{Path: path})
	if errors.Is(err, fault.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("look at %s: %w", path, err)
	}
	return true, nil
}

func write(ctx context.Context, n *node.Node, path string, content []byte, sddl string) error {
	stream, err := n.Files.Write(ctx)
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	// If the call has failed, Send returns io.EOF, and CloseAndRecv returns the cause.
	_ = stream.Send(&agentv1.WriteRequest{
		Header: &agentv1.WriteHeader{Path: path, Size: int64(len(content)), MakeFolder: true, Fresh: true, Sddl: sddl},
		Data:   content,
	})
	if _, err := stream.CloseAndRecv(); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return nil
}
