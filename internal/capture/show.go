package capture

import (
	"context"
	"errors"
	"fmt"
	"io"

	agentv1 "github.com/swdt-dev/swdt/api/agent/v1"
	"github.com/swdt-dev/swdt/internal/node"
	"github.com/swdt-dev/swdt/internal/pktmon"
)

// showing is a live capture's text that is being shown.
type showing struct {
	cancel context.CancelFunc
	files  agentv1.FilesClient
	path   string
	size   chan int64 // of the whole file, once that is known
	done   chan error
}

// show shows what pktmon prints. Should that fail, the capture ends.
func (o Options) show(ctx context.Context, n *node.Node, id string, fail context.CancelFunc) *showing {
	ctx, cancel := context.WithCancel(ctx)
	s := &showing{cancel: cancel, files: n.Files, path: pktmon.TextFile(id), size: make(chan int64, 1), done: make(chan error, 1)}
	go func() {
		err := s.read(ctx, &packetLines{each: o.Packet})
		s.done <- err
		if err != nil && ctx.Err() == nil {
			fail()
		}
	}()
	return s
}

func (s *showing) read(ctx context.Context, to io.Writer) error {
	stream, err := s.files.Tail(ctx, &agentv1.TailRequest{Path: s.path, Lines: -1, Follow: true})
	if err != nil {
		return fmt.Errorf("read what pktmon prints: %w", err)
	}
	replies, failed := make(chan *agentv1.TailReply), make(chan error, 1)
	go func() {
		for {
			reply, err := stream.Recv()
			if err != nil {
				failed <- err
				return
			}
			select {
			case replies <- reply:
			case <-ctx.Done():
				failed <- ctx.Err()
				return
			}
		}
	}()
	// By its place in the file: of UTF-16 fewer bytes come than it has.
	seen, all := int64(0), int64(-1)
	for all < 0 || seen < all {
		select {
		case reply := <-replies:
			seen = max(seen, reply.GetPlace().GetOffset())
			if _, err := to.Write(reply.GetData()); err != nil {
				return err
			}
		case all = <-s.size:
		case err := <-failed:
			return fmt.Errorf("read what pktmon prints: %w", err)
		}
	}
	return nil
}

// closed: a live capture has no rounds.
func (s *showing) closed(context.Context, pktmon.Rounds) {}

// because is why the capture's stream ended: where showing has failed, that.
func (s *showing) because(err error) error {
	s.cancel()
	if failed := <-s.done; failed != nil && !errors.Is(failed, context.Canceled) {
		return failed
	}
	return err
}

// end shows the rest.
func (s *showing) end(ctx context.Context) error {
	defer s.cancel()
	info, err := s.files.Stat(ctx, &agentv1.StatRequest{Path: s.path})
	if err != nil {
		return fmt.Errorf("look at what pktmon printed: %w", err)
	}
	s.size <- info.GetSize()
	return <-s.done
}
