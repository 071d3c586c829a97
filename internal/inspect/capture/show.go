package capture

import (
	"context"
	"errors"
	"fmt"
	"io"

	agentv1 "github.com/swdt-dev/swdt/api/agent/v1"
	"github.com/swdt-dev/swdt/internal/node"
	"github.com/swdt-dev/swdt/internal/wire/captureplan"
)

// showing prints the text of a live capture.
type showing struct {
	cancel context.CancelFunc
	files  agentv1.FilesClient
	path   string
	size   chan int64 // receives the size of the whole file when it is known
	done   chan error
}

// show prints pktmon's text. If printing fails, the capture ends.
func (o Options) show(ctx context.Context, n *node.Node, id string, fail context.CancelFunc) *showing {
	ctx, cancel := context.WithCancel(ctx)
	s := &showing{cancel: cancel, files: n.Files, path: captureplan.TextFile(id), size: make(chan int64, 1),
		done: make(chan error, 1)}
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
		return fmt.Errorf("read pktmon's output: %w", err)
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
	// seen and all are positions in the file. They are not numbers of received bytes: if the file
	// is UTF-16, the node sends UTF-8, so fewer bytes arrive than the file has.
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
			return fmt.Errorf("read pktmon's output: %w", err)
		}
	}
	return nil
}

// closed does nothing, since a live capture has no rounds.
func (s *showing) closed(context.Context, captureplan.Rounds) {}

// because returns the error of printing, or err if printing did not fail.
func (s *showing) because(err error) error {
	s.cancel()
	if failed := <-s.done; failed != nil && !errors.Is(failed, context.Canceled) {
		return failed
	}
	return err
}

// end prints the text that was not printed before the end of the capture.
func (s *showing) end(ctx context.Context) error {
	defer s.cancel()
	info, err := s.files.Stat(ctx, &agentv1.StatRequest{Path: s.path})
	if err != nil {
		return fmt.Errorf("get the size of pktmon's output: %w", err)
	}
	s.size <- info.GetSize()
	return <-s.done
}
