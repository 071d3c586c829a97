package qemu

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"strings"

	"github.com/swdt-dev/swdt/internal/vm"
	"github.com/swdt-dev/swdt/internal/vm/qemu/qmp"
)

// Sources of addresses.
const (
	fromForward   = "forward"
	fromRecord    = "configured"
	fromAgent     = "guest agent"
	fromNeighbour = "neighbour table"
)

// sshPort is the port of the guest's SSH server.
const sshPort = 22

// Addresses returns the forwarded SSH port, the configured address, the addresses that your
// machine's kernel has seen at the VM's MAC address, and the addresses that the guest agent
// reports, in this order: the guest itself is trusted least.
func (d *Driver) Addresses(ctx context.Context, m vm.Machine) ([]vm.Address, error) {
	now, err := d.running("find the addresses", m)
	if err != nil {
		return nil, err
	}
	var all []vm.Address
	add := func(ip netip.Addr, source string, port int) {
		for _, known := range all {
			if known.IP == ip && known.Port == port {
				return
			}
		}
		all = append(all, vm.Address{IP: ip, Source: source, Port: port})
	}
	for _, f := range m.Network.Forwards {
		if m.Network.Mode == vm.UserMode && f.GuestPort == sshPort {
			add(netip.AddrFrom4([4]byte{127, 0, 0, 1}), fromForward, f.HostPort)
		}
	}
	if ip, err := netip.ParseAddr(m.Network.Address); err == nil {
		add(ip, fromRecord, sshPort)
	}
	if m.Network.Mode != vm.UserMode {
		for _, ip := range neighbours(m.Network.MAC) {
			add(ip, fromNeighbour, sshPort)
		}
	}
	for _, ip := range d.agentAddresses(ctx, m, now) {
		add(ip, fromAgent, sshPort)
	}
	return all, nil
}

// agentAddresses returns the addresses that the guest agent reports; nil if no agent answers. It
// leaves out your machine's own addresses, so that a guest cannot claim one of these addresses.
func (d *Driver) agentAddresses(ctx context.Context, m vm.Machine, now found) []netip.Addr {
	agent, err := d.agent(ctx, now)
	if err != nil {
		return nil
	}
	defer agent.Close()
	reported, err := agent.Addresses(ctx, m.Network.MAC)
	if err != nil {
		return nil
	}
	mine := machineAddresses()
	var kept []netip.Addr
	for _, ip := range reported {
		if !mine[ip] {
			kept = append(kept, ip)
		}
	}
	return kept
}

// agent connects to the guest agent. The error is qmp.ErrSilent if no program in the guest
// has opened the agent's port.
func (d *Driver) agent(ctx context.Context, now found) (*qmp.Agent, error) {
	bounded, cancel := context.WithTimeout(ctx, answerLimit)
	defer cancel()
	client, err := qmp.Dial(bounded, sockets{now.started.Sockets}.look())
	if err != nil {
		return nil, err
	}
	defer client.Close()
	return openAgent(bounded, now, client)
}

// GuestFiles reads files of the guest through its agent. It leaves out files that the agent refuses
// to read.
func (d *Driver) GuestFiles(ctx context.Context, m vm.Machine, limit int, paths ...string) (map[string][]byte, error) {
	now, err := d.running("read files of the guest", m)
	if err != nil {
		return nil, err
	}
	agent, err := d.agent(ctx, now)
	if err != nil {
		return nil, fmt.Errorf("read files of the guest: %w", err)
	}
	defer agent.Close()
	files := map[string][]byte{}
	for _, path := range paths {
		content, err := agent.ReadFile(ctx, path, limit)
		switch {
		case err == nil:
			files[path] = content
		case !errors.Is(err, qmp.ErrRefused):
			return files, fmt.Errorf("read %s of the guest: %w", path, err)
		}
	}
	return files, nil
}

// machineAddresses returns your machine's own addresses.
func machineAddresses() map[netip.Addr]bool {
	mine := map[netip.Addr]bool{}
	all, err := net.InterfaceAddrs()
	if err != nil {
		return mine
	}
	for _, a := range all {
		if prefix, err := netip.ParsePrefix(a.String()); err == nil {
			mine[prefix.Addr().Unmap()] = true
		}
	}
	return mine
}

// neighbours returns the addresses that your machine's kernel has seen at a MAC address.
func neighbours(mac string) []netip.Addr {
	file, err := os.Open("/proc/net/arp") // Linux
	if err != nil {
		return nil
	}
	defer file.Close()
	return parseNeighbours(file, mac)
}

// maxNeighbours bounds the table that is read, in bytes.
const maxNeighbours = 4 << 20

// parseNeighbours reads Linux's table: address, type, flags, MAC address, mask, device.
func parseNeighbours(r io.Reader, mac string) []netip.Addr {
	const complete = "0x2"
	var found []netip.Addr
	lines := bufio.NewScanner(io.LimitReader(r, maxNeighbours))
	for lines.Scan() {
		words := strings.Fields(lines.Text())
		if len(words) < 6 || words[2] != complete || !strings.EqualFold(words[3], mac) {
			continue
		}
		if ip, err := netip.ParseAddr(words[0]); err == nil && qmp.Plausible(ip) {
			found = append(found, ip)
		}
	}
	return found
}
