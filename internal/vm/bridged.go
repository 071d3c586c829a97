package vm

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"

	"github.com/swdt-dev/swdt/internal/config"
	"github.com/swdt-dev/swdt/internal/ui"
	"github.com/swdt-dev/swdt/internal/ui/finding"
	"github.com/swdt-dev/swdt/internal/vm/dhcp"
	"github.com/swdt-dev/swdt/internal/vm/network"
	"github.com/swdt-dev/swdt/internal/wait"
)

// OnDocker sets the Docker engine whose networks the VMs can be on, and returns s. The default is
// the engine at Docker's default socket.
func (s *Machines) OnDocker(d network.Docker) *Machines {
	s.docker = d
	return s
}

// bridged returns the Assigner of a VM that is on a network of your machine. It returns false for a
// VM in mode user, or if the VM's driver is unknown or cannot assign addresses.
func (s *Machines) bridged(record Record) (Assigner, bool) {
	driver, err := s.driver(record.Driver)
	if err != nil || record.Network.Mode == UserMode {
		return nil, false
	}
	assigner, can := driver.(Assigner)
	return assigner, can
}

// WantedNetwork returns the network that a node file describes. The node must have a spec.machine.
func WantedNetwork(document config.Document) network.Wanted {
	spec := document.Node.Spec
	w := network.Wanted{
		Mode: spec.Machine.Network.Mode, Bridge: spec.Machine.Network.Bridge, Tap: spec.Machine.Network.Tap,
		Owner: network.Owner(),
	}
	if w.Mode == network.Bridge && w.Tap == "" {
		w.Tap = network.TapName(document.Node.Metadata.Name, w.Owner)
	}
	w.Address, _ = netip.ParseAddr(spec.Machine.Network.Address) // invalid if the node file says auto
	if spec.Kubernetes.Join.ControlPlaneAlias != nil {
		alias := spec.Kubernetes.Join.ControlPlaneAlias
		w.Alias.Name = alias.Name
		w.Alias.Address, _ = netip.ParseAddr(alias.IP)
	}
	return w
}

// wanted returns the network that a VM's record describes, and adds the addresses that your other
// VMs have taken.
func (s *Machines) wanted(record Record) (network.Wanted, error) {
	w := network.Wanted{
		Mode: string(record.Network.Mode), Bridge: record.Network.Bridge, Tap: record.Network.Tap,
		MAC: record.Network.MAC, Owner: network.Owner(), Taken: map[netip.Addr]string{},
	}
	w.Address, _ = netip.ParseAddr(record.Network.Address) // invalid if no address is chosen yet
	others, err := s.store.All()
	for _, other := range others {
		a, parsed := netip.ParseAddr(other.Record.Network.Address)
		if parsed == nil && other.Record.Name != record.Name {
			w.Taken[a] = other.Record.Name
		}
	}
	return w, err
}

// settle chooses the address of a new VM on a network of your machine, and returns the problems
// that keep the VM from that network. A tap that swdt can make is no problem. For a VM that is not
// bridged, settle does nothing.
func (s *Machines) settle(ctx context.Context, record *Record) ([]finding.Problem, error) {
	if _, ok := s.bridged(*record); !ok {
		return nil, nil
	}
	w, err := s.wanted(*record)
	if err != nil {
		return nil, err
	}
	found := network.CheckHost(ctx, s.docker, w)
	if found.Address.IsValid() {
		record.Network.Address = found.Address.String()
	}
	return found.Problems, nil
}

// attach prepares the network of a bridged VM that is about to start. In mode bridge, it makes the
// tap if swdt can make taps. Then it returns an error if something keeps the VM from its network,
// for example another machine with the VM's address. For a VM that is not bridged, it does nothing.
func (s *Machines) attach(ctx context.Context, record Record, r ui.Reporter) error {
	if _, ok := s.bridged(record); !ok {
		return nil
	}
	w, err := s.wanted(record)
	if err != nil {
		return err
	}
	if w.Mode == network.Bridge && network.CanMake() {
		place, err := network.Find(ctx, s.docker, w.Bridge)
		if err != nil {
			return fmt.Errorf("find the bridge of VM %s: %w; `swdt vm network check` explains it", record.Name, err)
		}
		tap := network.Tap{Name: w.Tap, Bridge: place.Bridge, Owner: w.Owner}
		missing, err := tap.Missing()
		if err != nil {
			return fmt.Errorf("start VM %s: %w", record.Name, err)
		}
		if len(missing) > 0 {
			r.Info("%s; `swdt vm network remove` removes it", strings.Join(missing, ", "))
		}
		if err := tap.Make(); err != nil {
			return fmt.Errorf("start VM %s: %w", record.Name, err)
		}
	}
	return CheckProblems(network.CheckHost(ctx, s.docker, w).Problems, r)
}

// NoLeaseError reports that a guest does not use the address that swdt has chosen for it.
type NoLeaseError struct {
	Name    string
	Address string
	Heard   dhcp.Heard
	Err     error
}

func (e *NoLeaseError) Error() string {
	why := "its guest has asked for no address: let it use DHCP, as Windows does by default"
	switch {
	case errors.Is(e.Err, dhcp.ErrDeclined):
		why = "its guest has found another machine at this address: `swdt vm network check` looks for it"
	case len(e.Heard.Others) > 0:
		why = fmt.Sprintf("its guest uses %s: let it use DHCP, or write this address into spec.machine.network.address "+
			"and make the VM anew", e.Heard.Others[0])
	case e.Heard.Requests > 0:
		why = "its guest was answered, but did not take it: `swdt vm console` shows the guest"
	case e.Heard.Frames == 0:
		why = "its network card has sent nothing: `swdt vm console` shows whether the guest starts and has a driver for " +
			"spec.machine.network.adapter"
	}
	return fmt.Sprintf("VM %s runs, but has not taken its address %s: %s; `swdt vm start --wait` waits again",
		e.Name, e.Address, why)
}

func (e *NoLeaseError) Unwrap() error { return e.Err }

// errGreeted is the cause with which an assignment ends early: the guest's SSH server answers at
// the chosen address already.
var errGreeted = errors.New("the guest's SSH server answers")

// Assign gives the guest of a running VM on a bridge its address by DHCP, and returns nil once the
// guest uses the address. It does nothing for other VMs, for a VM whose address is not known, and
// for a VM in mode tap if swdt cannot determine the lease. The caller bounds ctx; the error is a
// *NoLeaseError if the deadline of ctx passes or the guest declines the address.
func (s *Machines) Assign(ctx context.Context, name string, r ui.Reporter) error {
	record, err := s.store.Get(name)
	if err != nil {
		return err
	}
	assigner, ok := s.bridged(record)
	if !ok || record.Network.Address == "" {
		return nil
	}
	lease, err := leaseOf(record)
	if err != nil && record.Network.Mode == TapMode {
		r.Info("the guest keeps its own address: %v", err)
		return nil
	}
	if err != nil {
		return fmt.Errorf("give VM %s its address: %w", name, err)
	}
	r.Step("waiting for the guest of VM %s to take its address %s", name, record.Network.Address)
	answered, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go func() {
		looks := newLooks(answered)
		defer looks.end()
		greeting := wait.Condition{Name: "the guest's SSH server", Interval: awaitInterval}
		greeting.Look = func(context.Context) error {
			return looks.look(net.JoinHostPort(record.Network.Address, "22"))
		}
		if greeting.Wait(answered) == nil {
			cancel(errGreeted)
		}
	}()
	heard, err := assigner.Assign(answered, record.Machine, lease)
	switch {
	case err == nil || errors.Is(context.Cause(answered), errGreeted):
		return nil
	case errors.Is(ctx.Err(), context.DeadlineExceeded), errors.Is(err, dhcp.ErrDeclined):
		return &NoLeaseError{Name: name, Address: record.Network.Address, Heard: heard, Err: err}
	}
	return fmt.Errorf("give VM %s its address: %w", name, err)
}

// leaseOf returns the DHCP lease for a VM: the configuration of the VM's network card on the bridge
// that the VM's tap is on.
func leaseOf(record Record) (dhcp.Lease, error) {
	place, err := network.Uplink(record.Network.Tap)
	if err != nil {
		return dhcp.Lease{}, err
	}
	mac, err := net.ParseMAC(record.Network.MAC)
	if err != nil {
		return dhcp.Lease{}, err
	}
	address, err := netip.ParseAddr(record.Network.Address)
	if err != nil {
		return dhcp.Lease{}, err
	}
	lease := dhcp.Lease{
		MAC: mac, Address: netip.PrefixFrom(address, place.Subnet.Bits()), Gateway: place.Gateway, DNS: network.Resolvers(),
	}
	return lease, lease.Valid()
}
