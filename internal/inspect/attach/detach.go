package attach

import (
	"context"
	"errors"
	"io"
	"net/rpc"
	"net/rpc/jsonrpc"
)

// leaveProcess makes dlv leave its process, and closes the connection. dlv then ends. The calls are those of
// service/rpc2/server.go of Delve 1.27.2. A Detach of a running process did not return under Wine, so it is halted before;
// dlv does the same at its own end (service/rpccommon/server.go).
func leaveProcess(ctx context.Context, conn io.ReadWriteCloser) error {
	client := jsonrpc.NewClient(conn)
	defer client.Close()
	var now struct{ State *struct{ Running bool } }
	// The state of a process that has ended is an error; then there is nothing to halt.
	if err := call(ctx, client, "State", struct{ NonBlocking bool }{true}, &now); isFatal(err) {
		return err
	}
	if now.State != nil && now.State.Running {
		if err := call(ctx, client, "Command", struct {
			Name string `json:"name"`
		}{"halt"}, &now); isFatal(err) {
			return err
		}
	}
	return call(ctx, client, "Detach", struct{ Kill bool }{false}, &struct{}{})
}

// isFatal reports whether an error is not an answer of dlv.
func isFatal(err error) bool {
	var answer rpc.ServerError
	return err != nil && !errors.As(err, &answer)
}

// call makes one call. dlv may close the connection while it answers Detach: that is no error.
func call(ctx context.Context, client *rpc.Client, method string, in, out any) error {
	done := client.Go("RPCServer."+method, in, out, make(chan *rpc.Call, 1)).Done
	select {
	case answer := <-done:
		if method == "Detach" && (errors.Is(answer.Error, io.ErrUnexpectedEOF) || errors.Is(answer.Error, rpc.ErrShutdown)) {
			return nil
		}
		return answer.Error
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
