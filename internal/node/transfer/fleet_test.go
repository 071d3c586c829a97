package transfer_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/durationpb"

	agentv1 "github.com/swdt-dev/swdt/api/agent/v1"
	"github.com/swdt-dev/swdt/internal/node"
	"github.com/swdt-dev/swdt/internal/node/transfer"
	"github.com/swdt-dev/swdt/internal/ui"
)

const (
	fleetRate  = 10e6 // bytes per second of each node's link
	fleetTrip  = 5 * time.Millisecond
	fleetApply = 250 * time.Millisecond // the time in which a node applies a patch
)

// farNode accepts patches with the delay of a node behind its own link.
type farNode struct{ agentv1.FilesClient }

func (farNode) Patch(context.Context,
	...grpc.CallOption) (grpc.ClientStreamingClient[agentv1.PatchRequest, agentv1.PatchReply], error) {
	return &farPatch{}, nil
}

type farPatch struct {
	grpc.ClientStream
	header *agentv1.PatchHeader
}

func (p *farPatch) Send(r *agentv1.PatchRequest) error {
	if p.header == nil {
		p.header = r.GetHeader()
	}
	time.Sleep(time.Duration(float64(len(r.GetData())) / fleetRate * float64(time.Second)))
	return nil
}

func (p *farPatch) CloseAndRecv() (*agentv1.PatchReply, error) {
	time.Sleep(fleetTrip + fleetApply)
	return &agentv1.PatchReply{
		Size: p.header.GetSize(), Sha256: p.header.GetSha256(), Applying: durationpb.New(fleetApply),
	}, nil
}

// One comparison serves all nodes, and no node waits for another's link or disk. In the fake time
// of a bubble, in which comparing takes no time, twenty nodes take as long as one.
func TestTwentyNodesTakeAsLongAsOne(t *testing.T) {
	old := content(3<<20, 1)
	file := local(t, rebuilt(old))
	file.Absent, file.Bases = true, []transfer.Base{{Path: live, SHA256: hashOf(old), Size: int64(len(old))}}
	one, _ := pushToMany(t, 1, file, old)
	many, diffs := pushToMany(t, 20, file, old)
	t.Logf("one node takes %s, twenty %s", one, many)
	if one < fleetApply || many > one*3/2 {
		t.Errorf("one node takes %s, twenty %s", one, many)
	}
	if diffs != 1 {
		t.Errorf("%d diffs", diffs)
	}
}

func pushToMany(t *testing.T, count int, file transfer.File, old []byte) (took time.Duration, diffs int) {
	synctest.Test(t, func(t *testing.T) {
		d, _ := depot(t, old)
		file.Depot = d
		begun := time.Now()
		var all sync.WaitGroup
		for range count {
			n := &node.Node{Name: "w", Files: farNode{}}
			n.Speed.Note(node.Reading{RoundTrip: fleetTrip, BytesPerSecond: fleetRate, At: begun})
			all.Go(func() {
				result, err := transfer.Send(t.Context(), n, file, destination, ui.Discard{})
				switch {
				case err != nil:
					t.Error(err)
				case result.Method != transfer.MethodDelta:
					t.Errorf("result.Method is %v, want %v", result.Method, transfer.MethodDelta)
				}
			})
		}
		all.Wait()
		took, diffs = time.Since(begun), d.Diffs()
	})
	return took, diffs
}
