package criclient_test

import (
	"context"
	"net"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/swdt-dev/swdt/internal/format/redact"
	"github.com/swdt-dev/swdt/internal/node/criclient"
	"github.com/swdt-dev/swdt/internal/wire/fault"
	"github.com/swdt-dev/swdt/internal/wire/rpcerror"
)

func TestARuntimeThatIsNotThere(t *testing.T) {
	missing := rpcerror.FromStatus(rpcerror.ToStatus(fault.ErrNotExist))
	c, err := criclient.New(t.Context(), func(context.Context) (net.Conn, error) { return nil, missing })
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_, err = criclient.Version(t.Context(), c)
	switch {
	case status.Code(err) != codes.Unavailable:
		t.Errorf("%v: status.Code(err) is %v, want %v", status.Code(err), status.Code(err), codes.Unavailable)
	case !strings.Contains(err.Error(), fault.ErrNotExist.Error()):
		t.Errorf("%v: err.Error() lacks %q:\n%s", status.Code(err), fault.ErrNotExist.Error(), err.Error())
	case strings.Contains(err.Error(), "rpc error"):
		t.Errorf("%v: err.Error() contains %q:\n%s", status.Code(err), "rpc error", err.Error())
	}
}

// Every dial to the runtime carries the metadata of the caller's context, although grpc dials with
// a context of its own.
func TestEveryDialCarriesTheCallersMetadata(t *testing.T) {
	var dialled metadata.MD
	ctx := metadata.AppendToOutgoingContext(t.Context(), redact.Metadata, "1")
	c, err := criclient.New(ctx, func(ctx context.Context) (net.Conn, error) {
		dialled, _ = metadata.FromOutgoingContext(ctx)
		return nil, fault.ErrNotExist
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
