package push

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"google.golang.org/grpc"

	agentv1 "github.com/swdt-dev/swdt/api/agent/v1"
	"github.com/swdt-dev/swdt/internal/ui"
	"github.com/swdt-dev/swdt/internal/wait"
	"github.com/swdt-dev/swdt/internal/wire/fault"
	"github.com/swdt-dev/swdt/internal/wire/word"
)

// swap runs the transaction with every component that differs, and records its
// outcome in the result.
func (w *work) swap(ctx context.Context, files *staging) error {
	plan := files.plan(w.options.Holder)
	f := &following{work: w, noFiles: onlyRestarts(plan)}
	outcome, err := f.run(ctx, plan)
	w.result.Transaction = f.id
	files.handedOver = err == nil || f.begun
	for _, c := range files.components {
		c.uncertain = err != nil && f.begun && c.change.changes()
	}
	switch {
	case cutShort(ctx, err) && f.begun:
		return &InterruptedError{Err: context.Cause(ctx)}
	case err != nil:
		return err
	}
	if !w.keeps(w.options.Holder) {
		w.acknowledge(ctx, f.id)
	}
	return w.accept(ctx, files, outcome)
}

// acknowledge lets the node forget an outcome that was reported. If acknowledge fails, the next
// command reports the outcome once more.
func (w *work) acknowledge(ctx context.Context, id string) {
	if id == "" {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	reply, err := w.node.Swap.Acknowledge(ctx, &agentv1.AcknowledgeRequest{Id: id})
	if err != nil {
		w.reporter.Debug("acknowledge transaction %s: %v", id, err)
	}
	if why := reply.GetUnrecorded(); why != "" {
		w.reporter.Warn("the node's history lacks transaction %s: %s", id, why)
	}
}

// keeps reports whether the journal of a finished transaction stays on the node, as KeepJournal wants it.
func (w *work) keeps(holder string) bool {
	return w.options.KeepJournal && holder == w.options.Holder
}

// following is the client's side of one transaction on the node.
type following struct {
	*work
	id      string
	begun   bool // the transaction may have begun, so the staged files belong to it
	noFiles bool // the transaction only restarts services
}

// These constants bound reconnecting to a node that is at work. The node may be rebooting.
const (
	followTries = 7
	firstPause  = time.Second
	longPause   = 30 * time.Second
)

func (f *following) run(ctx context.Context, plan *agentv1.SwapPlan) (*agentv1.SwapOutcome, error) {
	begin, failure := "replacing", "replace the binaries"
	if f.noFiles {
		begin, failure = "restarting", "restart the services"
	}
	f.reporter.Step("%s", begin)
	f.parts.begin(partBegin)
	f.begun = true
	stream, err := f.node.Swap.Run(ctx, plan)
	var outcome *agentv1.SwapOutcome
	if err == nil {
		outcome, err = f.follow(stream)
	}
	if err == nil {
		return outcome, nil
	}
	if !lost(err) {
		f.begun = f.id != "" || f.mayHaveBegun(ctx)
		return nil, fmt.Errorf("%s: %w", failure, err)
	}
	f.reporter.Warn("lost the connection; the node continues by itself, reconnecting to follow it")
	return f.rejoin(ctx, err)
}

// mayHaveBegun reports whether the node may have begun this transaction although an error
// arrived before the first event. The staged files may only be removed if it returns false.
func (f *following) mayHaveBegun(ctx context.Context) bool {
	reply, err := f.node.Swap.Inspect(ctx, &agentv1.InspectRequest{})
	return err != nil || f.find(reply.GetTransactions()) != nil
}

// follow reads events until the last one, which carries the outcome.
func (f *following) follow(stream grpc.ServerStreamingClient[agentv1.SwapEvent]) (*agentv1.SwapOutcome, error) {
	for {
		event, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return nil, errors.New("the node ended its report without the outcome: see `swdt status`")
		}
		if err != nil {
			return nil, err
		}
		if id := event.GetTransaction(); id != "" {
			f.id = id
		}
		if outcome := event.GetOutcome(); outcome != nil {
			f.parts.begin(partEnd)
			return outcome, nil
		}
		f.report(event)
	}
}

// onlyRestarts reports whether the transaction changes neither files nor command lines.
func onlyRestarts(plan *agentv1.SwapPlan) bool {
	return !slices.ContainsFunc(plan.GetComponents(), func(c *agentv1.SwapComponent) bool {
		return c.GetStaged() != "" || c.GetCommandLine() != ""
	})
}

func (f *following) report(event *agentv1.SwapEvent) {
	state := event.GetState()
	f.parts.begin(partOf(state))
	if f.noFiles && (state == agentv1.SwapState_SWAP_STATE_SWAPPING || state == agentv1.SwapState_SWAP_STATE_SWAPPED) {
		return
	}
	text := ui.Words(word.Of(state))
	if event.GetComponent() != "" {
		text += " " + event.GetComponent()
	}
	if event.GetMessage() != "" {
		text += ": " + event.GetMessage()
	}
	f.reporter.Step("%s", text)
}

// rejoin reconnects, up to followTries times, and then follows the transaction to its end.
func (f *following) rejoin(ctx context.Context, why error) (*agentv1.SwapOutcome, error) {
	pause := firstPause
	for range followTries {
		err := f.reconnect(ctx)
		if err == nil {
			f.locked = false // the lock ended with the old session
			var outcome *agentv1.SwapOutcome
			if outcome, err = f.resume(ctx); err == nil {
				return outcome, nil
			}
			if !lost(err) {
				return nil, err
			}
		}
		why = err
		f.reporter.Debug("connect again: %v", err)
		if wait.For(ctx, pause) != nil {
			return nil, context.Cause(ctx)
		}
		pause = min(2*pause, longPause)
	}
	return nil, &InterruptedError{Err: fmt.Errorf("follow the transaction: %w", why)}
}

// cutShort reports whether work failed because its context ended. The node enforces the
// deadline of each call as well, and its clock may be a moment ahead. cutShort therefore
// waits for ctx to end, so that after a true result the cause of ctx is known.
func cutShort(ctx context.Context, err error) bool {
	if deadline, ok := ctx.Deadline(); ok && errors.Is(err, context.DeadlineExceeded) &&
		time.Until(deadline) < time.Second {
		<-ctx.Done()
	}
	return err != nil && ctx.Err() != nil
}

// resume finds the transaction on the node and follows it to its end.
func (f *following) resume(ctx context.Context) (*agentv1.SwapOutcome, error) {
	reply, err := f.node.Swap.Inspect(ctx, &agentv1.InspectRequest{})
	if err != nil {
		return nil, err
	}
	t := f.find(reply.GetTransactions())
	switch {
	case t == nil && f.id == "":
		f.begun = false
		return nil, errors.New("the connection broke before the node began to replace anything: push again")
	case t == nil:
		return nil, f.collected()
	case t.GetOutcome() != nil:
		return t.GetOutcome(), nil
	}
	return f.resumeUnfinished(ctx)
}

func (f *following) resumeUnfinished(ctx context.Context) (*agentv1.SwapOutcome, error) {
	stream, err := f.node.Swap.Resume(ctx, &agentv1.ResumeRequest{})
	var outcome *agentv1.SwapOutcome
	if err == nil {
		outcome, err = f.follow(stream)
	}
	if errors.Is(err, fault.ErrNotExist) { // the transaction has ended since the last look, or never began
		reply, err := f.node.Swap.Inspect(ctx, &agentv1.InspectRequest{})
		if err != nil {
			return nil, err
		}
		switch t := f.find(reply.GetTransactions()); {
		case t.GetOutcome() != nil:
			return t.GetOutcome(), nil
		case t != nil && t.GetHolder() == "": // the power was cut before the transaction's first record was on the disk
			return &agentv1.SwapOutcome{Result: agentv1.SwapResult_SWAP_RESULT_ROLLED_BACK,
				Message: "interrupted before it began"}, nil
		}
		return nil, f.collected()
	}
	return outcome, err
}

// find returns this push's transaction. It compares the ids or, if the connection broke
// before the id arrived, the holders.
func (f *following) find(transactions []*agentv1.Transaction) *agentv1.Transaction {
	for _, t := range transactions {
		if f.id != "" && t.GetId() == f.id || f.id == "" && t.GetHolder() == f.options.Holder {
			f.id = t.GetId()
			return t
		}
	}
	return nil
}

// accept records the outcome in the result. It returns a *RolledBackError unless the transaction
// was committed.
func (w *work) accept(ctx context.Context, files *staging, outcome *agentv1.SwapOutcome) error {
	for _, o := range outcome.GetComponents() {
		for _, c := range files.components {
			if c.spec.Name == o.GetName() && c.change.changes() {
				c.accept(o)
				c.result.cause = o.GetName() == outcome.GetFailedComponent()
			}
		}
	}
	if outcome.GetResult() != agentv1.SwapResult_SWAP_RESULT_COMMITTED {
		return &RolledBackError{Outcome: outcome}
	}
	w.result.Result = Changed
	if w.options.Healthy != nil {
		w.options.Healthy()
	}
	for _, c := range files.components {
		if !c.settled {
			c.result.Action, c.settled = c.change.action(), true
		}
	}
	for _, c := range files.components {
		if c.change.swaps() && !w.options.Strict { // with Strict, checkStagedVersions has found it before the swap
			_ = w.checkVersion(c.component) // reports an unexpected version as a warning
		}
	}
	return nil
}

// accept records the component's part of the outcome.
func (c *staged) accept(o *agentv1.ComponentOutcome) {
	c.settled = true
	c.result.Action = Action(word.Of(o.GetAction()))
	if c.result.Action == "" {
		c.result.Action = c.change.action()
	}
	c.result.Seconds.Down = o.GetDown().AsDuration().Seconds()
	c.result.Seconds.Healthy = o.GetHealthy().AsDuration().Seconds()
	c.result.LogLines = o.GetLogLines()
	if version := o.GetVersion(); version != "" {
		c.result.Version.After = version
	}
	if o.GetService() != nil {
		c.result.Service = serviceOf(o.GetService())
	}
	if o.GetMessage() != "" {
		c.addMessage(o.GetMessage())
	}
}

// collected returns the error for a transaction whose result the node no longer has.
func (f *following) collected() error {
	return fmt.Errorf("transaction %s has ended; its result was already collected by another swdt: see `swdt status`",
		f.id)
}
