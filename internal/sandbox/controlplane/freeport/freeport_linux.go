// Package freeport reserves TCP ports of loopback for programs that are started afterwards.
package freeport

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// Reserved are TCP ports of 127.0.0.1. This process binds them, without listening, until Release. Programs
// can bind them too, if they set SO_REUSEPORT. So the kernel assigns none of the ports to another process in
// that time.
type Reserved struct {
	Numbers []int
	sockets []int
}

// Reserve reserves ports that are free.
func Reserve(count int) (*Reserved, error) {
	r := &Reserved{}
	for range count {
		if err := r.reserve(); err != nil {
			r.Release()
			return nil, fmt.Errorf("reserve a port on loopback: %w", err)
		}
	}
	return r, nil
}

func (r *Reserved) reserve() error {
	socket, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	r.sockets = append(r.sockets, socket)
	if err := unix.SetsockoptInt(socket, unix.SOL_SOCKET, unix.SO_REUSEPORT, 1); err != nil {
		return err
	}
	if err := unix.Bind(socket, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		return err
	}
	address, err := unix.Getsockname(socket)
	if err != nil {
		return err
	}
	bound, ok := address.(*unix.SockaddrInet4)
	if !ok {
		return errors.New("not an IPv4 address")
	}
	r.Numbers = append(r.Numbers, bound.Port)
	return nil
}

// Release unbinds the ports. It may be called more than once.
func (r *Reserved) Release() {
	for _, socket := range r.sockets {
		_ = unix.Close(socket)
	}
	r.sockets = nil
}
