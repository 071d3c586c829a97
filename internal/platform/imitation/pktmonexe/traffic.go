package pktmonexe

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"
)

// packet is a packet of the fixed traffic, or of a log.
type packet struct {
	time   time.Time
	data   []byte
	reason string // why the packet was dropped; empty if the packet was not dropped
	seen   int    // the ID of the component that captured the packet
}

// PodMAC is the MAC address of the pod's endpoint, 192.168.15.167.
const PodMAC = "00-15-5D-0A-0F-A7"

// Packets is the number of packets, including dropped ones, of a capture without filters.
const Packets = 8

// traffic returns the packets of a pod and two packets of the node itself. The pod resolves a name,
// connects to a server, is pinged and sends a packet that is dropped. One of the node's packets is
// dropped, too.
func traffic(began time.Time) []packet {
	const tcp, udp, icmp = 6, 17, 1
	frames := []packet{
		{data: frame(udp, "192.168.15.167", 50001, "10.96.0.10", 53)},
		{data: frame(udp, "10.96.0.10", 53, "192.168.15.167", 50001)},
		{data: frame(tcp, "192.168.15.167", 50002, "10.244.2.7", 80)},
		{data: frame(tcp, "10.244.2.7", 80, "192.168.15.167", 50002)},
		{data: frame(icmp, "192.168.122.1", 0, "192.168.15.167", 0)},
		{data: frame(tcp, "192.168.122.220", 10250, "192.168.122.1", 50003)},
		{data: frame(udp, "192.168.15.167", 50004, "10.244.2.8", 4000),
			reason: "INET: transport endpoint was not found"},
		{data: frame(tcp, "192.168.122.1", 50005, "192.168.122.220", 445), reason: "Filtered VLAN"},
	}
	for i, seen := range []int{podNicID, podNicID, podNicID, podNicID, switchID, adapterID, switchID, switchID} {
		frames[i].seen = seen
		frames[i].time = began.Add(time.Duration(i) * time.Millisecond)
	}
	return frames
}

// packets returns the packets of the traffic that the session captures.
func (s state) packets(began time.Time) (all []packet) {
	for _, packet := range traffic(began) {
		passes := len(s.Filters) == 0 || slices.ContainsFunc(s.Filters, func(f filter) bool {
			return f.holds(packet.data)
		})
		if passes && (s.Type != "drop" || packet.reason != "") && (s.Type != "flow" || packet.reason == "") {
			all = append(all, packet)
		}
	}
	return all
}

func (f filter) holds(data []byte) bool {
	d := dissect(data)
	every := func(wanted []string, has func(string) bool) bool {
		return !slices.ContainsFunc(wanted, func(one string) bool { return !has(one) })
	}
	return (f.Protocol == "" || strings.EqualFold(f.Protocol, d.protocol)) &&
		every(f.MACs, func(mac string) bool {
			return slices.Contains(d.macs, strings.ToUpper(strings.ReplaceAll(mac, ":", "-")))
		}) &&
		every(f.Ports, func(port string) bool { return slices.Contains(d.ports, port) }) &&
		every(f.IPs, func(ip string) bool {
			return slices.ContainsFunc(d.ips, func(has netip.Addr) bool { return within(ip, has) })
		})
}

func within(text string, ip netip.Addr) bool {
	if prefix, err := netip.ParsePrefix(text); err == nil {
		return prefix.Contains(ip)
	}
	wanted, err := netip.ParseAddr(text)
	return err == nil && wanted == ip
}

// dissected has the fields of a packet that filters compare; in each pair the source is first.
type dissected struct {
	macs, ports []string
	ips         []netip.Addr
	protocol    string
}

const (
	ethernetHeader = 14
	ipHeader       = 20
)

func dissect(data []byte) dissected {
	d := dissected{macs: []string{mac(data[6:12]), mac(data[:6])}}
	ip := data[ethernetHeader:]
	for _, at := range []int{12, 16} {
		address, _ := netip.AddrFromSlice(ip[at : at+4])
		d.ips = append(d.ips, address)
	}
	d.protocol = map[byte]string{1: "ICMP", 6: "TCP", 17: "UDP"}[ip[9]]
	if d.protocol != "ICMP" {
		for _, at := range []int{ipHeader, ipHeader + 2} {
			d.ports = append(d.ports, strconv.Itoa(int(binary.BigEndian.Uint16(ip[at:]))))
		}
	}
	return d
}

func mac(b []byte) string {
	return fmt.Sprintf("%02X-%02X-%02X-%02X-%02X-%02X", b[0], b[1], b[2], b[3], b[4], b[5])
}

// frame returns an Ethernet frame with an IPv4 packet. The IPv4 header and ICMP have a checksum;
// TCP and UDP have none.
func frame(protocol byte, from string, fromPort uint16, to string, toPort uint16) []byte {
	source, destination := netip.MustParseAddr(from).As4(), netip.MustParseAddr(to).As4()
	body := payload(protocol, fromPort, toPort)
	ip := make([]byte, ipHeader, ipHeader+len(body))
	ip[0], ip[8], ip[9] = 0x45, 128, protocol
	binary.BigEndian.PutUint16(ip[2:], uint16(ipHeader+len(body)))
	copy(ip[12:], source[:])
	copy(ip[16:], destination[:])
	binary.BigEndian.PutUint16(ip[10:], checksum(ip))
	var ethernet []byte
	// Hyper-V's MAC addresses end in bytes of the IP address.
	for _, address := range [][4]byte{destination, source} {
		ethernet = append(ethernet, 0x00, 0x15, 0x5d, 0x0a, address[2], address[3])
	}
	return slices.Concat(ethernet, []byte{0x08, 0x00}, ip, body)
}

func payload(protocol byte, from, to uint16) []byte {
	ports := binary.BigEndian.AppendUint16(binary.BigEndian.AppendUint16(nil, from), to)
	switch protocol {
	case 17:
		return append(ports, 0, 12, 0, 0, 's', 'w', 'd', 't') // without a checksum
	case 6:
		return append(ports, 0, 0, 0, 1, 0, 0, 0, 0, 0x50, 0x02, 0xff, 0xff, 0, 0, 0, 0) // a SYN
	}
	echo := []byte{8, 0, 0, 0, 0, 1, 0, 1}
	binary.BigEndian.PutUint16(echo[2:], checksum(echo))
	return echo
}

func checksum(data []byte) uint16 {
	sum := uint32(0)
	for i := 0; i+1 < len(data); i += 2 {
		sum += uint32(binary.BigEndian.Uint16(data[i:]))
	}
	for sum > 0xffff {
		sum = sum&0xffff + sum>>16
	}
	return ^uint16(sum)
}
