//go:build windows

// Package pipe makes named pipes that work under Wine too.
//
// Windows connects no client to the first instance of a go-winio pipe. Wine 8 does,
// and the server never sees that client. So the program that makes a pipe with this
// package, or uses a pipe of a server that does not handle this, connects once as that
// client, and keeps the connection as long as the other one.
package pipe

import (
	"context"
	"net"

	"github.com/Microsoft/go-winio"
	"golang.org/x/sys/windows"
)

// Listen makes a pipe whose server sees all clients.
func Listen(path string) (net.Listener, error) {
	listener, err := winio.ListenPipe(path, nil)
	if err != nil {
		return nil, err
	}
	return &primed{listener, open(path)}, nil
}

type primed struct {
	net.Listener
	first windows.Handle
}

func (l *primed) Close() error {
	closeHandle(l.first)
	return l.Listener.Close()
}

// Dial connects to a pipe that serves one client, made by a server that does not
// handle this.
func Dial(ctx context.Context, path string) (net.Conn, error) {
	first := open(path)
	conn, err := winio.DialPipeContext(ctx, path)
	if err != nil {
		closeHandle(first)
		return nil, err
	}
	return &second{conn, first}, nil
}

type second struct {
	net.Conn
	first windows.Handle
}

func (c *second) Close() error {
	err := c.Conn.Close()
	closeHandle(c.first)
	return err
}

// open connects as the lost client. It returns windows.InvalidHandle if there is none:
// on Windows every instance is busy before its server waits for a client.
func open(path string) windows.Handle {
	name, err := windows.UTF16PtrFromString(path)
	if err != nil {
		return windows.InvalidHandle
	}
	handle, err := windows.CreateFile(name, windows.GENERIC_READ|windows.GENERIC_WRITE, 0, nil, windows.OPEN_EXISTING,
		windows.FILE_FLAG_OVERLAPPED, 0)
	if err != nil {
		return windows.InvalidHandle
	}
	return handle
}

func closeHandle(handle windows.Handle) {
	if handle != windows.InvalidHandle {
		_ = windows.CloseHandle(handle)
	}
}
