package controlplane

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// ports are the TCP ports of a control plane. This process binds them, without listening, before
// the programs start and until they have ended; the programs bind them too (SO_REUSEPORT). So the
// kernel assigns none of the ports to another process in that time.
type ports struct {
	apiServer, etcd int
	sockets         []int
}

func reservePorts() (*ports, error) {
	p := &ports{}
	for _, port := range []*int{&p.apiServer, &p.etcd} {
		var err error
		if *port, err = p.reserve(); err != nil {
			p.release()
			return nil, fmt.Errorf("reserve a port on loopback: %w", err)
		}
	}
	return p, nil
}

func (p *ports) reserve() (int, error) {
	socket, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return 0, err
	}
	p.sockets = append(p.sockets, socket)
	if err := unix.SetsockoptInt(socket, unix.SOL_SOCKET, unix.SO_REUSEPORT, 1); err != nil {
		return 0, err
	}
	if err := unix.Bind(socket, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		return 0, err
	}
	address, err := unix.Getsockname(socket)
	if err != nil {
		return 0, err
	}
	bound, ok := address.(*unix.SockaddrInet4)
	if !ok {
		return 0, errors.New("not an IPv4 address")
	}
	return bound.Port, nil
}

// release unbinds the ports. It may be called more than once.
func (p *ports) release() {
	for _, socket := range p.sockets {
		_ = unix.Close(socket)
	}
	p.sockets = nil
}
