package dhcp

import (
	"bytes"
	"encoding/binary"
	"net"
	"net/netip"
)

// Lengths and numbers of Ethernet, IPv4, UDP and ARP.
const (
	ethernetLength = 14
	ipLength       = 20 // without options
	udpLength      = 8
	arpLength      = 28

	typeIPv4, typeARP      = 0x0800, 0x0806
	protocolUDP            = 17
	serverPort, clientPort = 67, 68
	hops                   = 64
)

// serverMAC returns the MAC address from which the answers are sent: a locally administered address
// that no card has.
func serverMAC() net.HardwareAddr { return net.HardwareAddr{0x02, 's', 'w', 'd', 't', 0} }

// frame is an Ethernet frame that a guest has sent.
type frame struct {
	kind    uint16
	payload []byte
}

// parseFrame parses a frame that the card with this MAC address has sent. ok is false if another
// card has sent the frame or the frame is too short.
func parseFrame(data []byte, mac net.HardwareAddr) (f frame, ok bool) {
	if len(data) < ethernetLength || !bytes.Equal(data[6:12], mac) {
		return frame{}, false
	}
	return frame{binary.BigEndian.Uint16(data[12:]), data[ethernetLength:]}, true
}

// source returns the IPv4 address that the guest uses in a frame. It is invalid if the frame has
// none, as when a guest only asks whether an address is free.
func (f frame) source() netip.Addr {
	var a netip.Addr
	switch {
	case f.kind == typeARP && len(f.payload) >= arpLength &&
		bytes.Equal(f.payload[:6], []byte{0, 1, typeIPv4 >> 8, 0, 6, 4}):
		a = netip.AddrFrom4([4]byte(f.payload[14:18]))
	case f.kind == typeIPv4 && len(f.payload) >= ipLength && f.payload[0]>>4 == 4:
		a = netip.AddrFrom4([4]byte(f.payload[12:16]))
	}
	if !a.IsValid() || a.IsUnspecified() {
		return netip.Addr{}
	}
	return a
}

// message returns the DHCP message in a frame; nil if there is none.
func (f frame) message() []byte {
	p := f.payload
	if f.kind != typeIPv4 || len(p) < ipLength || p[0]>>4 != 4 || p[9] != protocolUDP {
		return nil
	}
	header, total := int(p[0]&0xf)*4, int(binary.BigEndian.Uint16(p[2:]))
	const fragment = 0x3fff // bits of the flag "more fragments" and of the fragment's offset
	if header < ipLength || total > len(p) || total < header+udpLength || binary.BigEndian.Uint16(p[6:])&fragment != 0 {
		return nil
	}
	udp := p[header:total]
	length := int(binary.BigEndian.Uint16(udp[4:]))
	if binary.BigEndian.Uint16(udp[2:]) != serverPort || length < udpLength || length > len(udp) {
		return nil
	}
	return udp[udpLength:length]
}

// wrap returns the frame that carries an answer to the guest. If broadcast is true, the frame goes
// to the broadcast address, as a guest may request if it has no address yet.
func (l Lease) wrap(message []byte, broadcast bool) []byte {
	to, card := l.Address.Addr(), l.MAC
	if broadcast {
		to, card = netip.AddrFrom4([4]byte{255, 255, 255, 255}), net.HardwareAddr{255, 255, 255, 255, 255, 255}
	}
	from := l.Gateway.As4()
	destination := to.As4()
	udp := make([]byte, udpLength, udpLength+len(message))
	binary.BigEndian.PutUint16(udp, serverPort)
	binary.BigEndian.PutUint16(udp[2:], clientPort)
	binary.BigEndian.PutUint16(udp[4:], uint16(udpLength+len(message)))
	udp = append(udp, message...)

	ip := make([]byte, ipLength)
	ip[0], ip[8], ip[9] = 4<<4|ipLength/4, hops, protocolUDP
	binary.BigEndian.PutUint16(ip[2:], uint16(ipLength+len(udp)))
	copy(ip[12:], from[:])
	copy(ip[16:], destination[:])
	binary.BigEndian.PutUint16(ip[10:], checksum(ip))

	pseudo := append(append([]byte{}, ip[12:20]...), 0, protocolUDP, udp[4], udp[5])
	sum := checksum(append(pseudo, udp...))
	if sum == 0 {
		sum = 0xffff // the value 0 would mean that the packet has no checksum
	}
	binary.BigEndian.PutUint16(udp[6:], sum)

	framed := append(append([]byte{}, card...), serverMAC()...)
	framed = binary.BigEndian.AppendUint16(framed, typeIPv4)
	return append(append(framed, ip...), udp...)
}

// checksum returns the checksum of IP and UDP (RFC 1071) over data.
func checksum(data []byte) uint16 {
	var sum uint32
	for ; len(data) > 1; data = data[2:] {
		sum += uint32(binary.BigEndian.Uint16(data))
	}
	if len(data) == 1 {
		sum += uint32(data[0]) << 8
	}
	for sum > 0xffff {
		sum = sum>>16 + sum&0xffff
	}
	return ^uint16(sum)
}
