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
	"github.com/swdt-dev/swdt/internal/node"
	"github.com/swdt-dev/swdt/internal/wire/captureplan"
	"github.com/swdt-dev/swdt/internal/wire/fault"
)

// Run captures on one node until o.For is over, o.Stop is closed, or ctx ends, and then
// waits until the node's packet monitor is as it was before the capture. If ctx or the
// connection ends, the node restores its packet monitor by itself. After the capture, the
// packets are on the node: see Fetch and Forget.
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
	case outcome.Result == captureplan.Refused:
		return result, &BusyError{Running: outcome.Running, Filters: outcome.Filters}
	case outcome.Result != captureplan.Captured:
		return result, &FailedError{Reason: outcome.Reason}
	}
	return result, nil
}

// newID returns an ID that consists of a readable time and a random part.
func newID() string {
	var random [4]byte
	rand.Read(random[:])
	return time.Now().UTC().Format("20060102-150405") + "-" + hex.EncodeToString(random[:])
}

type captureStream = grpc.BidiStreamingClient[agentv1.PipeRequest, agentv1.PipeReply]

// meanwhile processes packets while the node captures. If the processing fails, meanwhile
// ends the capture.
type meanwhile interface {
	// closed is called each time the node reports which rounds can be fetched.
	closed(context.Context, captureplan.Rounds)
	// end is called after the capture has ended, and waits until the remaining packets are
	// processed.
	end(context.Context) error
	// because stops processing and returns the reason why the capture's stream failed: the error of
	// the processing, or err if the processing had not failed.
	because(err error) error
}

// nothing is the meanwhile of a capture into a log, whose packets are not processed while the node
// captures.
type nothing struct{}

func (nothing) closed(context.Context, captureplan.Rounds) {}
func (nothing) end(context.Context) error                  { return nil }
func (nothing) because(err error) error                    { return err }

// begun calls Options.Begun, and returns the meanwhile of a capture that has started: a value that
// prints packets, fetches rounds, or does nothing.
func (o Options) begun(ctx context.Context, n *node.Node, d Dialect, plan captureplan.Plan,
	fail context.CancelFunc) meanwhile {
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

// unseen returns the meanwhile of a capture that ended before the node reported its start. If the
// capture is live and has written no text, the returned value does nothing.
func (o Options) unseen(ctx context.Context, n *node.Node, d Dialect, plan captureplan.Plan,
	fail context.CancelFunc) meanwhile {
	_, err := n.Files.Stat(ctx, &agentv1.StatRequest{Path: captureplan.TextFile(plan.ID)})
	if plan.Live && errors.Is(err, fault.ErrNotExist) {
		return nothing{}
	}
	return o.begun(ctx, n, d, plan, fail)
}

// ended describes how a capture ended.
type ended struct {
	outcome captureplan.Outcome
	captureplan.Rounds
}

// follow runs the capture on the node and returns how it ended.
func (o Options) follow(ctx context.Context, n *node.Node, d Dialect, plan captureplan.Plan) (ended, error) {
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
		if event.State == captureplan.Capturing {
			if beside == nil {
				beside = o.begun(ctx, n, d, plan, cancel)
			}
			beside.closed(ctx, event.Rounds)
		}
		if event.Outcome == nil {
			continue
		}
		if beside == nil && event.Outcome.Result == captureplan.Captured {
			beside = o.unseen(ctx, n, d, plan, cancel)
		}
		if beside != nil {
			err = beside.end(ctx)
		}
		return ended{*event.Outcome, event.Rounds}, err
	}
}

// ask starts the capture on the node.
func (o Options) ask(ctx context.Context, n *node.Node, plan captureplan.Plan) (captureStream, error) {
	stream, err := n.Capture.Run(ctx)
	if err != nil {
		return nil, err
	}
	data, err := json.Marshal(plan)
	if err != nil {
		return nil, err
	}
	// io.EOF reports only that the stream has ended; the first reply then has the reason.
	if err := stream.Send(&agentv1.PipeRequest{Data: data}); err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	go keepAlive(ctx, stream, o.Stop)
	return stream, nil
}

func receive(stream captureStream) (event captureplan.Event, err error) {
	reply, err := stream.Recv()
	if errors.Is(err, io.EOF) {
		return event, errors.New("the node ended the capture without a result")
	}
	if err != nil {
		return event, err
	}
	if err := json.Unmarshal(reply.GetData(), &event); err != nil {
		return event, fmt.Errorf("read the node's report on the capture: %w", err)
	}
	return event, nil
}

// keepAlive sends keep-alive messages until ctx ends or stop is closed. Closing stop also
// ends the capture.
func keepAlive(ctx context.Context, stream captureStream, stop <-chan struct{}) {
	ticker := time.NewTicker(captureplan.KeepAlive)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-stop:
			_ = stream.CloseSend() // if this fails, Recv returns the error
			return
		case <-ticker.C:
			if stream.Send(&agentv1.PipeRequest{}) != nil {
				return
			}
		}
	}
}
