package hcs

import (
	"context"
	"errors"
	"net/http"
	"net/url"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/remotecommand"
	utilexec "k8s.io/client-go/util/exec"
	runtimev1 "k8s.io/cri-api/pkg/apis/runtime/v1"
	"k8s.io/klog/v2"

	agentv1 "github.com/swdt-dev/swdt/api/agent/v1"
	"github.com/swdt-dev/swdt/internal/node/command"
	"github.com/swdt-dev/swdt/internal/node/criproxy/streaming"
)

// Interact runs a command in the container with the streams, whose output arrives at once, and returns its
// exit code. size is the first size of the command's terminal; nil: the command has no terminal. With a
// terminal, all output is stdout. Interact may return before a read of s.Stdin does.
func (i Inside) Interact(ctx context.Context, args []string, size *agentv1.TerminalSize, s command.Streams) (int,
	error) {
	if i.Way == ByTool {
		return command.Run(ctx, i.Processes, &agentv1.RunCommand{Path: hcsdiag,
			Args: append([]string{"exec", i.ID}, args...), Terminal: size}, s)
	}
	reply, err := i.Runtime.Exec(ctx, &runtimev1.ExecRequest{ContainerId: i.ID, Cmd: args, Tty: size != nil,
		Stdin: s.Stdin != nil, Stdout: true, Stderr: size == nil})
	if err != nil {
		return 0, refused(ctx, args[0], i.ID, err)
	}
	relay := streaming.New(ctx, i.Dial)
	defer relay.Close()
	address, err := relay.Replace(reply.GetUrl())
	if err != nil {
		return 0, refused(ctx, args[0], i.ID, err)
	}
	err = stream(ctx, address, size, s)
	var exit utilexec.CodeExitError
	switch {
	case err == nil:
		return 0, nil
	case errors.As(err, &exit):
		return exit.Code, nil
	}
	return 0, refused(ctx, args[0], i.ID, err)
}

// stream connects the streams with the runtime's streaming server, until the command has ended.
func stream(ctx context.Context, address string, size *agentv1.TerminalSize, s command.Streams) error {
	u, err := url.Parse(address)
	if err != nil {
		return err
	}
	direct := func(*http.Request) (*url.URL, error) { return nil, nil } // no proxy leads to the relay
	executor, err := remotecommand.NewSPDYExecutor(&rest.Config{Proxy: direct}, http.MethodPost, u)
	if err != nil {
		return err
	}
	o := remotecommand.StreamOptions{Stdin: s.Stdin, Stdout: s.Stdout, Stderr: s.Stderr, Tty: size != nil}
	if size != nil {
		o.Stderr = nil
		o.TerminalSizeQueue = &sizes{ctx: ctx, first: size, further: s.Resized}
	}
	silent := klog.NewContext(ctx, klog.New(nil)) // client-go would log the end of a stream to stderr
	return executor.StreamWithContext(silent, o)
}

// sizes are the sizes of a terminal, as client-go takes them.
type sizes struct {
	ctx     context.Context
	first   *agentv1.TerminalSize
	further <-chan *agentv1.TerminalSize
}

// Next implements remotecommand.TerminalSizeQueue.
func (s *sizes) Next() *remotecommand.TerminalSize {
	size := s.first
	s.first = nil
	if size == nil {
		select {
		case size = <-s.further:
		case <-s.ctx.Done():
			return nil
		}
	}
	return &remotecommand.TerminalSize{Width: uint16(size.GetColumns()), Height: uint16(size.GetRows())}
}
