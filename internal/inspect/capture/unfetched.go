package capture

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	agentv1 "github.com/swdt-dev/swdt/api/agent/v1"
	"github.com/swdt-dev/swdt/internal/node"
	"github.com/swdt-dev/swdt/internal/wire/captureplan"
	"github.com/swdt-dev/swdt/internal/wire/fault"
	"github.com/swdt-dev/swdt/internal/wire/layout"
)

// KeepFor is the time for which a node keeps packets that no swdt has fetched.
const KeepFor = captureplan.KeepFor

// Unfetched is a capture whose packets are still on the node.
type Unfetched struct {
	ID    string
	Bytes int64
	Ended time.Time // when the capture's log was last written, by the node's clock
}

// NothingLeftError reports a node without packets to fetch.
type NothingLeftError struct{ ID string }

func (e *NothingLeftError) Error() string {
	which := "no capture's packets are"
	if e.ID != "" {
		which = "the packets of the capture " + e.ID + " are not"
	}
	return fmt.Sprintf("%s on the node; the node keeps packets for %s, but not beyond the next capture", which, KeepFor)
}

// FindUnfetched returns the capture with this ID whose packets the node still has. If id is empty, it
// returns the newest capture whose packets the node still has.
func FindUnfetched(ctx context.Context, n *node.Node, id string) (Unfetched, error) {
	all, err := allUnfetched(ctx, n)
	if err != nil {
		return Unfetched{}, err
	}
	if id != "" {
		all = slices.DeleteFunc(all, func(u Unfetched) bool { return u.ID != id })
	}
	if len(all) == 0 {
		return Unfetched{}, &NothingLeftError{id}
	}
	return all[len(all)-1], nil
}

// allUnfetched returns the captures that the node still has, the newest last.
func allUnfetched(ctx context.Context, n *node.Node) (all []Unfetched, err error) {
	reply, err := n.Files.List(ctx, &agentv1.ListFilesRequest{Path: layout.Captures})
	if err != nil && !errors.Is(err, fault.ErrNotExist) {
		return nil, fmt.Errorf("list the captures on the node: %w", err)
	}
	for _, file := range reply.GetEntries() {
		name := file.GetPath()[strings.LastIndexByte(file.GetPath(), '\\')+1:]
		id, isLog := strings.CutSuffix(name, ".etl")
		if isLog && strings.EqualFold(file.GetPath(), captureplan.LogFile(id)) && !strings.Contains(id, ".") {
			all = append(all, Unfetched{ID: id, Bytes: file.GetSize(), Ended: file.GetModified().AsTime()})
		}
	}
	slices.SortFunc(all, func(a, b Unfetched) int { return cmp.Or(a.Ended.Compare(b.Ended), strings.Compare(a.ID, b.ID)) })
	return all, nil
}

// Reserve keeps the packets on the node for the caller: until release is called, neither the next
// capture nor the node's clean-up removes the packets.
func (u Unfetched) Reserve(ctx context.Context, n *node.Node) (result Result, release context.CancelFunc, err error) {
	dialect, err := Learn(ctx, n.Processes)
	if err != nil {
		return Result{}, nil, err
	}
	ctx, release = context.WithCancel(ctx)
	stream, err := n.Capture.Run(ctx)
	if err == nil {
		var data []byte
		if data, err = json.Marshal(captureplan.Plan{ID: u.ID, Fetch: true}); err == nil {
			err = stream.Send(&agentv1.PipeRequest{Data: data})
		}
	}
	if err == nil || errors.Is(err, io.EOF) {
		_, err = stream.Recv()
	}
	if err != nil {
		release()
		return Result{}, nil, err
	}
	return Result{ID: u.ID, Exportable: dialect.ToPcap != "", dialect: dialect, Reason: "fetched later"}, release, nil
}
