package simulated

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/swdt-dev/swdt/internal/host"
)

// surroundings are the network that the machine is in.
type surroundings struct {
	names    map[string][]string          // what DNS knows, by lower-case name
	outcomes map[string]host.ReachOutcome // by address:port, or by address for all its ports
}

// SetName makes DNS know a name; without addresses it forgets it. The machine's
// hosts file comes first, as on Windows.
func (m *Machine) SetName(name string, addresses ...string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.around.names[fold(name)] = addresses
}

// SetReach says how a connection to an address (10.0.0.1:6443, or 10.0.0.1 for
// all its ports) ends. On its own loopback the machine reaches its own processes
// and, since it shares that with the computer it is simulated on, what listens
// there. Any other address has no route.
func (m *Machine) SetReach(address string, outcome host.ReachOutcome) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.around.outcomes[address] = outcome
}

// SetFacts changes what the machine says about itself, from now on: f gets its
// facts and may alter them, and must not use the machine. nil: the truth.
func (m *Machine) SetFacts(f func(*host.Facts)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.alterFacts = f
}

func (v networkView) Reach(ctx context.Context, address string, timeout time.Duration) (reach host.Reach, err error) {
	name, port, err := net.SplitHostPort(address)
	if err != nil {
		return host.Reach{}, fmt.Errorf("connect to %q: not an address with a port: %w", address, err)
	}
	err = v.p.operate(Operation{Kind: OpReach, Target: address}, func(Verdict) error {
		reach, err = v.reach(ctx, name, port, timeout)
		return err
	})
	return reach, err
}

func (v networkView) reach(ctx context.Context, name, port string, timeout time.Duration) (host.Reach, error) {
	if err := ctx.Err(); err != nil {
		return host.Reach{}, err
	}
	addresses, err := v.p.m.lookup(name)
	if err != nil {
		return host.Reach{Outcome: host.NameNotFound, Detail: err.Error()}, nil
	}
	at := net.JoinHostPort(addresses[0], port)
	outcome := v.p.m.outcome(addresses[0], port)
	if ip, err := netip.ParseAddr(addresses[0]); outcome == "" && err == nil && ip.IsLoopback() {
		return dialLoopback(ctx, at, timeout)
	}
	reach := host.Reach{Outcome: cmp.Or(outcome, host.NoRoute), Address: at, Took: time.Millisecond}
	switch reach.Outcome {
	case host.Reached:
	case host.TimedOut:
		reach.Took, reach.Detail = timeout, "connect: i/o timeout"
	default:
		reach.Detail = "connect: " + string(reach.Outcome)
	}
	return reach, nil
}

// outcome is what is known of an address; empty: nothing.
func (m *Machine) outcome(address, port string) host.ReachOutcome {
	m.mu.Lock()
	defer m.mu.Unlock()
	at := net.JoinHostPort(address, port)
	if outcome := cmp.Or(m.around.outcomes[at], m.around.outcomes[address]); outcome != "" {
		return outcome
	}
	for _, listening := range []string{at, "0.0.0.0:" + port, "[::]:" + port} {
		if ip, err := netip.ParseAddr(address); m.listeners[listening] != nil && err == nil && ip.IsLoopback() {
			return host.Reached
		}
	}
	return ""
}

func dialLoopback(ctx context.Context, address string, timeout time.Duration) (host.Reach, error) {
	begun := time.Now()
	conn, err := (&net.Dialer{Timeout: timeout}).DialContext(ctx, "tcp", address)
	reach := host.Reach{Outcome: host.Reached, Address: address, Took: time.Since(begun)}
	if err == nil {
		return reach, conn.Close()
	}
	if ctx.Err() != nil {
		return host.Reach{}, ctx.Err()
	}
	reach.Outcome, reach.Detail = host.ReachFailed, err.Error()
	if errors.Is(err, syscall.ECONNREFUSED) {
		reach.Outcome = host.Refused
	}
	return reach, nil
}

func (v networkView) Resolve(ctx context.Context, name string) (addresses []string, err error) {
	err = v.p.operate(Operation{Kind: OpResolve, Target: name}, func(Verdict) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		addresses, err = v.p.m.lookup(name)
		return err
	})
	return addresses, err
}

// lookup is the machine's resolver: addresses, its own names, the hosts file, DNS.
func (m *Machine) lookup(name string) ([]string, error) {
	if ip, err := netip.ParseAddr(name); err == nil {
		return []string{ip.String()}, nil
	}
	m.mu.Lock()
	own, known := m.options.Hostname, m.around.names[fold(name)]
	m.mu.Unlock()
	if strings.EqualFold(name, "localhost") || strings.EqualFold(name, own) {
		return []string{"127.0.0.1"}, nil
	}
	if hosts := m.hostsFile(name); len(hosts) > 0 {
		return hosts, nil
	}
	if len(known) > 0 {
		return slices.Clone(known), nil
	}
	return nil, fmt.Errorf("resolve %s: no such host: %w", name, host.ErrNotExist)
}

// hostsFile is what the hosts file says of a name.
func (m *Machine) hostsFile(name string) (addresses []string) {
	content, err := m.ReadFile(HostsFile)
	if err != nil {
		return nil
	}
	for line := range strings.Lines(string(content)) {
		line, _, _ = strings.Cut(line, "#")
		fields := strings.Fields(line)
		if len(fields) > 1 && slices.ContainsFunc(fields[1:], func(n string) bool { return strings.EqualFold(n, name) }) {
			addresses = append(addresses, fields[0])
		}
	}
	return addresses
}

func (v networkView) Listeners(ctx context.Context) (all []host.Listener, err error) {
	err = v.p.operate(Operation{Kind: OpListeners}, func(Verdict) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		all = v.p.m.listening()
		return nil
	})
	return all, err
}

func (m *Machine) listening() (all []host.Listener) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for address, l := range m.listeners {
		if at, err := netip.ParseAddrPort(address); err == nil {
			all = append(all, host.Listener{Address: address, Port: at.Port(), PID: l.p.pid})
		}
	}
	slices.SortFunc(all, func(a, b host.Listener) int {
		return cmp.Or(cmp.Compare(a.Port, b.Port), cmp.Compare(a.Address, b.Address))
	})
	return all
}
