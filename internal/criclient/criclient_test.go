package criclient_test

import (
	"context"
	"net"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/swdt-dev/swdt/internal/criclient"
	"github.com/swdt-dev/swdt/internal/host"
	"github.com/swdt-dev/swdt/internal/rpcerror"
)

func TestARuntimeThatIsNotThere(t *testing.T) {
	missing := rpcerror.FromStatus(rpcerror.ToStatus(host.ErrNotExist))
	c, err := criclient.New(func(context.Context) (net.Conn, error) { return nil, missing })
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_, err = criclient.Version(t.Context(), c)
	if status.Code(err) != codes.Unavailable || !strings.Contains(err.Error(), host.ErrNotExist.Error()) || strings.Contains(err.Error(), "rpc error") {
		t.Errorf("%v: %v", status.Code(err), err)
	}
}
