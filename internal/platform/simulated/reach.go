package simulated

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/swdt-dev/swdt/internal/platform"
	"github.com/swdt-dev/swdt/internal/wire/fault"
)

// surroundings is the network of the machine.
type surroundings struct {
	names    map[string][]string              // DNS entries, by lower-case name
	outcomes map[string]platform.ReachOutcome // outcomes by address:port, or by address for all its ports
	adapters []Adapter
}

// SetName adds a name to DNS, or removes it if there are no addresses. The
// machine's hosts file takes precedence, as on Windows.
func (m *Machine) SetName(name string, addresses ...string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.around.names[fold(name)] = addresses
}

// SetReach sets the outcome of connections to an address (10.0.0.1:6443, or 10.0.0.1 for all its
// ports). Without an outcome, loopback addresses reach the machine's own processes and the
// listeners of the computer that runs the simulation, since the two share their loopback; any other
// address has no route.
func (m *Machine) SetReach(address string, outcome platform.ReachOutcome) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.around.outcomes[address] = outcome
}

// SetFacts changes the facts that the machine reports from now on: f receives the machine's facts
// and may alter them. f must not use the machine. If f is nil, the machine reports its real facts.
func (m *Machine) SetFacts(f func(*platform.Facts)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.alterFacts = f
}

func (v networkView) Reach(ctx context.Context, address string, timeout time.Duration) (
	reach platform.Reach, err error) {
	name, port, err := net.SplitHostPort(address)
	if err != nil {
		return platform.Reach{}, fmt.Errorf("connect to %q: not an address with a port: %w", address, err)
	}
	err = v.p.operate(Operation{Kind: OpReach, Target: address}, func(Verdict) error {
		reach, err = v.reach(ctx, name, port, timeout)
		return err
	})
	return reach, err
}

func (v networkView) reach(ctx context.Context, name, port string, timeout time.Duration) (platform.Reach, error) {
	if err := ctx.Err(); err != nil {
		return platform.Reach{}, err
	}
	addresses, err := v.p.m.lookup(name)
	if err != nil {
		return platform.Reach{Outcome: platform.NameNotFound, Detail: err.Error()}, nil
	}
	at := net.JoinHostPort(addresses[0], port)
	outcome := v.p.m.outcome(addresses[0], port)
	if outcome == "" && v.p.m.hasRealNetwork(addresses[0]) {
		return v.p.m.dialReal(ctx, at, timeout)
	}
	reach := platform.Reach{Outcome: cmp.Or(outcome, platform.NoRoute), Address: at, Took: time.Millisecond}
	switch reach.Outcome {
	case platform.Reached:
		reach.Source = v.p.m.sourceText(addresses[0])
	case platform.TimedOut:
		reach.Took, reach.Detail = timeout, "connect: i/o timeout"
	default:
		reach.Detail = "connect: " + string(reach.Outcome)
	}
	return reach, nil
}

// outcome returns the outcome that was set for an address. If none was set, it returns Reached if
// the address is on loopback and a process of the machine listens on the port, and "" if not.
func (m *Machine) outcome(address, port string) platform.ReachOutcome {
	m.mu.Lock()
	defer m.mu.Unlock()
	at := net.JoinHostPort(address, port)
	if outcome := cmp.Or(m.around.outcomes[at], m.around.outcomes[address]); outcome != "" {
		return outcome
	}
	for _, listening := range []string{at, "0.0.0.0:" + port, "[::]:" + port} {
		if ip, err := netip.ParseAddr(address); m.listeners[listening] != nil && err == nil &&
			(ip.IsLoopback() || m.hasAddress(ip)) {
			return platform.Reached
		}
	}
	return ""
}

// hasRealNetwork reports whether connections to an address are real.
func (m *Machine) hasRealNetwork(address string) bool {
	ip, err := netip.ParseAddr(address)
	return err == nil && (ip.IsLoopback() || m.options.RealNetwork)
}

func (m *Machine) dialReal(ctx context.Context, address string, timeout time.Duration) (platform.Reach, error) {
	begun := time.Now()
	bounded, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	conn, err := m.options.Dial(bounded, "tcp", address)
	reach := platform.Reach{Outcome: platform.Reached, Address: address, Took: time.Since(begun)}
	if err == nil {
		if host, _, err := net.SplitHostPort(address); err == nil {
			reach.Source = m.sourceText(host)
		}
		return reach, conn.Close()
	}
	if ctx.Err() != nil {
		return platform.Reach{}, ctx.Err()
	}
	reach.Outcome, reach.Detail = platform.ReachFailed, err.Error()
	switch {
	case errors.Is(err, syscall.ECONNREFUSED):
		reach.Outcome = platform.Refused
	case errors.Is(err, syscall.ENETUNREACH), errors.Is(err, syscall.EHOSTUNREACH):
		reach.Outcome = platform.NoRoute
	case errors.Is(err, os.ErrDeadlineExceeded), errors.Is(err, context.DeadlineExceeded):
		reach.Outcome = platform.TimedOut
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

// lookup resolves a name as the machine does. It tries, in this order: IP addresses, the machine's
// own names, the hosts file, DNS.
func (m *Machine) lookup(name string) ([]string, error) {
	if ip, err := netip.ParseAddr(name); err == nil {
		return []string{ip.String()}, nil
	}
	m.mu.Lock()
	own, known := m.options.Hostname, m.around.names[fold(name)]
	m.mu.Unlock()
	if strings.EqualFold(name, "localhost") {
		return []string{"127.0.0.1"}, nil
	}
	if strings.EqualFold(name, own) {
		var all []string
		for _, address := range m.addresses() {
			all = append(all, address.String())
		}
		return all, nil
	}
	if hosts := m.hostsFile(name); len(hosts) > 0 {
		return hosts, nil
	}
	if len(known) > 0 {
		return slices.Clone(known), nil
	}
	return nil, fmt.Errorf("resolve %s: no such host: %w", name, fault.ErrNotExist)
}

// hostsFile returns the addresses of a name in the hosts file.
func (m *Machine) hostsFile(name string) (addresses []string) {
	content, err := m.ReadFile(HostsFile)
	if err != nil {
		return nil
	}
	for line := range strings.Lines(string(content)) {
		line, _, _ = strings.Cut(line, "#")
		fields := strings.Fields(line)
		// Windows reads the host name and eight aliases of a line, and this limit is fixed in its code (Microsoft's KB
		// 2717022).
		if len(fields) > 1 && slices.ContainsFunc(fields[1:min(len(fields), 10)], func(n string) bool {
			return strings.EqualFold(n, name)
		}) {
			addresses = append(addresses, fields[0])
		}
	}
	return addresses
}

func (v networkView) Listeners(ctx context.Context) (all []platform.Listener, err error) {
	err = v.p.operate(Operation{Kind: OpListeners}, func(Verdict) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		all = v.p.m.listening()
		return nil
	})
	return all, err
}

func (m *Machine) listening() (all []platform.Listener) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for address, l := range m.listeners {
		if at, err := netip.ParseAddrPort(address); err == nil {
			all = append(all, platform.Listener{Address: address, Port: at.Port(), PID: l.p.pid})
		}
	}
	slices.SortFunc(all, func(a, b platform.Listener) int {
		return cmp.Or(cmp.Compare(a.Port, b.Port), cmp.Compare(a.Address, b.Address))
	})
	return all
}
