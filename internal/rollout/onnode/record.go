package onnode

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"

	fleetv1 "github.com/swdt-dev/swdt/api/fleet/v1alpha1"
	"github.com/swdt-dev/swdt/internal/node/smallfile"
	"github.com/swdt-dev/swdt/internal/push"
	"github.com/swdt-dev/swdt/internal/rollout"
	"github.com/swdt-dev/swdt/internal/wire/fault"
	"github.com/swdt-dev/swdt/internal/wire/layout"
)

// record lists what a content has replaced on the node, or was about to replace: an order to roll back restores no
// more. It also keeps what a later attempt must know of the order.
type record struct {
	Hash     string        `json:"hash"` // of the content
	Replaced []push.Former `json:"replaced"`
	// Content is the whole SHA-256 of the content; "": a program that did not confirm orders has written the record.
	Content string `json:"content,omitempty"`
	// Begun is the holder of the confirmed order for this content that the node has begun; "": none, or its end was
	// reported.
	Begun string `json:"begun,omitempty"`
	// Judged reports that a verdict about the node followed its last change to this content.
	Judged bool `json:"judged,omitempty"`
}

// mostRecords limits the records that the node keeps. Those of earlier contents count if a content is applied again,
// for example after another one that did not work.
const mostRecords = 16

// of returns what the content has replaced of a component; zero: nothing, or there is no record.
func (r *record) of(name string) push.Former {
	if r != nil {
		for _, f := range r.Replaced {
			if f.Name == name {
				return f
			}
		}
	}
	return push.Former{Name: name}
}

// loadRecords returns the node's records, the newest first.
func (w *order) loadRecords(ctx context.Context) ([]record, error) {
	text, err := smallfile.Read(ctx, w.node, layout.RolloutRecord)
	if errors.Is(err, fault.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var records []record
	if err := json.Unmarshal(text, &records); err != nil {
		return nil, fmt.Errorf("read the records of rollouts: %s is damaged: %w; remove the file",
			layout.RolloutRecord, err)
	}
	return records, nil
}

// ownRecord returns the record of the order's content; nil if the node has none.
func (w *order) ownRecord(ctx context.Context) (*record, error) {
	records, err := w.loadRecords(ctx)
	if err != nil {
		return nil, err
	}
	if i := slices.IndexFunc(records, w.isOwn); i >= 0 {
		return &records[i], nil
	}
	return nil, nil
}

func (w *order) isOwn(r record) bool {
	return r.Hash == w.state.Spec.Hash && (r.Content == "" || r.Content == rollout.SumOf(w.state.Spec.Content))
}

// begin records that the node begins the order, which is confirmed: a later attempt goes on with it, although the
// NodeRollout may have changed. A rollback without a record gets none, since it would say that nothing was replaced.
func (w *order) begin(ctx context.Context) error {
	return w.changeRecords(ctx, func(records []record) []record {
		for i := range records {
			records[i].Begun = ""
		}
		return w.own(records, w.state.Spec.Action == fleetv1.ActionApply, func(r *record) { r.Begun = w.holder() })
	})
}

// save records what the order is about to replace. An attempt that has nothing to replace keeps what an earlier
// attempt has recorded, which may have replaced something.
func (w *order) save(ctx context.Context, changing []push.Former) error {
	if len(changing) == 0 {
		return nil // begin has made the record
	}
	return w.changeRecords(ctx, func(records []record) []record {
		return w.own(records, true, func(r *record) { r.Replaced, r.Judged = changing, false })
	})
}

// clear records that the node has gone back, so that nothing is left to restore.
func (w *order) clear(ctx context.Context) error {
	return w.changeRecords(ctx, func(records []record) []record {
		return w.own(records, true, func(r *record) { r.Replaced = nil })
	})
}

// conclude records that the end of the order was reported, and whether there is a verdict.
func (w *order) conclude(ctx context.Context) error {
	return w.changeRecords(ctx, func(records []record) []record {
		return w.own(records, false, func(r *record) {
			r.Begun, r.Judged = "", r.Judged || w.state.Spec.Verdict != ""
		})
	})
}

// own changes the order's own record, and puts it first. If there is none, it is made, unless create is false.
func (w *order) own(records []record, create bool, change func(*record)) []record {
	own := record{Hash: w.state.Spec.Hash}
	i := slices.IndexFunc(records, w.isOwn)
	switch {
	case i >= 0:
		own = records[i]
		records = slices.Delete(records, i, i+1)
	case !create:
		return records
	}
	own.Content = rollout.SumOf(w.state.Spec.Content)
	change(&own)
	return slices.Insert(records, 0, own)
}

// changeRecords writes the records, if they change.
func (w *order) changeRecords(ctx context.Context, change func([]record) []record) error {
	before, err := w.loadRecords(ctx)
	if err != nil {
		return err
	}
	records := change(slices.Clone(before))
	if reflect.DeepEqual(before, records) {
		return nil
	}
	text, err := json.Marshal(records[:min(len(records), mostRecords)])
	if err != nil {
		return fmt.Errorf("record what the rollout replaces: %w", err)
	}
	return smallfile.Replace(ctx, w.node, layout.RolloutRecord, text, "")
}
