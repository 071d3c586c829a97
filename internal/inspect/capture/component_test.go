package capture

import (
	"net/netip"
	"testing"

	"github.com/swdt-dev/swdt/internal/format/pcapng"
	"github.com/swdt-dev/swdt/internal/inspect/hns"
)

// componentList is the output of pktmon, with numbers as numbers or, as in other builds, as
// text.
const componentList = "\ufeff" + `[
  {"Group": "Ethernet", "Components": [
    {"Name": "Microsoft Hyper-V Network Adapter", "Type": "NetVsc", "Id": 5, "SecondaryId": 6,
     "Properties": [{"Name": "MAC Address", "Value": "00-15-5D-7A-01-DC"}, {"Name": "ifIndex", "Value": 4}]}]},
  {"Group": "Calico", "Components": [
    {"Name": "vmswitch.sys", "Type": "Filter", "Id": "12", "Properties": []},
    {"Name": "Container NIC 2be5eaa5", "Type": "Host vNIC", "Id": 30,
     "Properties": [{"Name": "MAC Address", "Value": "00:15:5d:0a:0f:a7"}]},
    {"Name": "Container NIC remote", "Type": "Host vNIC", "Id": 31,
     "Properties": [{"Name": "MAC Address", "Value": "00-15-5D-0A-0F-A8"}]}]}]`

func TestComponentsHaveTheirOwners(t *testing.T) {
	all, err := parseComponents(componentList)
	switch {
	case err != nil:
		t.Fatalf("unexpected error: %v", err)
	case len(all) != 4:
		t.Fatalf("len(all) = %v, want 4: %+v", len(all), all)
	case all["12"].Name != "vmswitch.sys":
		t.Fatalf("all[\"12\"].Name = %q, want %q", all["12"].Name, "vmswitch.sys")
	case all["5"].MAC != "00-15-5D-7A-01-DC":
		t.Fatalf("all[\"5\"].MAC = %q, want %q; %+v, %v", all["5"].MAC, "00-15-5D-7A-01-DC", all, err)
	}
	state := hns.State{Endpoints: []hns.Endpoint{
		{ID: "E", Name: "sandbox1_Calico", MAC: "00-15-5D-0A-0F-A7"},
		{ID: "R", Name: "sandbox1_remote", MAC: "00-15-5D-0A-0F-A8", Remote: true},
		{ID: "N", Name: "nobody", MAC: "00-15-5D-7A-01-DC"},
	}}
	Own(all, state, hns.Known{Runtime: true, Here: []hns.Pod{{Namespace: "default", Name: "web", Sandbox: "sandbox1"}}})
	for id, pod := range map[string]string{"5": "", "12": "", "30": "default/web", "31": ""} {
		if all[id].Pod != pod {
			t.Errorf("component %s is of %q, not of %q", id, all[id].Pod, pod)
		}
	}
	for _, other := range []string{"", "Fehler: unbekannter Befehl", "{}"} {
		if all, err := parseComponents(other); err != nil || len(all) != 0 {
			t.Errorf("%q: %v, %v", other, all, err)
		}
	}
	if _, err := parseComponents(`[{"Group": 1`); err == nil {
		t.Error("what is cut off is read")
	}
}

// The pod of the adapter that saw a packet takes precedence; then the pod of its addresses;
// then the component that saw it.
func TestTheInterfaceOfAPacket(t *testing.T) {
	n := Names{
		Node: "win-1", Pods: map[netip.Addr]string{netip.MustParseAddr("10.0.0.1"): "default/a"},
		Components: map[string]Component{"12": {ID: "12", Name: "vmswitch.sys"},
			"30": {ID: "30", Name: "NIC", Pod: "default/b"}},
	}
	fromA, stranger := ipv4([4]byte{10, 0, 0, 1}, [4]byte{10, 0, 0, 9}),
		ipv4([4]byte{10, 0, 0, 8}, [4]byte{10, 0, 0, 9})
	for _, c := range []struct {
		component         string
		data              []byte
		link              uint16
		name, description string
	}{
		{"30", fromA, pcapng.Ethernet, "win-1/default/b", "component 30: NIC"},
		{"12", fromA, pcapng.Ethernet, "win-1/default/a", "component 12: vmswitch.sys"},
		{"12", stranger, pcapng.Ethernet, "win-1/vmswitch.sys", "component 12: vmswitch.sys"},
		{"", fromA, pcapng.Ethernet, "win-1/default/a", ""},
		{"99", stranger, pcapng.Ethernet, "win-1", ""},
		{"", fromA, 101, "win-1", ""},
	} {
		if name, description := n.interfaceOf(c.component, c.data, c.link); name != c.name ||
			description != c.description {
			t.Errorf("component %q: %q, %q; want %q, %q", c.component, name, description, c.name, c.description)
		}
	}
}

// ipv4 returns the beginning of an Ethernet frame with an IPv4 packet.
func ipv4(from, to [4]byte) []byte {
	frame := make([]byte, 14+20)
	frame[12] = 0x08
	copy(frame[14+12:], from[:])
	copy(frame[14+16:], to[:])
	return frame
}

// The sightings of a text belong to the packets only if their numbers and sizes agree.
func TestSightingsThatDoNotMatch(t *testing.T) {
	part := round(t, "a", 1, 2) // two packets of one byte each
	for name, c := range map[string]struct {
		sightings []Sighting
		want      int
	}{
		"as they are":              {[]Sighting{{Size: 1}, {Size: 1}}, 2},
		"without a size":           {[]Sighting{{}, {}}, 2},
		"one too few":              {[]Sighting{{Size: 1}}, 0},
		"one too many":             {[]Sighting{{Size: 1}, {Size: 1}, {Size: 1}}, 0},
		"of another size":          {[]Sighting{{Size: 1}, {Size: 9}}, 0},
		"nothing is known of them": {nil, 0},
	} {
		got, err := match(part.Export.Packets, c.sightings)
		if err != nil || len(got) != c.want {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
}

// A line of a live capture names the component that saw the packet, if its name is known.
func TestPacketLineNamesItsComponent(t *testing.T) {
	n := Names{Components: map[string]Component{"12": {ID: "12", Name: "vmswitch.sys"},
		"30": {ID: "30", Name: "NIC", Pod: "default/b"}}}
	for component, want := range map[string]string{
		"30": "component 30 (default/b)  ip", "12": "component 12 (vmswitch.sys)  ip", "99": "component 99  ip",
		"": "ip",
	} {
		if line := n.Of(Packet{Component: component, Text: "ip"}).String(); line != want {
			t.Errorf("%q, not %q", line, want)
		}
	}
}
