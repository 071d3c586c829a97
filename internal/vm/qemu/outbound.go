package qemu

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"syscall"
	"time"

	"github.com/swdt-dev/swdt/internal/vm"
	"github.com/swdt-dev/swdt/internal/vm/qemu/process"
	"github.com/swdt-dev/swdt/internal/wait"
)

// A guest that may reach other machines gets no user network of QEMU, which connects the guest to each service on this
// machine's loopback address. Its card leads to passt, and passt runs in a network namespace that pasta makes: there
// the kernel, whatever the guest sends, connects an address of loopback only to the namespace itself. pasta leads the
// other connections out of the namespace, and the forwarded ports into it. The guest's addresses are those of QEMU's
// user network, so that a node keeps its address.
const (
	guestAddress  = "10.0.2.15"
	guestMask     = "255.255.255.0"
	guestGateway  = "10.0.2.2"
	guestResolver = "10.0.2.3" // pasta answers on port 53 with this machine's resolver
	guestMTU      = "1500"     // the default of passt is more than an e1000e can send
)

// Programs of the package passt. Both are one program, which acts by its name.
const (
	outerProgram = "pasta"
	innerProgram = "passt"
)

// outboundLimit bounds the start of passt, which needs some milliseconds.
const outboundLimit = 20 * time.Second

// outboundMark returns words that are in the command lines of the processes of a VM's network, and of no others.
func outboundMark(s sockets) []string { return []string{"--socket", s.network()} }

// outboundCommand returns the command that connects a VM to other machines. It ends with QEMU's connection.
func (p plan) outboundCommand(outer, inner string) []string {
	var command []string
	if os.Geteuid() == 0 {
		// pasta would give up root, and then not enter the VM's folder. In a namespace, root is an ordinary user.
		command = []string{"unshare", "--user", "--map-user=1000", "--map-group=1000", "--"}
	}
	// -T, -U: the namespace's loopback does not lead to this machine's.
	both := []string{"--foreground", "--quiet", "--ipv4-only", "--no-map-gw", "-u", "none"}
	command = append(append(command, outer), both...)
	command = append(command, "--config-net", "-T", "none", "-U", "none", "--dns-forward", guestResolver)
	for _, f := range p.Network.Forwards {
		port := strconv.Itoa(f.HostPort)
		command = append(command, "-t", "127.0.0.1/"+port+":"+port)
	}
	command = append(append(command, "--", inner), both...)
	command = append(command, "--one-off", "--pid", filesOf(p.Machine).networkPID(),
		"--address", guestAddress, "--netmask", guestMask, "--gateway", guestGateway, "--mtu", guestMTU,
		"--dns", guestResolver, "--search", "none")
	for _, f := range p.Network.Forwards {
		command = append(command, "-t", fmt.Sprintf("127.0.0.1/%d:%d", f.HostPort, f.GuestPort))
	}
	return append(command, outboundMark(p.sockets)...)
}

// startOutbound starts the programs that connect the VM to other machines, and waits until QEMU can connect to them.
func (d *Driver) startOutbound(ctx context.Context, p plan) (spawned, error) {
	outer, err := program(d.options.Outbound, installOutbound)
	if err != nil {
		return spawned{}, err
	}
	inner, err := program(innerProgram, installOutbound)
	if err != nil {
		return spawned{}, err
	}
	f := filesOf(p.Machine)
	command := p.outboundCommand(outer, inner)
	log := output{out: f.networkLog(), messages: f.networkLog(), maxMessages: maxLog}
	network, err := spawn(p.Machine, log, command[0], command[1:]...)
	if err != nil {
		return network, err
	}
	err = wait.Condition{
		Name: "passt to start", Interval: 5 * time.Millisecond, MaxInterval: 50 * time.Millisecond, Limit: outboundLimit,
		Look: func(context.Context) error {
			select {
			case <-network.ended:
				return wait.Stop(fmt.Errorf("passt %w: %s", errEnded, lastLines(f.networkLog())))
			default:
			}
			pid, err := readPID(f.networkPID()) // passt writes it after it has begun to listen
			if err == nil && pid == 0 {
				err = errors.New("it does not listen")
			}
			return err
		},
	}.Wait(ctx)
	if err != nil {
		return network, explainPorts(p, fmt.Errorf("connect the guest to other machines: %w", err))
	}
	return network, nil
}

// endOutbound ends the programs of the VM's network after its QEMU. They should end by themselves; if they do not,
// endOutbound sends SIGTERM, then SIGKILL.
func endOutbound(ctx context.Context, m vm.Machine, s started) error {
	if !m.Network.Outbound() || s.Sockets == "" {
		return nil
	}
	return endAll(ctx, "the guest's network", process.FindAll(outboundMark(sockets{s.Sockets})...))
}

// endAll waits for the end of helpers of a QEMU that has ended, and ends those that do not.
func endAll(ctx context.Context, what string, helpers []*process.Process) (err error) {
	const patience = time.Second
	for _, signal := range []os.Signal{nil, syscall.SIGTERM, os.Kill} {
		for _, helper := range helpers {
			if signal == nil {
				continue
			}
			if err := helper.Signal(signal); err != nil {
				return fmt.Errorf("end %s: %w", what, err)
			}
		}
		if err = allEnded(ctx, patience, helpers); err == nil {
			return nil
		}
	}
	return fmt.Errorf("end %s: %w", what, err)
}

// allEnded waits until all processes have ended, at most for limit.
func allEnded(ctx context.Context, limit time.Duration, all []*process.Process) error {
	bounded, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	for _, p := range all {
		if err := p.Ended(bounded, limit); err != nil {
			return err
		}
	}
	return nil
}
