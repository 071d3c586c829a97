package vm_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/swdt-dev/swdt/api/v1alpha1"
	"github.com/swdt-dev/swdt/internal/config"
	"github.com/swdt-dev/swdt/internal/testing/deadline"
	"github.com/swdt-dev/swdt/internal/testing/dockertest"
	"github.com/swdt-dev/swdt/internal/testing/netspace"
	"github.com/swdt-dev/swdt/internal/ui"
	"github.com/swdt-dev/swdt/internal/vm"
	"github.com/swdt-dev/swdt/internal/vm/dhcp"
	"github.com/swdt-dev/swdt/internal/vm/network"
	"github.com/swdt-dev/swdt/internal/vm/simulatedvm"
)

// bridgedDriver simulates VMs whose guests take their addresses as assign says.
type bridgedDriver struct {
	*simulatedvm.Driver
	assign func(ctx context.Context, lease dhcp.Lease) (dhcp.Heard, error)
}

func (d *bridgedDriver) Assign(ctx context.Context, _ vm.Machine, lease dhcp.Lease) (dhcp.Heard, error) {
	return d.assign(ctx, lease)
}

// onKind makes a VM one on the network of kind.
func onKind(m *v1alpha1.Machine) { m.Network.Mode, m.Network.Bridge = network.Bridge, "kind" }

// bridgedMachines returns VMs with the network of kind, which has a control plane.
func bridgedMachines(t *testing.T, driver *bridgedDriver) *vm.Machines {
	t.Helper()
	engine := dockertest.Start(t, dockertest.Network{
		Name: "kind", Bridge: "br-kind", Subnet: "172.18.0.0/16", Range: "172.18.0.0/17",
		Containers: map[string]string{"kind-control-plane": "172.18.0.2"},
	})
	netspace.MakeBridge(t, "br-kind", netip.MustParsePrefix("172.18.0.1/16"))
	driver.Driver = &simulatedvm.Driver{}
	return machines(t, t.TempDir(), driver).OnDocker(network.DockerAt(engine.Host()))
}

// made makes the VM of a document.
func made(t *testing.T, s *vm.Machines, doc config.Document) vm.Report {
	t.Helper()
	report, err := s.Create(t.Context(), doc, ui.Discard{})
	check(t, err)
	return report
}

func TestVMsOnABridge(t *testing.T) {
	if !netspace.Enter(t) {
		return
	}
	var leases []dhcp.Lease
	driver := &bridgedDriver{assign: func(_ context.Context, lease dhcp.Lease) (dhcp.Heard, error) {
		leases = append(leases, lease)
		return dhcp.Heard{Frames: 3, Requests: 2}, nil
	}}
	s, ctx := bridgedMachines(t, driver), t.Context()
	first, second := document(t, "win-1", onKind), document(t, "win-2", onKind)
	made(t, s, first)
	made(t, s, second)
	for _, name := range []string{"win-1", "win-2"} {
		_, err := s.Start(ctx, name, ui.Discard{})
		check(t, err)
		check(t, s.Assign(ctx, name, ui.Discard{}))
		tap := network.Tap{Name: network.TapName(name, network.Owner())}
		if exists, err := tap.Exists(); err != nil || !exists {
			t.Errorf("the tap of %s exists: %v, %v", name, exists, err)
		}
	}
	var got []string
	for _, lease := range leases {
		check(t, lease.Valid())
		got = append(got, lease.Address.String()+" "+lease.Gateway.String())
	}
	if diff := cmp.Diff([]string{"172.18.255.254/16 172.18.0.1", "172.18.255.253/16 172.18.0.1"}, got); diff != "" {
		t.Errorf("leases (-want +got):\n%s", diff)
	}
	if leases[0].MAC.String() == leases[1].MAC.String() {
		t.Errorf("both have the card %s", leases[0].MAC)
	}
	checks, err := s.CheckNetworks(ctx, []config.Document{first, second})
	check(t, err)
	var text strings.Builder
	check(t, checks.WriteText(ui.NewPage(&text, false)))
	for _, want := range []string{
		"win-1: its network works, 172.18.255.254 on bridge br-kind", "win-2: its network works, 172.18.255.253 on bridge",
	} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("%q is not in:\n%s", want, text.String())
		}
	}
	if checks.Failed() {
		t.Errorf("the check failed: %+v", checks)
	}
}

// A machine at the VM's address, which could answer in its place, keeps the VM from starting.
func TestAMachineAtTheAddressOfAVM(t *testing.T) {
	if !netspace.Enter(t) {
		return
	}
	s := bridgedMachines(t, &bridgedDriver{})
	doc := document(t, "win-1", onKind)
	made(t, s, doc)
	netspace.NewStation(t, "br-kind", "172.18.255.254/16", "172.18.0.1")
	_, err := s.Start(t.Context(), "win-1", ui.Discard{})
	var problems *vm.CheckError
	const taken = "another machine has the VM's address 172.18.255.254"
	if !errors.As(err, &problems) || !strings.Contains(err.Error(), taken) {
		t.Errorf("start: %v", err)
	}
	if got := states(t, s)["win-1"]; got != vm.Stopped {
		t.Errorf("the VM is %s", got)
	}
	checks, err := s.CheckNetworks(t.Context(), []config.Document{doc})
	check(t, err)
	if !checks.Failed() {
		t.Errorf("the check passed: %+v", checks)
	}
}

// The error of a guest that does not take its address has the reason that the guest's frames show.
func TestGuestsWithoutTheirAddress(t *testing.T) {
	if !netspace.Enter(t) {
		return
	}
	driver := &bridgedDriver{}
	s := bridgedMachines(t, driver)
	made(t, s, document(t, "win-1", onKind))
	_, err := s.Start(t.Context(), "win-1", ui.Discard{})
	check(t, err)
	broken, other := errors.New("broken"), dhcp.Heard{Others: []netip.Addr{netip.MustParseAddr("10.0.0.9")}}
	for want, answer := range map[string]struct {
		heard dhcp.Heard
		err   error // nil: at the end of the time
	}{
		"its network card has sent nothing":                   {},
		"its guest has asked for no address":                  {heard: dhcp.Heard{Frames: 2}},
		"its guest was answered, but did not take it":         {heard: dhcp.Heard{Frames: 2, Requests: 1}},
		"its guest uses 10.0.0.9":                             {heard: other},
		"its guest has found another machine at this address": {err: fmt.Errorf("%w: x", dhcp.ErrDeclined)},
		"give VM win-1 its address: broken":                   {err: broken},
		"give VM win-1 its address: " + vm.ErrStopped.Error(): {err: vm.ErrStopped},
	} {
		ctx, pass := deadline.Context(t.Context())
		driver.assign = func(ctx context.Context, _ dhcp.Lease) (dhcp.Heard, error) {
			if answer.err != nil {
				return answer.heard, answer.err
			}
			pass()
			<-ctx.Done()
			return answer.heard, context.Cause(ctx)
		}
		err := s.Assign(ctx, "win-1", ui.Discard{})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v; want %q", err, want)
		}
	}
}

// A guest that keeps its address from before, and asks for none, is found by its SSH server.
func TestAGuestThatHasItsAddress(t *testing.T) {
	if !netspace.Enter(t) {
		return
	}
	s := bridgedMachines(t, &bridgedDriver{assign: func(ctx context.Context, _ dhcp.Lease) (dhcp.Heard, error) {
		<-ctx.Done()
		return dhcp.Heard{}, context.Cause(ctx)
	}})
	made(t, s, document(t, "win-1", onKind))
	_, err := s.Start(t.Context(), "win-1", ui.Discard{})
	check(t, err)
	guest := netspace.NewStation(t, "br-kind", "172.18.255.254/16", "172.18.0.1")
	var listener net.Listener
	check(t, guest.Do(func() (err error) {
		listener, err = net.Listen("tcp", "172.18.255.254:22")
		return err
	}))
	defer listener.Close()
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			_, _ = conn.Write([]byte("SSH-2.0-test\r\n"))
			_ = conn.Close()
		}
	}()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	check(t, s.Assign(ctx, "win-1", ui.Discard{}))
}
