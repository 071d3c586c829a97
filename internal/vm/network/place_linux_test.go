package network

import (
	"errors"
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/vishvananda/netlink"

	"github.com/swdt-dev/swdt/internal/plan"
	"github.com/swdt-dev/swdt/internal/testing/dockertest"
	"github.com/swdt-dev/swdt/internal/testing/netspace"
	"github.com/swdt-dev/swdt/internal/ui"
)

// kindsNetwork is the network of kind on the bridge br-kind.
func kindsNetwork() dockertest.Network {
	return dockertest.Network{Name: "kind", Bridge: "br-kind", Subnet: "172.18.0.0/16",
		Containers: map[string]string{"kind-control-plane": "172.18.0.2"}}
}

// farNetwork is a network whose bridge is not here.
func farNetwork() dockertest.Network {
	return dockertest.Network{Name: "far", Bridge: "br-far", Subnet: "172.19.0.0/16"}
}

func TestPlacesOfVMs(t *testing.T) {
	if !netspace.Enter(t) {
		return
	}
	engine := dockertest.Start(t, kindsNetwork(), farNetwork())
	engine.Describe("Docker Desktop")
	d := DockerAt(engine.Host())
	netspace.MakeBridge(t, "br-kind", prefix("172.18.0.1/16"))
	netspace.MakeBridge(t, "br-mine", prefix("10.7.0.1/24"))
	must(t, netlink.LinkAdd(&netlink.Bridge{LinkAttrs: netlink.LinkAttrs{Name: "br-bare"}}))

	for name, want := range map[string]string{
		"kind": "br-kind 172.18.0.0/16 172.18.0.1 kind", "br-kind": "br-kind 172.18.0.0/16 172.18.0.1 kind",
		"br-mine": "br-mine 10.7.0.0/24 10.7.0.1",
	} {
		place, err := Find(t.Context(), d, name)
		got := []string{place.Bridge, place.Subnet.String(), place.Gateway.String()}
		if place.Docker != nil {
			got = append(got, place.Docker.Name)
		}
		if text := strings.Join(got, " "); err != nil || text != want {
			t.Errorf("%s: %s, %v; want %s", name, text, err, want)
		}
	}
	var elsewhere *ElsewhereError
	_, err := Find(t.Context(), d, "far")
	if !errors.As(err, &elsewhere) || !strings.Contains(err.Error(), "VM of its own") {
		t.Errorf("a bridge in Docker's own VM: %v", err)
	}
	for _, name := range []string{"gone", "lo", "../kind", ""} {
		if place, err := Find(t.Context(), d, name); !errors.Is(err, ErrNoDockerNetwork) && name != "" || err == nil {
			t.Errorf("%q: %+v, %v", name, place, err)
		}
	}
	if _, err := Find(t.Context(), d, "br-bare"); err == nil || !strings.Contains(err.Error(), "no IPv4 address") {
		t.Errorf("a bridge without an address: %v", err)
	}
	absent := DockerAt("unix:///nowhere.sock")
	if place, err := Find(t.Context(), absent, "br-kind"); err != nil || place.DockerErr == nil || place.Docker != nil {
		t.Errorf("a bridge without Docker: %+v, %v", place, err)
	}
}

// The address of a new VM is the highest at which neither Docker, nor another VM, nor a machine on the
// bridge is.
func TestAFreeAddress(t *testing.T) {
	if !netspace.Enter(t) {
		return
	}
	network := kindsNetwork()
	network.Containers["late"] = "172.18.255.253"
	engine := dockertest.Start(t, network)
	netspace.NewStation(t, "br-kind", "172.18.255.254/16", "172.18.0.1")
	place, err := Find(t.Context(), DockerAt(engine.Host()), "kind")
	must(t, err)
	free, err := place.Free(t.Context(), []netip.Addr{ip("172.18.255.252")})
	if err != nil || free != ip("172.18.255.251") {
		t.Errorf("%s, %v; want 172.18.255.251", free, err)
	}
	if card := neighbour(t.Context(), "br-kind", ip("172.18.255.254")); card == nil {
		t.Error("the machine at 172.18.255.254 was not found")
	}
	if card := neighbour(t.Context(), "br-gone", ip("172.18.255.254")); card != nil {
		t.Errorf("a machine %s on a bridge that does not exist", card)
	}
}

// problems are the checks of findings with their severities.
func problems(f Findings) (all []string) {
	for _, p := range f.Problems {
		all = append(all, string(p.Severity)+" "+p.Check)
	}
	return all
}

func TestChecksOfANetwork(t *testing.T) {
	if !netspace.Enter(t) {
		return
	}
	engine := dockertest.Start(t, kindsNetwork(), farNetwork())
	here := DockerAt(engine.Host())
	netspace.MakeBridge(t, "br-kind", prefix("172.18.0.1/16"))
	showBridges(t, false)
	station := netspace.NewStation(t, "br-kind", "172.18.9.9/16", "172.18.0.1")
	must(t, netlink.LinkAdd(&netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: "inway"}, PeerName: "other"}))
	must(t, Tap{Name: "theirs", Bridge: "br-kind"}.Make())
	must(t, netlink.LinkAdd(&netlink.Tuntap{LinkAttrs: netlink.LinkAttrs{Name: "loose"}, Mode: netlink.TUNTAP_MODE_TAP}))
	alias := Alias{Name: "kind-control-plane", Address: ip("172.18.0.2")}
	wanted := Wanted{Mode: Bridge, Bridge: "kind", Tap: "swdt0", Owner: 1000, Alias: alias}
	const whole = "info address" // Docker may give any address of the subnet to a container
	for name, test := range map[string]struct {
		docker Docker
		change func(*Wanted)
		want   []string
	}{
		"as it should be":     {here, func(*Wanted) {}, []string{whole}},
		"mode user":           {here, func(w *Wanted) { w.Mode = User }, []string{"error mode"}},
		"no such network":     {here, func(w *Wanted) { w.Bridge = "company" }, []string{"error bridge"}},
		"not on this machine": {here, func(w *Wanted) { w.Bridge = "far" }, []string{"error bridge"}},
		"no Docker":           {DockerAt("unix:///none"), func(*Wanted) {}, []string{"error bridge"}},
		"no Docker, the bridge's name": {DockerAt("unix:///none"), func(w *Wanted) { w.Bridge = "br-kind" },
			[]string{"info docker"}},

		// Another user has put something in the way.
		"a tap of another user":       {here, func(w *Wanted) { w.Tap = "theirs" }, []string{"error tap", whole}},
		"an interface that is no tap": {here, func(w *Wanted) { w.Tap = "inway" }, []string{"error tap", whole}},
		"a name of no interface":      {here, func(w *Wanted) { w.Tap = "../../x" }, []string{"error tap", whole}},
		"mode tap, of another user":   {here, func(w *Wanted) { w.Mode, w.Tap = OnTap, "theirs" }, []string{"error tap"}},
		"mode tap, none":              {here, func(w *Wanted) { w.Mode = OnTap }, []string{"error tap"}},
		"mode tap, on no bridge": {here, func(w *Wanted) { w.Mode, w.Tap, w.Owner = OnTap, "loose", 0 },
			[]string{"info bridge"}},
		"mode tap, on the bridge": {here, func(w *Wanted) { w.Mode, w.Tap, w.Owner = OnTap, "theirs", 0 },
			[]string{whole}},
		"an address that a machine has": {here, at("172.18.9.9"), []string{"error address", whole}},
		"an address of a container":     {here, at("172.18.0.2"), []string{"error address", whole}},
		"your machine's address":        {here, at("172.18.0.1"), []string{"error address", whole}},
		"the subnet's last address":     {here, at("172.18.255.255"), []string{"error address", whole}},
		"an address of another subnet":  {here, at("10.0.0.9"), []string{"error address"}},
		"an address of another VM": {here, func(w *Wanted) {
			w.Address, w.Taken = ip("172.18.7.7"), map[netip.Addr]string{ip("172.18.7.7"): "win-2"}
		}, []string{"error address", whole}},
		"its own address, which it uses": {here, func(w *Wanted) {
			w.Address, w.MAC = ip("172.18.9.9"), cardOf(t, station)
		}, []string{whole}},

		"the control plane has moved": {here, func(w *Wanted) { w.Alias.Address = ip("172.18.0.3") },
			[]string{whole, "error control-plane"}},
		"no control plane runs": {here, func(w *Wanted) { w.Alias.Name = "other-control-plane" },
			[]string{whole, "warning control-plane"}},
		"a control plane elsewhere": {here, func(w *Wanted) { w.Alias = Alias{"api", ip("10.1.1.1")} }, []string{whole}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel() // most wait for machines that do not answer
			w := wanted
			test.change(&w)
			found := Check(t.Context(), test.docker, w)
			if diff := cmp.Diff(test.want, problems(found)); diff != "" {
				t.Errorf("(-want +got):\n%s%+v", diff, found.Problems)
			}
		})
	}
}

// at returns a change of the VM's address.
func at(address string) func(*Wanted) { return func(w *Wanted) { w.Address = ip(address) } }

// cardOf returns the address of a station's network card.
func cardOf(t *testing.T, s netspace.Station) (card string) {
	t.Helper()
	must(t, s.Do(func() error {
		link, err := netlink.LinkByName("eth0")
		if err == nil {
			card = link.Attrs().HardwareAddr.String()
		}
		return err
	}))
	return card
}

// From a machine with nothing to a VM's network and back, and what another user cannot make swdt remove.
func TestPreparationAndRemoval(t *testing.T) {
	if !netspace.Enter(t) {
		return
	}
	engine := dockertest.Start(t)
	engine.OnMake(func(n dockertest.Network) {
		netspace.MakeBridge(t, n.BridgeName(), netip.PrefixFrom(ip(n.Gateway), prefix(n.Subnet).Bits()))
	})
	d := DockerAt(engine.Host())
	first := Wanted{Mode: Bridge, Bridge: "kind", Tap: "swdt1"}
	second := Wanted{Mode: Bridge, Bridge: "kind", Tap: "swdt2"}
	for _, w := range []Wanted{first, second, first} {
		if _, err := run(t, d, w, Preparation); err != nil {
			t.Fatal(err)
		}
	}
	if states, _ := run(t, d, first, Preparation); states != "ok ok" {
		t.Errorf("a second preparation: %s", states)
	}
	if found := Check(t.Context(), d, first); found.Address != ip("172.18.255.254") || len(found.Problems) > 1 {
		t.Errorf("after the preparation: %+v", found)
	}
	if states, err := run(t, d, first, Removal); err != nil || states != "changed ok" {
		t.Errorf("with another VM on the bridge: %s, %v", states, err)
	}
	theirs := second
	theirs.Owner = 4242
	if states, err := run(t, d, theirs, Removal); err == nil {
		t.Errorf("the tap of another user: %s", states)
	}
	if states, err := run(t, d, second, Removal); err != nil || states != "changed changed" {
		t.Errorf("the last one: %s, %v", states, err)
	}
	if left := engine.Networks(); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}

// run runs the steps and returns their states.
func run(t *testing.T, d Docker, w Wanted, steps func(Docker, Wanted) ([]plan.Step, error)) (string, error) {
	t.Helper()
	all, err := steps(d, w)
	must(t, err)
	results, err := Run(t.Context(), all, false, ui.Discard{})
	var states []string
	for _, step := range results.Steps {
		states = append(states, string(step.State))
	}
	return strings.Join(states, " "), err
}
