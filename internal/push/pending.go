package push

import (
	"context"
	"fmt"

	agentv1 "github.com/swdt-dev/swdt/api/agent/v1"
	"github.com/swdt-dev/swdt/internal/ui"
	"github.com/swdt-dev/swdt/internal/wire/word"
)

// settlePending looks for a transaction that an earlier, interrupted command left. It follows
// that transaction to its end and reports the outcome, before the push begins its own
// transaction. It returns the node as it is afterwards.
func (w *work) settlePending(ctx context.Context, now view) (view, error) {
	resumed := false
	for _, t := range now.transactions {
		outcome := t.GetOutcome()
		if outcome == nil && w.options.DryRun {
			w.reporter.Warn("transaction %s of %s is unfinished (%s); a push would finish it first", t.GetId(),
				t.GetHolder(), ui.Words(word.Of(t.GetState())))
			w.result.Recovered = append(w.result.Recovered, recoveredFrom(t, nil))
			continue
		}
		if outcome == nil {
			var err error
			if outcome, err = w.finishPending(ctx, t); err != nil {
				return view{}, err
			}
			resumed = true
		}
		w.reportRecovered(recoveredFrom(t, outcome))
		if !w.options.DryRun && !w.keeps(t.GetHolder()) {
			w.acknowledge(ctx, t.GetId())
		}
	}
	if !resumed {
		return now, nil
	}
	return w.inspect(ctx)
}

func (w *work) reportRecovered(r Recovered) {
	w.result.Recovered = append(w.result.Recovered, r)
	text := fmt.Sprintf("an earlier push (%s, by %s, begun %s) ended as %s", r.ID, r.Holder,
		r.Begun.Local().Format("2006-01-02 15:04:05"), ui.Words(r.Result))
	if r.Message != "" {
		text += ": " + r.Message
	}
	w.reporter.Warn("%s", text)
}

// finishPending follows an unfinished transaction. If the swdt that began it is still
// connected, the transaction belongs to that swdt, which holds the node's lock: finishPending
// then returns the error of taking the lock.
func (w *work) finishPending(ctx context.Context, t *agentv1.Transaction) (*agentv1.SwapOutcome, error) {
	if err := w.lock(ctx); err != nil {
		return nil, err
	}
	w.reporter.Warn("transaction %s of %s is unfinished (%s); finishing it first", t.GetId(), t.GetHolder(),
		ui.Words(word.Of(t.GetState())))
	f := &following{work: w, id: t.GetId(), begun: true}
	outcome, err := f.resumeUnfinished(ctx)
	if lost(err) {
		outcome, err = f.rejoin(ctx, err)
		if err == nil {
			err = w.lockAgain(ctx)
		}
	}
	switch {
	case cutShort(ctx, err):
		return nil, &InterruptedError{Err: context.Cause(ctx)}
	case err != nil:
		return nil, fmt.Errorf("finish transaction %s of %s: %w", t.GetId(), t.GetHolder(), err)
	}
	return outcome, nil
}
