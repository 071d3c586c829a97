package criclient_test

import (
	"context"
	"net"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/swdt-dev/swdt/internal/criclient"
	"github.com/swdt-dev/swdt/internal/host"
	"github.com/swdt-dev/swdt/internal/redact"
	"github.com/swdt-dev/swdt/internal/rpcerror"
)

func TestARuntimeThatIsNotThere(t *testing.T) {
	missing := rpcerror.FromStatus(rpcerror.ToStatus(host.ErrNotExist))
	c, err := criclient.New(t.Context(), func(context.Context) (net.Conn, error) { return nil, missing })
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_, err = criclient.Version(t.Context(), c)
	if status.Code(err) != codes.Unavailable || !strings.Contains(err.Error(), host.ErrNotExist.Error()) || strings.Contains(err.Error(), "rpc error") {
		t.Errorf("%v: %v", status.Code(err), err)
	}
}

// What a caller wants of the node is wanted of every way to its runtime, though
// grpc dials with a context of its own.
func TestWhatIsAskedOfTheNodeIsAskedWithEachDial(t *testing.T) {
	var dialled metadata.MD
	ctx := metadata.AppendToOutgoingContext(t.Context(), redact.Metadata, "1")
	c, err := criclient.New(ctx, func(ctx context.Context) (net.Conn, error) {
		dialled, _ = metadata.FromOutgoingContext(ctx)
		return nil, host.ErrNotExist
	})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := criclient.Version(t.Context(), c); err == nil {
		t.Error("a runtime answers that is not there")
	}
	if got := dialled.Get(redact.Metadata); len(got) != 1 || got[0] != "1" {
		t.Errorf("dialled with %v", dialled)
	}
}
