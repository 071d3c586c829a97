package capture

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"google.golang.org/grpc"

	agentv1 "github.com/swdt-dev/swdt/api/agent/v1"
	"github.com/swdt-dev/swdt/internal/host"
	"github.com/swdt-dev/swdt/internal/node"
	"github.com/swdt-dev/swdt/internal/pktmon"
)

// beat is between two signs of life: the node ends a capture whose caller gives
// none for five times as long.
const beat = 2 * time.Second

// Run captures on one node until o.For is over, o.Stop is closed, or ctx ends, and
// in each case until the node's packet monitor is as it was. Where ctx ends, or the
// connection, the node sees to that by itself. The packets are then on the node:
// see Fetch and Forget.
func Run(ctx context.Context, n *node.Node, o Options) (Result, error) {
	d, err := Learn(ctx, n.Processes)
	if err != nil {
		return Result{}, err
	}
	plan, err := o.plan(d, newID())
	if err != nil {
		return Result{}, err
	}
	ended, err := o.follow(ctx, n, d, plan)
	outcome := ended.outcome
	result := Result{ID: plan.ID, Exportable: d.ToPcap != "", dialect: d, Reason: outcome.Reason, Rounds: ended.Rounds}
	if outcome.Kept != "" {
		result.Warnings = append(result.Warnings, outcome.Kept)
	}
	switch {
	case err != nil:
		return result, err
	case outcome.Result == pktmon.Refused:
		return result, &BusyError{Running: outcome.Running, Filters: outcome.Filters}
	case outcome.Result != pktmon.Captured:
		return result, &FailedError{Reason: outcome.Reason}
	}
	return result, nil
}

// newID is a time that people can read, and something random.
func newID() string {
	var random [4]byte
	rand.Read(random[:])
	return time.Now().UTC().Format("20060102-150405") + "-" + hex.EncodeToString(random[:])
}

type captureStream = grpc.BidiStreamingClient[agentv1.PipeRequest, agentv1.PipeReply]

// meanwhile is what is done with packets while the node captures. Should it fail,
// it ends the capture.
type meanwhile interface {
	// closed tells it that these rounds can be fetched.
	closed(context.Context, pktmon.Rounds)
	// end waits until it has done the rest: the capture has ended.
	end(context.Context) error
	// because ends it and is why the capture's stream failed, with err where that
	// was not its doing.
	because(err error) error
}

// nothing is done while packets are captured into a log.
type nothing struct{}

func (nothing) closed(context.Context, pktmon.Rounds) {}
func (nothing) end(context.Context) error             { return nil }
func (nothing) because(err error) error               { return err }

// begun is what is done while the capture goes on.
func (o Options) begun(ctx context.Context, n *node.Node, d Dialect, plan pktmon.Plan, fail context.CancelFunc) meanwhile {
	if o.Begun != nil {
		o.Begun()
	}
	switch {
	case plan.Live:
		return o.show(ctx, n, plan.ID, fail)
	case plan.Round > 0:
		return o.fetchRounds(ctx, n, d, plan.ID, fail)
	}
	return nothing{}
}

// unseen is what is done with a capture that was over before the node told that it
// had begun, where it had.
func (o Options) unseen(ctx context.Context, n *node.Node, d Dialect, plan pktmon.Plan, fail context.CancelFunc) meanwhile {
	_, err := n.Files.Stat(ctx, &agentv1.StatRequest{Path: pktmon.TextFile(plan.ID)})
	if plan.Live && errors.Is(err, host.ErrNotExist) {
		return nothing{}
	}
	return o.begun(ctx, n, d, plan, fail)
}

// ended is how a capture did.
type ended struct {
	outcome pktmon.Outcome
	pktmon.Rounds
}

// follow has the node capture and returns how that ended.
func (o Options) follow(ctx context.Context, n *node.Node, d Dialect, plan pktmon.Plan) (ended, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stream, err := o.ask(ctx, n, plan)
	if err != nil {
		return ended{}, err
	}
	var beside meanwhile
	for {
		event, err := receive(stream)
		if err != nil {
			if beside != nil {
				err = beside.because(err)
			}
			return ended{}, err
		}
		if event.State == pktmon.Capturing {
			if beside == nil {
				beside = o.begun(ctx, n, d, plan, cancel)
			}
			beside.closed(ctx, event.Rounds)
		}
		if event.Outcome == nil {
			continue
		}
		if beside == nil && event.Outcome.Result == pktmon.Captured {
			beside = o.unseen(ctx, n, d, plan, cancel)
		}
		if beside != nil {
			err = beside.end(ctx)
		}
		return ended{*event.Outcome, event.Rounds}, err
	}
}

// ask has the node begin.
func (o Options) ask(ctx context.Context, n *node.Node, plan pktmon.Plan) (captureStream, error) {
	stream, err := n.Capture.Run(ctx)
	if err != nil {
		return nil, err
	}
	data, err := json.Marshal(plan)
	if err != nil {
		return nil, err
	}
	// What a send gives is only that the stream has ended; why is in the answer.
	if err := stream.Send(&agentv1.PipeRequest{Data: data}); err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	go keepAlive(ctx, stream, o.Stop)
	return stream, nil
}

func receive(stream captureStream) (event pktmon.Event, err error) {
	reply, err := stream.Recv()
	if errors.Is(err, io.EOF) {
		return event, errors.New("the node ended the capture without saying how")
	}
	if err != nil {
		return event, err
	}
	if err := json.Unmarshal(reply.GetData(), &event); err != nil {
		return event, fmt.Errorf("read what the node says of the capture: %w", err)
	}
	return event, nil
}

// keepAlive gives signs of life until the capture is to end.
func keepAlive(ctx context.Context, stream captureStream, stop <-chan struct{}) {
	ticker := time.NewTicker(beat)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-stop:
			_ = stream.CloseSend() // that it fails, Recv says
			return
		case <-ticker.C:
			if stream.Send(&agentv1.PipeRequest{}) != nil {
				return
			}
		}
	}
}
