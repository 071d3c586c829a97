// Package streamingtest serves the streams of a container runtime for tests: the streaming server that
// containerd and CRI-O have, in front of programs that are written in Go.
package streamingtest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"testing"
	"time"

	runtimev1 "k8s.io/cri-api/pkg/apis/runtime/v1"
	"k8s.io/cri-streaming/pkg/streaming"
	"k8s.io/cri-streaming/pkg/streaming/remotecommand"
	"k8s.io/utils/exec"
)

// Missing is the error of a program that the containers do not have.
const Missing = "the system cannot find the file specified"

// Runtime is the part of a runtime that answers with the URLs of its streaming server. Other calls fail.
type Runtime struct {
	runtimev1.UnimplementedRuntimeServiceServer
	Server streaming.Server
}

// Start starts a streaming server on loopback until the end of the test.
func Start(t testing.TB) *Runtime {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	config := streaming.DefaultConfig
	config.BaseURL = &url.URL{Scheme: "http", Host: listener.Addr().String()}
	server, err := streaming.NewServer(config, containers{})
	if err != nil {
		t.Fatal(err)
	}
	web := &http.Server{Handler: server, ReadHeaderTimeout: time.Minute}
	go func() { _ = web.Serve(listener) }()
	t.Cleanup(func() { web.Close() })
	return &Runtime{Server: server}
}

// Exec implements the call of CRI.
func (r *Runtime) Exec(_ context.Context, q *runtimev1.ExecRequest) (*runtimev1.ExecResponse, error) {
	return r.Server.GetExec(q)
}

// Attach implements the call of CRI.
func (r *Runtime) Attach(_ context.Context, q *runtimev1.AttachRequest) (*runtimev1.AttachResponse, error) {
	return r.Server.GetAttach(q)
}

// PortForward implements the call of CRI.
func (r *Runtime) PortForward(_ context.Context, q *runtimev1.PortForwardRequest) (
	*runtimev1.PortForwardResponse, error) {
	return r.Server.GetPortForward(q)
}

// containers have the programs of Exec.
type containers struct{}

// Exec runs one of the programs: "copy" copies its stdin and prints the number of bytes on stderr, "greet" reads
// five bytes, "exit" ends with code 7, and "size" prints two sizes of its terminal.
func (containers) Exec(_ context.Context, _ string, cmd []string, in io.Reader, out, errs io.WriteCloser, _ bool,
	resize <-chan remotecommand.TerminalSize) error {
	switch cmd[0] {
	case "copy":
		n, err := io.Copy(out, in)
		if err == nil {
			_, err = fmt.Fprintf(errs, "%d bytes", n)
		}
		return err
	case "greet":
		name := make([]byte, 5)
		if _, err := io.ReadFull(in, name); err != nil {
			return err
		}
		_, err := fmt.Fprintf(out, "hello %s", name)
		return err
	case "exit":
		return exec.CodeExitError{Err: errors.New("exit code 7"), Code: 7}
	case "size":
		for range 2 {
			size := <-resize
			if _, err := fmt.Fprintf(out, "%dx%d ", size.Width, size.Height); err != nil {
				return err
			}
		}
		return nil
	}
	return errors.New(Missing)
}

// Attach prints the ID of the container.
func (containers) Attach(_ context.Context, id string, _ io.Reader, out, _ io.WriteCloser, _ bool,
	_ <-chan remotecommand.TerminalSize) error {
	_, err := io.WriteString(out, "attached to "+id)
	return err
}

// PortForward sends back what it receives.
func (containers) PortForward(_ context.Context, _ string, _ int32, stream io.ReadWriteCloser) error {
	_, err := io.Copy(stream, stream)
	return err
}
