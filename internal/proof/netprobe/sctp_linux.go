package netprobe

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// SCTP sockets in the one-to-one style are used as those of TCP.

// listenSCTP listens for SCTP. The error is errors.ErrUnsupported if the kernel has no SCTP.
func listenSCTP(at netip.AddrPort) (net.Listener, error) {
	fd, address, err := openSCTP(at)
	if err != nil {
		return nil, err
	}
	if err := errors.Join(unix.Bind(fd, address), unix.Listen(fd, maxConnections)); err != nil {
		return nil, errors.Join(err, unix.Close(fd))
	}
	file := os.NewFile(uintptr(fd), "sctp")
	defer file.Close() // FileListener duplicates it
	return net.FileListener(file)
}

// dialSCTP connects by SCTP.
func dialSCTP(ctx context.Context, from, to netip.AddrPort) (net.Conn, error) {
	fd, source, err := openSCTP(from)
	if err != nil {
		return nil, err
	}
	target := socketAddress(to)
	err = unix.Bind(fd, source)
	if err == nil {
		err = unix.Connect(fd, target)
	}
	if errors.Is(err, unix.EINPROGRESS) {
		err = awaitConnection(ctx, fd)
	}
	if err != nil {
		return nil, errors.Join(err, unix.Close(fd))
	}
	file := os.NewFile(uintptr(fd), "sctp")
	defer file.Close() // FileConn duplicates it
	return net.FileConn(file)
}

// openSCTP opens a socket that does not block, for an address.
func openSCTP(at netip.AddrPort) (int, unix.Sockaddr, error) {
	family := unix.AF_INET6
	if at.Addr().Unmap().Is4() {
		family = unix.AF_INET
	}
	fd, err := unix.Socket(family, unix.SOCK_STREAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, unix.IPPROTO_SCTP)
	if errors.Is(err, unix.EPROTONOSUPPORT) || errors.Is(err, unix.ESOCKTNOSUPPORT) {
		return 0, nil, fmt.Errorf("the kernel has no SCTP: %w", errors.ErrUnsupported)
	}
	return fd, socketAddress(at), err
}

func socketAddress(at netip.AddrPort) unix.Sockaddr {
	if a := at.Addr().Unmap(); a.Is4() {
		return &unix.SockaddrInet4{Port: int(at.Port()), Addr: a.As4()}
	}
	return &unix.SockaddrInet6{Port: int(at.Port()), Addr: at.Addr().As16()}
}

// awaitConnection waits until a socket is connected, or its connection has failed.
func awaitConnection(ctx context.Context, fd int) error {
	for {
		limit := time.Second
		if at, ok := ctx.Deadline(); ok {
			limit = min(limit, time.Until(at))
		}
		if err := ctx.Err(); err != nil || limit <= 0 {
			return context.DeadlineExceeded
		}
		ready, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLOUT}}, int(limit.Milliseconds())+1)
		switch {
		case err != nil && !errors.Is(err, unix.EINTR):
			return err
		case ready > 0:
			code, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_ERROR)
			if err == nil && code != 0 {
				err = unix.Errno(code)
			}
			return err
		}
	}
}
