package network

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"strconv"

	"github.com/swdt-dev/swdt/internal/ui/finding"
)

// Modes of a VM's network, as in node files.
const (
	User   = "user"
	Bridge = "bridge"
	OnTap  = "tap"
)

// Wanted is the network that a node file describes for a VM.
type Wanted struct {
	Mode   string // user, bridge or tap
	Bridge string // only in mode bridge: a bridge of your machine, or a Docker network
	Tap    string
	// Address is the VM's address. If it is invalid, swdt chooses one.
	Address netip.Addr
	MAC     string // address of the VM's network card; empty if the VM does not exist
	// Owner is the ID of the user who runs the VM.
	Owner int
	// Taken has the addresses of your other VMs, with their names.
	Taken map[netip.Addr]string
	// Alias has the name and the address of the control plane's container; zero if the node file
	// names no alias.
	Alias Alias
}

// Alias is a name that the node file gives to the control plane, with its address.
type Alias struct {
	Name    string
	Address netip.Addr
}

// TapName returns the name of the tap that swdt makes for a user's VM. The name is always the same
// for the same user and VM.
func TapName(vm string, owner int) string {
	sum := sha256.Sum256([]byte(strconv.Itoa(owner) + "/" + vm))
	return "swdt" + hex.EncodeToString(sum[:4])
}

// Owner returns the ID of the user who runs VMs: with sudo, the user who called it.
func Owner() int {
	if owner, err := strconv.Atoi(os.Getenv("SUDO_UID")); err == nil && owner > 0 && os.Geteuid() == 0 {
		return owner
	}
	return os.Getuid()
}

// Findings are the results of a check of a VM's network.
type Findings struct {
	Place    Place      // the bridge, as far as it was found
	Address  netip.Addr // the VM's address, or the address that it would get
	Problems []finding.Problem
}

// Remedies of problems with the bridge and the tap device.
const (
	prepareIt = "`swdt vm network prepare` makes it"
	userMode  = "use network mode user, which is enough to set the node up and to push to it, or run swdt on a Linux " +
		"machine with Docker's engine"
)

func (f *Findings) add(check string, severity finding.Severity, evidence, what, remedy string) {
	f.Problems = append(f.Problems, finding.Problem{Check: check, Where: finding.OnMachine, Finding: finding.Finding{
		Severity: severity, What: what, Evidence: evidence, Remedy: remedy,
	}})
}

// Check finds the problems that keep a VM from its network and its cluster. It changes nothing.
func Check(ctx context.Context, d Docker, w Wanted) Findings {
	f := CheckHost(ctx, d, w)
	if w.Mode == User || !f.Place.Subnet.IsValid() || !f.Address.IsValid() {
		return f
	}
	f.checkAlias(w)
	f.checkFirewall(ctx)
	return f
}

// CheckHost finds the problems that keep a VM from starting on its network, without regard to the
// cluster.
func CheckHost(ctx context.Context, d Docker, w Wanted) (f Findings) {
	if w.Mode == User {
		f.add("mode", finding.Error, "spec.machine.network.mode is user",
			"the cluster does not reach this VM: pods on it have no connection to other nodes (VXLAN, UDP 4789), "+
				"and kubectl logs and exec do not reach its kubelet (TCP 10250)",
			"write `mode: bridge` and `bridge: kind` into spec.machine.network; mode user is enough for setup and push")
		return f
	}
	if !f.checkPlace(ctx, d, w) {
		return f
	}
	f.checkTap(w)
	f.checkAddress(ctx, w)
	return f
}

// checkPlace finds the bridge, and reports whether there is one.
func (f *Findings) checkPlace(ctx context.Context, d Docker, w Wanted) bool {
	var err error
	if w.Mode == OnTap {
		return f.checkUplink(ctx, d, w)
	}
	f.Place, err = Find(ctx, d, w.Bridge)
	var elsewhere *ElsewhereError
	switch {
	case errors.As(err, &elsewhere):
		f.add("bridge", finding.Error, elsewhere.Error(), "the cluster's network is not on this machine", userMode)
	case errors.Is(err, errLinuxOnly):
		f.add("bridge", finding.Error, err.Error(), "this machine has no bridge of Docker", userMode)
	case errors.Is(err, ErrNoDockerNetwork) && isKinds(w.Bridge):
		f.add("bridge", finding.Error, err.Error(), "there is no Docker network "+w.Bridge+" yet", prepareIt)
	case errors.Is(err, ErrNoDockerNetwork):
		f.add("bridge", finding.Error, err.Error(), "neither a bridge nor a Docker network is called "+w.Bridge,
			"write a name that `ip link show type bridge` or `docker network ls` lists into spec.machine.network.bridge")
	case err != nil && f.Place.Bridge != "":
		f.add("bridge", finding.Error, err.Error(), "the bridge "+f.Place.Bridge+" cannot be used", "repair its address")
	case err != nil:
		f.add("bridge", finding.Error, err.Error(),
			"no bridge is called "+w.Bridge+", and Docker cannot be asked for a network",
			"start Docker, join the group docker, or write the bridge's own name into spec.machine.network.bridge")
	case f.Place.DockerErr != nil:
		f.add("docker", finding.Info, f.Place.DockerErr.Error(),
			"Docker cannot be asked which addresses of "+f.Place.Subnet.String()+" its containers have",
			"start Docker, or join the group docker, if the bridge is Docker's")
	}
	return err == nil
}

// checkUplink finds the bridge of a tap that swdt has not made, and reports whether there is one.
func (f *Findings) checkUplink(ctx context.Context, d Docker, w Wanted) bool {
	tap := Tap{Name: w.Tap, Owner: w.Owner}
	exists, err := tap.Exists()
	if err != nil || !exists {
		evidence, remedy := "no interface has this name", "make it: `sudo ip tuntap add "+w.Tap+" mode tap user $USER`"
		if err != nil {
			evidence, remedy = err.Error(), "name a tap device of yours in spec.machine.network.tap"
		}
		f.add("tap", finding.Error, evidence, "the tap device "+w.Tap+" cannot be used",
			remedy+"; or write mode: bridge, in which swdt makes one")
		return false
	}
	f.Place, err = Uplink(w.Tap)
	if err != nil {
		f.add("bridge", finding.Info, err.Error(), "the tap device "+w.Tap+" is on no bridge with an address of this machine",
			"give the guest its address yourself, or put the tap on a bridge: `sudo ip link set "+w.Tap+" master BRIDGE`")
		return false
	}
	f.Place.Docker, f.Place.DockerErr = d.networkOf(ctx, f.Place.Bridge)
	return true
}

// checkTap checks that this user can open taps, and that the VM's tap exists or swdt can make it.
func (f *Findings) checkTap(w Wanted) {
	if err := canOpenTaps(); err != nil {
		f.add("tap", finding.Error, err.Error(), "programs of yours cannot open tap devices",
			"load the kernel's module: `sudo modprobe tun`; and give yourself the rights for /dev/net/tun")
		return
	}
	missing, err := Tap{Name: w.Tap, Bridge: f.Place.Bridge, Owner: w.Owner}.Missing()
	switch {
	case err != nil:
		f.add("tap", finding.Error, err.Error(), "the tap device "+w.Tap+" cannot be used",
			"choose another name in spec.machine.network.tap")
	case len(missing) > 0 && !CanMake():
		f.add("tap", finding.Error, "missing: "+list(missing)+"; it takes the right CAP_NET_ADMIN, which you do not have",
			"the VM has no tap device on bridge "+f.Place.Bridge,
			prepareIt+", with one command for root; your machine forgets it when it restarts")
	}
}

// checkAddress checks the VM's address, or chooses one.
func (f *Findings) checkAddress(ctx context.Context, w Wanted) {
	n := f.Place.network()
	if !w.Address.IsValid() {
		var taken []netip.Addr
		for a := range w.Taken {
			taken = append(taken, a)
		}
		var err error
		if f.Address, err = f.Place.Free(ctx, taken); err != nil {
			f.add("address", finding.Error, err.Error(), "there is no free address for the VM",
				"remove VMs or containers that you do not need")
			return
		}
	} else {
		f.Address = w.Address
		f.checkTaken(ctx, w, n)
	}
	if f.Place.Docker != nil && n.Assigns(f.Address) {
		f.add("address", finding.Info, fmt.Sprintf("Docker gives containers the lowest free address of %s", docked(n)),
			"Docker may give the VM's address "+f.Address.String()+" to a container, once all lower ones are in use",
			"this takes thousands of containers; a network that `swdt vm network prepare` makes keeps a half for VMs")
	}
}

// docked returns the addresses that Docker gives to containers.
func docked(n DockerNetwork) netip.Prefix {
	if n.Range.IsValid() {
		return n.Range
	}
	return n.Subnet
}

// checkTaken checks that the VM's address is on its bridge and that no other machine has it.
func (f *Findings) checkTaken(ctx context.Context, w Wanted, n DockerNetwork) {
	const choose = "write another address of the subnet, or auto, into spec.machine.network.address, and make the VM anew"
	another := func(evidence string) {
		f.add("address", finding.Error, evidence, "another machine has the VM's address "+w.Address.String(), choose)
	}
	if !f.Place.Subnet.Contains(w.Address) {
		f.add("address", finding.Error, fmt.Sprintf("bridge %s has the subnet %s", f.Place.Bridge, f.Place.Subnet),
			"the VM's address "+w.Address.String()+" is not on its bridge", choose)
		return
	}
	if w.Address == f.Place.Gateway || w.Address == broadcast(f.Place.Subnet) || w.Address == f.Place.Subnet.Addr() {
		another("the address is this machine's, or that of the whole subnet")
		return
	}
	for name, a := range n.Containers {
		if a == w.Address {
			another("container " + name + " has it")
			return
		}
	}
	if name := w.Taken[w.Address]; name != "" {
		another("VM " + name + " has it")
		return
	}
	if card := neighbour(ctx, f.Place.Bridge, w.Address); card != nil && card.String() != w.MAC {
		another("a network card " + card.String() + " answers at it")
	}
}

func list(lines []string) (text string) {
	for i, line := range lines {
		if i > 0 {
			text += ", "
		}
		text += line
	}
	return text
}
