package simulated

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"syscall"

	"github.com/swdt-dev/swdt/internal/host"
)

// DialFunc connects to an address (192.0.2.1:6443) outside of the machine.
type DialFunc func(ctx context.Context, address string) (net.Conn, error)

// DialLoopback reaches what listens on the loopback interface of the computer
// that runs the simulation, and nothing else: it never leaves that computer.
func DialLoopback(ctx context.Context, address string) (net.Conn, error) {
	at, err := netip.ParseAddrPort(address)
	if err != nil || !at.Addr().IsLoopback() {
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ENETUNREACH}
	}
	var d net.Dialer
	return d.DialContext(ctx, "tcp", address)
}

// SetName gives a name addresses in the DNS that the machine asks; none: the
// name is forgotten. The machine's hosts file comes first.
func (m *Machine) SetName(name string, addresses ...string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(addresses) == 0 {
		delete(m.names, fold(name))
		return
	}
	m.names[fold(name)] = addresses
}

// lookup resolves a name as Windows does: an address is itself, then the hosts
// file, then DNS. A name that is not found is a *net.DNSError.
func (m *Machine) lookup(name string) ([]string, error) {
	if _, err := netip.ParseAddr(name); err == nil {
		return []string{name}, nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if addresses := m.inHostsFile(name); len(addresses) > 0 {
		return addresses, nil
	}
	switch fold(name) {
	case "localhost", fold(m.options.Hostname):
		return []string{"127.0.0.1"}, nil
	}
	if addresses := m.names[fold(name)]; len(addresses) > 0 {
		return append([]string(nil), addresses...), nil
	}
	return nil, &net.DNSError{Err: "no such host", Name: name, IsNotFound: true}
}

// inHostsFile is called with the lock held.
func (m *Machine) inHostsFile(name string) (addresses []string) {
	f, err := m.disk.find(HostsFile, true)
	if err != nil || f.folder {
		return nil
	}
	text := make([]byte, f.content.size)
	_, _ = f.content.reader().ReadAt(text, 0)
	for line := range strings.Lines(string(text)) {
		line, _, _ = strings.Cut(line, "#")
		fields := strings.Fields(line)
		for _, alias := range fields[min(1, len(fields)):] {
			if strings.EqualFold(alias, name) {
				addresses = append(addresses, fields[0])
			}
		}
	}
	return addresses
}

// connect opens a TCP connection to host:port as the machine resolves it. The
// connection ends with the process.
func (p *process) connect(ctx context.Context, address string) (net.Conn, error) {
	if err := p.checkContext(ctx); err != nil {
		return nil, err
	}
	name, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, fmt.Errorf("connect to %s: %w", address, err)
	}
	addresses, err := p.m.lookup(name)
	if err != nil {
		return nil, fmt.Errorf("connect to %s: %w", address, err)
	}
	dial := p.m.options.Dial
	if dial == nil {
		return nil, fmt.Errorf("connect to %s: %w", address, syscall.ECONNREFUSED)
	}
	var failed error
	for _, one := range addresses {
		conn, err := dial(ctx, net.JoinHostPort(one, port))
		if err == nil {
			return endsWith(conn, p), nil
		}
		failed = errors.Join(failed, err)
	}
	return nil, fmt.Errorf("connect to %s: %w", address, failed)
}

// readText reads a whole file as a process sees it.
func (p *Process) readText(path string) ([]byte, error) {
	m := p.p.m
	m.mu.Lock()
	defer m.mu.Unlock()
	f, err := m.disk.find(path, true)
	if err != nil {
		return nil, err
	}
	if f.folder {
		return nil, fmt.Errorf("read %s: %w", path, host.ErrIsDirectory)
	}
	text := make([]byte, f.content.size)
	_, _ = f.content.reader().ReadAt(text, 0)
	return text, nil
}
