package vm

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"

	"github.com/swdt-dev/swdt/internal/config"
)

// NotRunningError reports a VM that does not run, although the command needs a VM that runs.
type NotRunningError struct {
	Name  string
	State State
}

func (e *NotRunningError) Error() string {
	return fmt.Sprintf("VM %s is %s; start it with `swdt vm start`", e.Name, e.State)
}

func (e *NotRunningError) Unwrap() error { return ErrStopped }

// NoAddressError reports a VM that runs, but whose address is not known.
type NoAddressError struct{ Name string }

func (e *NoAddressError) Error() string {
	return fmt.Sprintf("the address of VM %s is not known yet; wait for its guest to start (`swdt vm console` "+
		"shows it), or set spec.machine.network.address",
		e.Name)
}

// Reach completes the credentials of a node whose machine is a VM: the address, the VM's key if no
// other way to log in is set, and the file with the VM's host key. At the first contact, swdt pins
// in that file the keys that the guest reports through its agent; without an agent, it pins the key
// that the guest's SSH server shows. Reach does not change a node without spec.machine, or a node
// whose credentials have a hostname.
func (s *Machines) Reach(ctx context.Context, document config.Document) (config.Document, error) {
	if document.Node.Spec.Machine == nil || document.Node.Spec.Credentials.Hostname != "" {
		return document, nil
	}
	_, err := s.with(ctx, document.Node.Metadata.Name, func(record Record, driver Driver) (Report, error) {
		addresses, err := running(ctx, record, driver)
		if err != nil {
			return Report{}, err
		}
		address := addresses[0].HostPort()
		pinned, err := pin(record.KnownHosts(), address)
		if err != nil {
			return Report{}, err
		}
		if !pinned && document.Node.Spec.Credentials.HostKey == "" {
			pinned = pinReported(ctx, record, driver, address)
		}
		complete(&document, record, address, pinned)
		return Report{}, nil
	})
	return document, err
}

// complete fills in the credentials for a VM at an address, host:port.
func complete(document *config.Document, record Record, address string, pinned bool) {
	c := &document.Node.Spec.Credentials
	c.Hostname = address
	c.ProxyJump = cmp.Or(c.ProxyJump, "none") // the VM is on this machine, so no jump host is needed
	if c.PrivateKey == "" && c.Password == "" && c.PasswordFrom == nil {
		c.PrivateKey = record.Key()
	}
	document.KnownHosts, document.AcceptNewHostKey = record.KnownHosts(), !pinned
}

// HostPort returns the address as host:port.
func (a Address) HostPort() string { return net.JoinHostPort(a.IP.String(), strconv.Itoa(a.Port)) }

// running returns the addresses of a VM that runs, the best first; there is at least one.
func running(ctx context.Context, record Record, driver Driver) ([]Address, error) {
	status, err := driver.Status(ctx, record.Machine)
	if err != nil {
		return nil, fmt.Errorf("check whether VM %s runs: %w", record.Name, err)
	}
	if status.State != Running {
		return nil, &NotRunningError{record.Name, status.State}
	}
	all, err := driver.Addresses(ctx, record.Machine)
	if err != nil {
		return nil, fmt.Errorf("find the address of VM %s: %w", record.Name, err)
	}
	all = usable(all, record.sshPort(), ownAddresses())
	if len(all) == 0 {
		return nil, &NoAddressError{record.Name}
	}
	return all, nil
}

// ownAddresses returns the addresses of your machine.
func ownAddresses() (own []netip.Addr) {
	all, err := net.InterfaceAddrs()
	if err != nil {
		return nil
	}
	for _, address := range all {
		if prefix, err := netip.ParsePrefix(address.String()); err == nil {
			own = append(own, prefix.Addr().Unmap())
		}
	}
	return own
}

// usable returns the addresses at which swdt may look for a guest, the best first. A guest chooses
// the addresses that it uses and that its agent reports, so usable must not let the guest lead swdt
// to your machine, where another program may listen. Of your machine's own addresses, usable keeps
// only a loopback address with the forwarded port.
func usable(all []Address, forwarded int, own []netip.Addr) []Address {
	all = slices.DeleteFunc(slices.Clone(all), func(a Address) bool {
		ip := a.IP.Unmap()
		if ip.IsLoopback() || slices.Contains(own, ip) {
			return forwarded == 0 || a.Port != forwarded || !ip.IsLoopback()
		}
		return !ip.IsGlobalUnicast() || a.Port < 1 || a.Port > 65535
	})
	rank := func(a Address) int {
		known := slices.Index([]string{"forward", "configured", "DHCP lease", "neighbour table"}, a.Source)
		if known < 0 {
			known = 10 // any other source, such as the guest's agent, comes last
		}
		if !a.IP.Unmap().Is4() {
			known += 100
		}
		return known
	}
	slices.SortStableFunc(all, func(a, b Address) int { return rank(a) - rank(b) })
	return all
}
