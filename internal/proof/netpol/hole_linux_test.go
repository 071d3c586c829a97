package netpol_test

import (
	"net/netip"
	"syscall"
)

// digTCP makes a socket whose queue of connections is full, so that the kernel drops further attempts.
func (w *world) digTCP(at netip.AddrPort) {
	w.t.Helper()
	address := &syscall.SockaddrInet4{Port: int(at.Port()), Addr: at.Addr().As4()}
	open := func() int {
		fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC|syscall.SOCK_NONBLOCK, 0)
		if err != nil {
			w.t.Fatal(err)
		}
		w.t.Cleanup(func() { _ = syscall.Close(fd) })
		return fd
	}
	listener := open()
	if err := syscall.Bind(listener, address); err != nil {
		w.t.Fatal(err)
	}
	if err := syscall.Listen(listener, 0); err != nil {
		w.t.Fatal(err)
	}
	for range 4 {
		_ = syscall.Connect(open(), address) // is in progress
	}
}
