package windows

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"

	"github.com/Microsoft/go-winio"
	"golang.org/x/sys/windows"

	"github.com/swdt-dev/swdt/internal/wire/fault"
)

// bodyLimit is how much of a response's body is kept, in bytes. The metrics of kube-proxy 1.36 have 94 kB.
const bodyLimit = 1 << 20

// network examines the network from this machine.
type network struct{}

// HTTPGet writes the request and reads the response on its own connection. An
// http.Client, or even http.Request.Write, would add TLS and tables for
// international names: megabytes that nothing else in the agent needs. So the
// URL must be plain http.
func (network) HTTPGet(ctx context.Context, rawURL string) (int, []byte, error) {
	u, err := url.Parse(rawURL)
	if err != nil {
		return 0, nil, fmt.Errorf("get %s: %w", rawURL, err)
	}
	if u.Scheme != "http" {
		return 0, nil, fmt.Errorf("get %s: only http is supported: %w", rawURL, fault.ErrNotSupported)
	}
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", address(u))
	if err != nil {
		return 0, nil, failed(err, "connect to %s", u.Host)
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	status, body, err := exchange(conn, u)
	if ctx.Err() != nil {
		err = ctx.Err()
	}
	return status, body, failed(err, "get %s", rawURL)
}

func address(u *url.URL) string {
	if u.Port() == "" {
		return net.JoinHostPort(u.Hostname(), "80")
	}
	return u.Host
}

func exchange(conn net.Conn, u *url.URL) (int, []byte, error) {
	_, err := fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: %s\r\nUser-Agent: swdt-agent\r\nConnection: close\r\n\r\n",
		u.RequestURI(), u.Host)
	if err != nil {
		return 0, nil, err
	}
	response, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		return 0, nil, err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, bodyLimit))
	return response.StatusCode, body, err
}

func (network) DialPipe(ctx context.Context, path string) (net.Conn, error) {
	conn, err := winio.DialPipeContext(ctx, path)
	if err != nil {
		return nil, failed(err, "connect to pipe %s", path)
	}
	return pipeClient{conn}, nil
}

// pipeClient is this end of a named pipe.
type pipeClient struct{ net.Conn }

// ServerPID returns the process that made the pipe's other end, as the pipe reports it: any process can use a name.
func (c pipeClient) ServerPID() (pid uint32, err error) {
	const what = "find the process that serves a pipe"
	file, ok := c.Conn.(interface{ Fd() uintptr })
	if !ok {
		return 0, fmt.Errorf("%s: %w", what, fault.ErrNotSupported)
	}
	if err := windows.GetNamedPipeServerProcessId(windows.Handle(file.Fd()), &pid); err != nil {
		return 0, failed(err, what)
	}
	return pid, nil
}
