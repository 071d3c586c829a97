package capture_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/swdt-dev/swdt/internal/format/vfp"
	"github.com/swdt-dev/swdt/internal/inspect/capture"
	"github.com/swdt-dev/swdt/internal/inspect/hns"
	vfpctrl "github.com/swdt-dev/swdt/internal/platform/imitation/vfpctrlexe"
	"github.com/swdt-dev/swdt/internal/platform/simulated"
	"github.com/swdt-dev/swdt/internal/testing/nodetest"
	"github.com/swdt-dev/swdt/internal/wire/fault"
)

// The ports of a node's switch with their owners and counters, from a vfpctrl that prints
// JSON and from an older one.
func TestThePortsOfASwitch(t *testing.T) {
	for name, plain := range map[string]bool{"JSON": false, "text": true} {
		t.Run(name, func(t *testing.T) {
			n := nodetest.Start(t, "win-1", simulated.Options{})
			if plain {
				n.Machine.WriteFile(vfpctrl.PlainFile, nil)
			}
			ports, err := capture.SwitchPorts(t.Context(), n.Processes)
			if err != nil || len(ports) < 3 {
				t.Fatalf("%+v, %v", ports, err)
			}
			state, err := hns.Read(t.Context(), n.Compute)
			if err != nil {
				t.Fatal(err)
			}
			burner := slices.IndexFunc(state.Endpoints, func(e hns.Endpoint) bool { return e.IP() == "192.168.15.167" })
			known := hns.Known{Runtime: true,
				Here: []hns.Pod{{Namespace: "default", Name: "burner", IPs: []string{"192.168.15.167"}}}}
			capture.OwnPorts(ports, state, known)
			switch {
			case ports[0].Label != "ExternalPort":
				t.Errorf("ports[0].Label = %q, want %q", ports[0].Label, "ExternalPort")
			case ports[0].Pod != hns.None:
				t.Errorf("ports[0].Pod = %v, want %v", ports[0].Pod, hns.None)
			case ports[0].Endpoint != "":
				t.Errorf("ports[0].Endpoint = %q, want %q; %+v", ports[0].Endpoint, "", ports[0])
			}
			at := slices.IndexFunc(ports, func(p capture.SwitchPort) bool { return p.Pod == "default/burner" })
			if at < 0 || ports[at].Endpoint != state.Endpoints[burner].ID {
				t.Fatalf("%+v", ports)
			}
			if err := ports[at].Count(t.Context(), n.Processes); err != nil {
				t.Fatal(err)
			}
			if len(ports[at].Counters) != 2 || ports[at].Raw != "" {
				t.Fatalf("%+v", ports[at])
			}
			in := ports[at].Counters[1]
			packets, _ := in.Total("packets")
			switch dropped, _ := in.Dropped(); {
			case in.Direction != vfp.In:
				t.Errorf("in.Direction = %v, want %v", in.Direction, vfp.In)
			case packets == 0:
				t.Error("packets = 0")
			case dropped != 2:
				t.Errorf("dropped = %v, want 2", dropped)
			case len(in.Reasons()) != 1:
				t.Errorf("len(in.Reasons()) is wrong; %+v", in)
			}
		})
	}
}

// A port is found by its MAC address alone, but not if its endpoint is on another node.
func TestAPortByItsAddress(t *testing.T) {
	ports := []capture.SwitchPort{{Port: vfp.Port{Label: "x", MAC: "00155D0A0FA7"}}, {Port: vfp.Port{Label: "REMOTE"}}}
	state := hns.State{Endpoints: []hns.Endpoint{
		{ID: "REMOTE", MAC: "00-15-5D-0A-0F-A7", Remote: true},
		{ID: "LOCAL", Name: "sandbox_eth", MAC: "00-15-5d-0a-0f-a7"},
	}}
	capture.OwnPorts(ports,
		state, hns.Known{Runtime: true, Here: []hns.Pod{{Namespace: "a", Name: "b", Sandbox: "sandbox"}}})
	switch {
	case ports[0].Endpoint != "LOCAL":
		t.Errorf("ports[0].Endpoint = %q, want %q", ports[0].Endpoint, "LOCAL")
	case ports[0].Pod != "a/b":
		t.Errorf("ports[0].Pod = %q, want %q", ports[0].Pod, "a/b")
	case ports[1].Endpoint != "":
		t.Errorf("ports[1].Endpoint = %q, want %q", ports[1].Endpoint, "")
	case ports[1].Pod != hns.None:
		t.Errorf("ports[1].Pod = %v, want %v; %+v", ports[1].Pod, hns.None, ports)
	}
}

func TestVfpctrlMissingOrRefusing(t *testing.T) {
	n := nodetest.Start(t, "win-1", simulated.Options{})
	port := capture.SwitchPort{Port: vfp.Port{Name: "2BE5EAA5-2F4D-4D85-8F6E-0C6C0F1C3A11"}}
	var refused *capture.VFPError
	if err := port.Count(t.Context(), n.Processes); !errors.As(err, &refused) || refused.Code != 1 {
		t.Errorf("%v", err)
	}
	if err := n.Files.Remove(`C:\Windows\System32\vfpctrl.exe`); err != nil {
		t.Fatal(err)
	}
	if _, err := capture.SwitchPorts(t.Context(), n.Processes); !errors.Is(err, fault.ErrNotSupported) {
		t.Errorf("%v", err)
	}
}
