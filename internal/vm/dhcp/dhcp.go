// Package dhcp gives one guest its address: it answers the DHCP requests of one network
// card, and reports whether the guest uses the address.
//
// Serve reads copies of the frames that the guest sends, and writes frames that only this guest
// receives. So Serve needs no port and no rights, and no other machine on the network can reach it.
//
//   - dhcp.go: the lease, and the answer to a message
//   - frame.go: Ethernet, IPv4, UDP and ARP, as far as DHCP needs them
//   - serve.go: answering until the guest uses the address
//
// # Trust
//
// The guest is hostile. It can get no other address than the lease's. Serve skips a frame that is
// too short or sent by another card, reads no DHCP message from a fragment, and returns an error for
// a packet that is too long. Every loop and length has a bound.
package dhcp

import (
	"errors"
	"fmt"
	"math"
	"net"
	"net/netip"
	"time"

	"github.com/insomniacslk/dhcp/dhcpv4"
)

// Lease is the configuration of a guest's network card.
type Lease struct {
	MAC     net.HardwareAddr
	Address netip.Prefix // the guest's IPv4 address, with the length of its subnet's prefix
	Gateway netip.Addr   // the router's address, which the answers also name as the DHCP server
	DNS     []netip.Addr
}

// forever is the length of the lease: RFC 2131's infinity. So a guest keeps its address also while
// no swdt runs.
const forever = math.MaxUint32 * time.Second

// Valid returns an error if a guest cannot use the lease.
func (l Lease) Valid() error {
	switch {
	case len(l.MAC) != 6:
		return fmt.Errorf("%q is not the address of a network card", l.MAC)
	case !l.Address.IsValid() || !l.Address.Addr().Is4():
		return fmt.Errorf("%s is not an IPv4 address with the length of a prefix", l.Address)
	case !l.Address.Contains(l.Gateway) || l.Gateway == l.Address.Addr():
		return fmt.Errorf("the gateway %s is the guest's own address, or not in the subnet %s", l.Gateway, l.Address.Masked())
	}
	return nil
}

// errNotForUs is returned for a message that this server must not answer.
var errNotForUs = errors.New("the message is not for this server")

// event is the meaning of a guest's message.
type event int

const (
	nothing  event = iota
	offered        // DHCPDISCOVER: the guest looks for a server, and the answer offers the address
	accepted       // DHCPREQUEST for the lease's address: the answer accepts the request
	refused        // DHCPREQUEST for another address: the answer refuses the request
	declined       // DHCPDECLINE: the guest has found another machine at the address
	used           // the guest has sent a frame from the address
)

// answer returns the answer to a message of the guest, the meaning of the message, and the parsed
// message. The answer is nil if the message needs none.
func (l Lease) answer(message []byte) ([]byte, event, *dhcpv4.DHCPv4) {
	request, err := dhcpv4.FromBytes(message)
	if err != nil || l.mine(request) != nil {
		return nil, nothing, nil
	}
	kind, meaning := dhcpv4.MessageTypeNone, nothing
	switch request.MessageType() {
	case dhcpv4.MessageTypeDiscover:
		kind, meaning = dhcpv4.MessageTypeOffer, offered
	case dhcpv4.MessageTypeRequest:
		kind, meaning = l.judge(request)
	case dhcpv4.MessageTypeInform:
		kind = dhcpv4.MessageTypeAck
	case dhcpv4.MessageTypeDecline:
		meaning = declined
	default:
	}
	if kind == dhcpv4.MessageTypeNone {
		return nil, meaning, request
	}
	reply, err := l.reply(request, kind)
	if err != nil {
		return nil, nothing, nil
	}
	return reply.ToBytes(), meaning, request
}

// mine returns an error unless a message is a request of the lease's card to this server.
func (l Lease) mine(request *dhcpv4.DHCPv4) error {
	server := request.ServerIdentifier()
	switch {
	case request.OpCode != dhcpv4.OpcodeBootRequest, request.ClientHWAddr.String() != l.MAC.String():
		return errNotForUs
	case !request.GatewayIPAddr.IsUnspecified(): // the message came through a relay, which swdt never needs
		return errNotForUs
	case server != nil && !server.Equal(l.Gateway.AsSlice()):
		return errNotForUs
	}
	return nil
}

// judge accepts a request for the address of the lease, and refuses a request for any other
// address.
func (l Lease) judge(request *dhcpv4.DHCPv4) (dhcpv4.MessageType, event) {
	wanted := request.RequestedIPAddress()
	if wanted == nil {
		wanted = request.ClientIPAddr
	}
	if wanted.Equal(l.Address.Addr().AsSlice()) {
		return dhcpv4.MessageTypeAck, accepted
	}
	return dhcpv4.MessageTypeNak, refused
}

// reply returns the answer of this kind to a request.
func (l Lease) reply(request *dhcpv4.DHCPv4, kind dhcpv4.MessageType) (*dhcpv4.DHCPv4, error) {
	options := []dhcpv4.Modifier{
		dhcpv4.WithMessageType(kind),
		dhcpv4.WithOption(dhcpv4.OptServerIdentifier(l.Gateway.AsSlice())),
	}
	if kind == dhcpv4.MessageTypeNak {
		return dhcpv4.NewReplyFromRequest(request, options...)
	}
	options = append(options,
		dhcpv4.WithNetmask(net.CIDRMask(l.Address.Bits(), l.Address.Addr().BitLen())),
		dhcpv4.WithRouter(l.Gateway.AsSlice()))
	for _, server := range l.DNS {
		options = append(options, withDNS(server))
	}
	if request.MessageType() != dhcpv4.MessageTypeInform {
		options = append(options, dhcpv4.WithYourIP(l.Address.Addr().AsSlice()),
			dhcpv4.WithOption(dhcpv4.OptIPAddressLeaseTime(forever)))
	}
	return dhcpv4.NewReplyFromRequest(request, options...)
}

// withDNS returns a modifier that adds a DNS server to a message.
func withDNS(server netip.Addr) dhcpv4.Modifier {
	return func(m *dhcpv4.DHCPv4) {
		m.UpdateOption(dhcpv4.OptDNS(append(m.DNS(), server.AsSlice())...))
	}
}
