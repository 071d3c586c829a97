package capture

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"

	"google.golang.org/grpc"

	agentv1 "github.com/swdt-dev/swdt/api/agent/v1"
)

// printed is the node's file of pktmon's output, and the replies that send it.
type printed struct {
	agentv1.FilesClient
	size    int64
	replies []*agentv1.TailReply
}

func (p *printed) Stat(context.Context, *agentv1.StatRequest, ...grpc.CallOption) (*agentv1.FileInfo, error) {
	return &agentv1.FileInfo{Size: p.size}, nil
}

func (p *printed) Tail(ctx context.Context, _ *agentv1.TailRequest,
	_ ...grpc.CallOption) (grpc.ServerStreamingClient[agentv1.TailReply], error) {
	return &tail{ctx: ctx, replies: p.replies}, nil
}

type tail struct {
	grpc.ServerStreamingClient[agentv1.TailReply]
	ctx     context.Context
	replies []*agentv1.TailReply
}

func (s *tail) Recv() (*agentv1.TailReply, error) {
	if len(s.replies) == 0 { // the caller follows the file, so the stream stays open
		<-s.ctx.Done()
		return nil, s.ctx.Err()
	}
	reply := s.replies[0]
	s.replies = s.replies[1:]
	return reply, nil
}

// Fewer bytes arrive than a UTF-16 file has, so the position in the file decides when all of
// it has been shown. The last line is shown even if pktmon ended within it.
func TestWholeFileIsShown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const line, cut = "PktGroupId 1, Component 5\n\tone\n", "PktGroupId 2"
		at := func(offset int) *agentv1.TailPlace { return &agentv1.TailPlace{Offset: int64(offset)} }
		files := &printed{size: 2 + 2*int64(len(line+cut)), replies: []*agentv1.TailReply{
			{}, {Data: []byte(line), Place: at(2 + 2*len(line))}, {Data: []byte(cut), Place: at(2 + 2*len(line+cut))},
		}}
		var shown []string
		ctx, cancel := context.WithCancel(t.Context())
		s := &showing{cancel: cancel, files: files, size: make(chan int64, 1), done: make(chan error, 1)}
		go func() {
			s.done <- s.read(ctx,
				&packetLines{each: func(p Packet) error { shown = append(shown, p.Text); return nil }})
		}()
		if err := s.end(ctx); err != nil || !slices.Equal(shown, []string{"one"}) {
			t.Errorf("%q, %v", shown, err)
		}
	})
}
