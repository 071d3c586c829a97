//go:build windows

// Package pipe makes named pipes that work under Wine too.
//
// Windows connects no client to the first instance of a go-winio pipe. Wine 8 connects the
// first client to that instance, and the server never sees this client. So Listen itself
// connects as the first client. Dial does so for a pipe whose server does not use Listen.
// The extra connection stays open until the listener or the connection is closed.
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

// Dial connects to a pipe that serves one client and whose server does not use Listen.
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

// open connects as the first client, which the server never sees. It returns
// windows.InvalidHandle if it cannot connect: on Windows every instance is busy until its
// server waits for a client.
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
