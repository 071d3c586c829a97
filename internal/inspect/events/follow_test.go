package events

import (
	"context"
	"errors"
	"fmt"
	"io"
	"testing"
	"testing/synctest"

	"google.golang.org/grpc"

	agentv1 "github.com/swdt-dev/swdt/api/agent/v1"
)

// flood is a node whose wevtutil prints an endless sequence of events.
type flood struct {
	agentv1.ProcessesClient
	printed int
}

func (f *flood) Run(ctx context.Context, _ ...grpc.CallOption) (grpc.BidiStreamingClient[agentv1.RunRequest,
	agentv1.RunReply], error) {
	return &floodRun{ctx: ctx, flood: f}, nil
}

type floodRun struct {
	grpc.ClientStream
	ctx   context.Context
	flood *flood
}

func (r *floodRun) Send(*agentv1.RunRequest) error { return nil }
func (r *floodRun) CloseSend() error               { return nil }
func (r *floodRun) Recv() (*agentv1.RunReply, error) {
	if err := r.ctx.Err(); err != nil {
		return nil, err
	}
	if r.flood.printed == 100*batchSize {
		return nil, io.ErrUnexpectedEOF
	}
	r.flood.printed++
	return &agentv1.RunReply{Stdout: fmt.Appendf(nil,
		"<Event><System><EventRecordID>%d</EventRecordID></System></Event>", r.flood.printed)}, nil
}

// Only one batch of an endless answer is kept at a time.
func TestAnEndlessAnswerIsGivenInBatches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := Channel{reader: &Reader{programs: &flood{}}, chosen: selected{channel: "System"}}
		enough := errors.New("enough")
		given := 0
		err := c.Resume(t.Context(), Query{Follow: true}, &Position{caughtUp: true}, func(batch []Event, _ bool) error {
			if len(batch) > batchSize {
				t.Fatalf("a batch of %d", len(batch))
			}
			if given += len(batch); given >= 3*batchSize {
				return enough
			}
			return nil
		})
		if !errors.Is(err, enough) {
			t.Errorf("got %v after %d events", err, given)
		}
	})
}
