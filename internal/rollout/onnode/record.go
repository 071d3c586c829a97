package onnode

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/swdt-dev/swdt/internal/node/smallfile"
	"github.com/swdt-dev/swdt/internal/push"
	"github.com/swdt-dev/swdt/internal/wire/fault"
	"github.com/swdt-dev/swdt/internal/wire/layout"
)

// record lists what a content has replaced on the node, or was about to replace: an order to roll back restores no
// more.
type record struct {
	Hash     string        `json:"hash"` // of the content
	Replaced []push.Former `json:"replaced"`
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

// replaced returns the record of the order's content; nil if the node has none, since a program without records has
// applied the content.
func (w *order) replaced(ctx context.Context) (*record, error) {
	records, err := w.loadRecords(ctx)
	if err != nil {
		return nil, err
	}
	if i := slices.IndexFunc(records, w.isOwn); i >= 0 {
		return &records[i], nil
	}
	return nil, nil
}

func (w *order) isOwn(r record) bool { return r.Hash == w.state.Spec.Hash }

// save records what the order is about to replace. An attempt that has nothing to replace keeps the record of an
// earlier attempt, which may have replaced something.
func (w *order) save(ctx context.Context, changing []push.Former) error {
	records, err := w.loadRecords(ctx)
	if err != nil || len(changing) == 0 && slices.ContainsFunc(records, w.isOwn) {
		return err
	}
	return w.writeRecord(ctx, records, changing)
}

// clear records that the node has gone back, so that nothing is left to restore.
func (w *order) clear(ctx context.Context) error {
	records, err := w.loadRecords(ctx)
	if err != nil {
		return err
	}
	return w.writeRecord(ctx, records, nil)
}

// writeRecord puts a record of the order in place of an earlier one.
func (w *order) writeRecord(ctx context.Context, records []record, replaced []push.Former) error {
	records = slices.DeleteFunc(records, w.isOwn)
	records = slices.Insert(records, 0, record{Hash: w.state.Spec.Hash, Replaced: replaced})
	text, err := json.Marshal(records[:min(len(records), mostRecords)])
	if err != nil {
		return fmt.Errorf("record what the rollout replaces: %w", err)
	}
	return smallfile.Replace(ctx, w.node, layout.RolloutRecord, text, "")
}
