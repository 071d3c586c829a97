// Package smallfile reads and replaces a node's configuration files: small
// enough to be in memory as a whole, and never seen half written.
package smallfile

import (
	"context"
	"errors"
	"fmt"
	"io"

	agentv1 "github.com/swdt-dev/swdt/api/agent/v1"
	"github.com/swdt-dev/swdt/internal/host"
	"github.com/swdt-dev/swdt/internal/node"
	"github.com/swdt-dev/swdt/internal/ui"
)

const (
	// largest is what is read of a file, bytes.
	largest = 4 << 20
	// unfinished ends the name of a file that has not taken its own yet.
	unfinished = ".swdt-new"
)

// Read returns a file's content; host.ErrNotExist where there is none.
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

// Replace makes content the file's, whatever was there. A reader finds the old
// content or the new. The new file has the owner and access list of sddl from its
// first moment on; an empty one leaves it to the folder. No other account has a
// handle on it: what had the name that it is written under is removed.
func Replace(ctx context.Context, n *node.Node, path string, content []byte, sddl string) error {
	beside := path + unfinished
	if err := write(ctx, n, beside, content, sddl); err != nil {
		return err
	}
	if sddl != "" { // a file system without access lists would have said nothing
		if is, err := Restricted(ctx, n, beside); err != nil || !is {
			return errors.Join(notRestricted(beside, err), remove(ctx, n, beside))
		}
	}
	if _, err := n.Files.Rename(ctx, &agentv1.RenameRequest{From: beside, To: path, Replace: true}); err != nil {
		return fmt.Errorf("put the new %s in place: %w", path, err)
	}
	return nil
}

// Remove removes a file and what an interrupted Replace left of it. One that is
// not there is no error.
func Remove(ctx context.Context, n *node.Node, path string) error {
	if err := RemoveUnfinished(ctx, n, path); err != nil {
		return err
	}
	return remove(ctx, n, path)
}

// RemoveUnfinished removes what an interrupted Replace of that file left.
func RemoveUnfinished(ctx context.Context, n *node.Node, path string) error {
	return remove(ctx, n, path+unfinished)
}

func remove(ctx context.Context, n *node.Node, path string) error {
	_, err := n.Files.Remove(ctx, &agentv1.RemoveRequest{Path: path})
	if err != nil && !errors.Is(err, host.ErrNotExist) {
		return fmt.Errorf("remove %s: %w", path, err)
	}
	return nil
}

// Exists is whether there is a file or folder of that name.
func Exists(ctx context.Context, n *node.Node, path string) (bool, error) {
	_, err := n.Files.Stat(ctx, &agentv1.StatRequest{Path: path})
	if errors.Is(err, host.ErrNotExist) {
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
	// What Send fails with is io.EOF; CloseAndRecv has the reason.
	_ = stream.Send(&agentv1.WriteRequest{
		Header: &agentv1.WriteHeader{Path: path, Size: int64(len(content)), MakeFolder: true, Fresh: true, Sddl: sddl},
		Data:   content,
	})
	if _, err := stream.CloseAndRecv(); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return nil
}
