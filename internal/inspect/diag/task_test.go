package diag

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/grpc"

	agentv1 "github.com/swdt-dev/swdt/api/agent/v1"
	"github.com/swdt-dev/swdt/internal/format/redact"
	"github.com/swdt-dev/swdt/internal/node"
	"github.com/swdt-dev/swdt/internal/wire/fault"
)

// visiting returns a visit of a node that stores its results in a folder of the test.
func visiting(t *testing.T, n *node.Node) *visit {
	t.Helper()
	redactor, err := redact.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	f := &folder{root: t.TempDir(), name: "nodes/n", redactor: redactor, taken: map[string]bool{}}
	return &visit{node: n, folder: f, reading: make(chan struct{}, readers)}
}

// A missing object is no failure, but another error joined with it is.
func TestAFailureBesideWhatIsAbsent(t *testing.T) {
	gone, broken := fmt.Errorf(`read C:\x: %w`, fault.ErrNotExist), errors.New("the disk is broken")
	for want, errs := range map[string][]error{
		Done: {nil, errors.Join(nil, nil)}, Absent: {gone, errors.Join(gone, nil, fault.ErrNoService),
			errors.Join(errors.Join(gone))},
		Failed: {broken, errors.Join(gone, broken), errors.Join(errors.Join(gone, nil), errors.Join(broken))},
	} {
		for _, err := range errs {
			collector := Collector{Name: "c", Collect: func(context.Context, *Task) error { return err }}
			records, _ := visiting(t, nil).collect(t.Context(), []Collector{collector})
			if got := records[0].Result; got != want {
				t.Errorf("%v: %s, want %s", err, got, want)
			}
		}
	}
}

// someServices is a node's service manager that denies access to one of its services.
type someServices struct{ agentv1.ServicesClient }

func (someServices) List(context.Context, *agentv1.ListServicesRequest,
	...grpc.CallOption) (*agentv1.ListServicesReply, error) {
	return &agentv1.ListServicesReply{Services: []*agentv1.ServiceStatus{
		{Name: "WinDefend", State: agentv1.ServiceState_SERVICE_STATE_RUNNING},
		{Name: "kubelet", State: agentv1.ServiceState_SERVICE_STATE_RUNNING}}}, nil
}

func (someServices) Get(_ context.Context, r *agentv1.GetServiceRequest, _ ...grpc.CallOption) (*agentv1.ServiceReply,
	error) {
	if r.GetName() == "WinDefend" {
		return nil, fault.ErrPermission
	}
	return &agentv1.ServiceReply{Config: &agentv1.ServiceConfig{CommandLine: `C:\k\kubelet.exe`}}, nil
}

// A service whose configuration cannot be read does not hide the others.
func TestServicesAreListedIfSomeCannotBeQueried(t *testing.T) {
	v := visiting(t, &node.Node{Services: someServices{}})
	records, _ := v.collect(t.Context(), []Collector{{Name: "services", Collect: services}})
	switch r := records[0]; {
	case r.Result != Failed:
		t.Errorf("r.Result = %v, want %v", r.Result, Failed)
	case !strings.Contains(r.Error, "WinDefend"):
		t.Errorf("r.Error lacks %q:\n%s", "WinDefend", r.Error)
	case len(r.Tables) != 1:
		t.Errorf("len(r.Tables) = %v, want 1; %+v", len(r.Tables), r)
	}
	table, err := os.ReadFile(filepath.Join(v.folder.root, "nodes/n/tables/services.txt"))
	switch {
	case err != nil:
		t.Errorf("unexpected error: %v", err)
	case !strings.Contains(string(table), `C:\k\kubelet.exe`):
		t.Errorf("string(table) lacks %q:\n%s", `C:\k\kubelet.exe`, string(table))
	case !strings.Contains(string(table), "WinDefend"):
		t.Errorf("string(table) lacks %q:\n%s; %v\n%s", "WinDefend", string(table), err, table)
	}
}

// long is a file of this number of bytes that arrives in pieces.
type long struct {
	agentv1.FilesClient
	bytes, piece int
}

type pieces struct {
	grpc.ServerStreamingClient[agentv1.ReadReply]
	of *long
}

func (l *long) Read(context.Context, *agentv1.ReadRequest,
	...grpc.CallOption) (grpc.ServerStreamingClient[agentv1.ReadReply], error) {
	return &pieces{of: l}, nil
}

func (p *pieces) Recv() (*agentv1.ReadReply, error) {
	n := min(p.of.bytes, p.of.piece)
	if p.of.bytes -= n; n == 0 {
		return nil, io.EOF
	}
	return &agentv1.ReadReply{Data: []byte(strings.Repeat("x", n))}, nil
}

// The missing part of a file is reported, wherever its pieces end.
func TestTruncatedFileIsMarked(t *testing.T) {
	const most = 1000
	for _, c := range []struct {
		bytes  int
		offset int64
		want   string
	}{
		{most - 1, 0, ""}, {most, 0, ""}, {most + 1, 0, "what follows"}, {5 * most, 0, "what follows"},
		{5 * most, 7, "the first 7 B and the line that they end in, and what follows"},
	} {
		for _, piece := range []int{1, 10, most, most + 1, 10 * most} {
			v := visiting(t, &node.Node{Files: &long{bytes: c.bytes, piece: piece}})
			records, _ := v.collect(t.Context(),
				[]Collector{{Name: "file", Collect: func(ctx context.Context, task *Task) error {
					return task.read(ctx, FileRecord{Path: "x", From: "x"}, "x", c.offset, most)
				}}})
			switch f := records[0].Files; {
			case len(f) != 1:
				t.Errorf("len(f) = %v, want 1: %+v", len(f), f)
			case f[0].Cut != c.want:
				t.Errorf("f[0].Cut = %v, want %v", f[0].Cut, c.want)
			case f[0].Bytes != int64(min(c.bytes, most)):
				t.Errorf("f[0].Bytes is wrong; %d bytes in pieces of %d, from %d: %+v, want %q", c.bytes, piece,
					c.offset, f, c.want)
			}
		}
	}
}
