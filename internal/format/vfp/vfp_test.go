package vfp_test

import (
	"testing"

	"github.com/swdt-dev/swdt/internal/format/vfp"
)

// The output of vfpctrl about ports, as text and as JSON.
const (
	portsText = "ITEM LIST\r\n===========\r\n\r\n" +
		"  Port name             : 4FD72AB0-2C35-4AE7-AC9A-F893495BD5EF\r\n  Port Friendly name    : Container NIC " +
		"6c50381c\r\n" +
		"  Switch name           : 04F2CC76-AE71-4E04-9B0B-D3F27D8BC4E3\r\n  Switch Friendly name  : ext\r\n  PortId  " +
		"              : 1\r\n" +
		"  VMQ Usage             : 0\r\n  Port is Initialized.\r\n  MAC address           : 00-15-5D-7A-01-DC\r\n  " +
		"Ingress Packet Drops  : Security : 3\r\n\r\n" +
		"  Port name             : 1666B12E-5204-46FB-A42E-1295AE2DF63A\r\n  Port Friendly name    : " +
		"B5F4E943-756D-4EE8-A70C-DF5AD7C74715\r\n" +
		"  MAC address           : 00-15-5D-0A-0F-A7\r\n\r\nCommand list-vmswitch-port succeeded!\r\n"
	portsJSON = "\ufeff" +
		`{"Ports":[{"$type":"x","Id":"Container NIC 6c50381c",` +
		`"Name":"4FD72AB0-2C35-4AE7-AC9A-F893495BD5EF","VmsPortId":1,"MacAddress":"00155D7A01DC"},
		{"Id":"B5F4E943-756D-4EE8-A70C-DF5AD7C74715",` +
		`"Name":"1666B12E-5204-46FB-A42E-1295AE2DF63A","VmsPortId":2,"MacAddress":"00155D0A0FA7"}]}`
)

func TestPorts(t *testing.T) {
	for name, c := range map[string]struct{ printed, mac, network string }{
		"text": {portsText, "00-15-5D-7A-01-DC", "ext"}, "JSON": {portsJSON, "00155D7A01DC", ""},
	} {
		ports := vfp.ParsePorts(c.printed)
		want := vfp.Port{Name: "4FD72AB0-2C35-4AE7-AC9A-F893495BD5EF", Label: "Container NIC 6c50381c",
			Switch: c.network, MAC: c.mac}
		switch {
		case len(ports) != 2:
			t.Errorf("%s: ports has %d elements, want 2: %v", name, len(ports), ports)
		case ports[0] != want:
			t.Errorf("%s: ports[0] is %v, want %v", name, ports[0], want)
		case ports[1].Label != "B5F4E943-756D-4EE8-A70C-DF5AD7C74715":
			t.Errorf("%s: ports[1].Label is %q, want %q", name, ports[1].Label, "B5F4E943-756D-4EE8-A70C-DF5AD7C74715")
		}
	}
	for _, nonsense := range []string{"", "unknown command", "{", "[]", `{"Ports": 5}`, "Port friendly name : x"} {
		if ports := vfp.ParsePorts(nonsense); len(ports) != 0 {
			t.Errorf("%q: ports is %v, want it empty", nonsense, ports)
		}
	}
}

// Its output about counters.
const (
	countersText = "ITEM LIST\r\n===========\r\n\r\nDirection - OUT\r\n  Total packets : 120\r\n  SYN packets : 12\r\n" +
		"  SYN-ACK packets : 11\r\n  Dropped ACL packets : 0\r\n" +
		"\r\nDirection - IN\r\n  Total packets : 80\r\n  SYN packets : 2\r\n  Dropped packets : 4\r\n  Dropped ACL " +
		"packets : 3\r\n  Drops : by others : 1\r\n\r\nCommand get-port-counter succeeded!\r\n"
	countersJSON = `{"InformationArray":[` +
		`{"PortCounters":{"Direction":0,"TotalPackets":120,"TotalBytes":"7680","DroppedAcl":0}},
		{"PortCounters":{"Direction":1,"TotalPackets":80,"DroppedPackets":4,"DroppedAcl":3,"$type":"x","DropsByOthers":1}}]}`
	// One object instead of a list, since PowerShell accepts both.
	countersNested = `{"InformationArray":{"PortCounters":[{"Direction":0,"TotalPackets":120,"TotalBytes":7680},` +
		`{"Direction":1,"TotalPackets":80,"DroppedPackets":4,"DroppedAcl":3,"DropsByOthers":1}]}}`
)

func TestCounters(t *testing.T) {
	for name, printed := range map[string]string{"text": countersText, "JSON": countersJSON, "nested": countersNested} {
		all := vfp.ParseCounters(printed)
		switch {
		case len(all) != 2:
			t.Fatalf("%s: all has %d elements, want 2: %v", name, len(all), all)
		case all[0].Direction != vfp.Out:
			t.Fatalf("%s: all[0].Direction is %v, want %v", name, all[0].Direction, vfp.Out)
		case all[1].Direction != vfp.In:
			t.Fatalf("%s: all[1].Direction is %v, want %v", name, all[1].Direction, vfp.In)
		}
		if out, ok := all[0].Total("packets"); !ok || out != 120 {
			t.Errorf("%s: %d packets out, %v", name, out, ok)
		}
		if in, ok := all[1].Total("packets"); !ok || in != 80 {
			t.Errorf("%s: %d packets in, %v", name, in, ok)
		}
		if bytes, ok := all[0].Total("bytes"); ok != (name != "text") || ok && bytes != 7680 {
			t.Errorf("%s: %d bytes, %v", name, bytes, ok)
		}
		if dropped, ok := all[1].Dropped(); !ok || dropped != 4 {
			t.Errorf("%s: %d dropped, %v", name, dropped, ok)
		}
		switch reasons := all[1].Reasons(); {
		case len(reasons) != 2:
			t.Errorf("%s: reasons has %d elements, want 2: %v", name, len(reasons), reasons)
		case reasons[0].Count != 3:
			t.Errorf("%s: reasons[0].Count is %v, want 3", name, reasons[0].Count)
		case reasons[1].Count != 1:
			t.Errorf("%s: reasons[1].Count is %v, want 1", name, reasons[1].Count)
		}
		if reasons := all[0].Reasons(); len(reasons) != 0 {
			t.Errorf("%s: reasons is %v, want it empty", name, reasons)
		}
	}
	for _, nonsense := range []string{"", "unknown command", "{", "[]", `{"InformationArray": 5}`, "SYN packets : 5"} {
		if all := vfp.ParseCounters(nonsense); len(all) != 0 {
			t.Errorf("%q: all is %v, want it empty", nonsense, all)
		}
	}
}
