package dhcp

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"math"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/insomniacslk/dhcp/dhcpv4"
)

var (
	ours   = net.HardwareAddr{0x52, 0x54, 0, 1, 2, 3}
	theirs = net.HardwareAddr{0x52, 0x54, 0, 9, 9, 9}
)

func lease() Lease {
	return Lease{
		MAC: ours, Address: netip.MustParsePrefix("172.18.255.254/16"), Gateway: netip.MustParseAddr("172.18.0.1"),
		DNS: []netip.Addr{netip.MustParseAddr("10.1.1.1"), netip.MustParseAddr("10.1.1.2")},
	}
}

// sent returns a message of a guest in QEMU's form, in a frame of card.
func sent(card net.HardwareAddr, m *dhcpv4.DHCPv4) []byte {
	framed := lease().wrap(m.ToBytes(), true) // to the broadcast address, but from the server's port
	copy(framed[6:], card)
	binary.BigEndian.PutUint16(framed[ethernetLength+ipLength:], clientPort)
	binary.BigEndian.PutUint16(framed[ethernetLength+ipLength+2:], serverPort)
	return packed(framed, 12)
}

func packed(framed []byte, header int) []byte {
	out := binary.BigEndian.AppendUint32(nil, uint32(header+len(framed)))
	out = binary.BigEndian.AppendUint32(out, uint32(header))
	return append(append(out, make([]byte, header)...), framed...)
}

// uses returns an ARP request that a guest sends from an address.
func uses(card net.HardwareAddr, address string) []byte {
	arp := append([]byte{0, 1, 8, 0, 6, 4, 0, 1}, card...)
	arp = append(arp, netip.MustParseAddr(address).AsSlice()...)
	arp = append(arp, make([]byte, 10)...)
	framed := append([]byte{255, 255, 255, 255, 255, 255}, card...)
	return packed(append(append(framed, 8, 6), arp...), 0)
}

func message(t *testing.T, card net.HardwareAddr, options ...dhcpv4.Modifier) *dhcpv4.DHCPv4 {
	t.Helper()
	m, err := dhcpv4.New(append([]dhcpv4.Modifier{dhcpv4.WithHwAddr(card)}, options...)...)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func discover(t *testing.T, card net.HardwareAddr, more ...dhcpv4.Modifier) []byte {
	t.Helper()
	return sent(card, message(t, card, append(more, dhcpv4.WithMessageType(dhcpv4.MessageTypeDiscover))...))
}

func request(t *testing.T, card net.HardwareAddr, address string, more ...dhcpv4.Modifier) []byte {
	t.Helper()
	return sent(card, message(t, card, append(more, dhcpv4.WithMessageType(dhcpv4.MessageTypeRequest),
		dhcpv4.WithOption(dhcpv4.OptRequestedIPAddress(net.ParseIP(address))))...))
}

// answered collects answers.
type answered struct {
	mu  sync.Mutex
	all bytes.Buffer
}

func (a *answered) Write(data []byte) (int, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.all.Write(data)
}

// parsed returns the answers until now.
func (a *answered) parsed(t *testing.T) (answers []*dhcpv4.DHCPv4) {
	t.Helper()
	a.mu.Lock()
	defer a.mu.Unlock()
	for a.all.Len() > 0 {
		p, err := readPacket(&a.all)
		if err != nil {
			t.Fatal(err)
		}
		answers = append(answers, parseAnswer(t, p))
	}
	return answers
}

// run serves packets, then the end of the connection, and returns the answers.
func run(t *testing.T, packets ...[]byte) (answers []*dhcpv4.DHCPv4, heard Heard, err error) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		var out answered
		from, guest := io.Pipe()
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			for _, p := range packets {
				if _, err := guest.Write(p); err != nil {
					return
				}
				synctest.Wait() // the answer is written
			}
			time.Sleep(2 * settleLimit)
			_ = guest.Close()
		}()
		heard, err = Serve(t.Context(), lease(), from, &out)
		_ = from.Close()
		<-ended
		answers = out.parsed(t)
	})
	return answers, heard, err
}

// parseAnswer checks a frame as a guest's kernel does.
func parseAnswer(t *testing.T, p packet) *dhcpv4.DHCPv4 {
	t.Helper()
	framed := p.data[p.header:]
	ip := framed[ethernetLength : ethernetLength+ipLength]
	udp := framed[ethernetLength+ipLength:]
	pseudo := append(append(append([]byte{}, ip[12:]...), 0, protocolUDP, udp[4], udp[5]), udp...)
	if checksum(ip) != 0 || checksum(pseudo) != 0 {
		t.Errorf("the checksums of %x are wrong", framed)
	}
	m, err := dhcpv4.FromBytes(udp[udpLength:])
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func TestAGuestGetsItsAddress(t *testing.T) {
	server := dhcpv4.WithOption(dhcpv4.OptServerIdentifier(net.ParseIP("172.18.0.1")))
	answers, heard, err := run(t,
		discover(t, ours), request(t, ours, "172.18.255.254", server), uses(ours, "172.18.255.254"))
	if err != nil || len(answers) != 2 {
		t.Fatalf("%d answers, %v", len(answers), err)
	}
	if diff := cmp.Diff(Heard{Frames: 3, Requests: 2}, heard); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for i, kind := range []dhcpv4.MessageType{dhcpv4.MessageTypeOffer, dhcpv4.MessageTypeAck} {
		type answer struct {
			Kind                  dhcpv4.MessageType
			Address, Server, Mask string
			Router, DNS           []string
			Lease                 time.Duration
		}
		a := answers[i]
		got := answer{a.MessageType(), a.YourIPAddr.String(), a.ServerIdentifier().String(), net.IP(a.SubnetMask()).String(),
			texts(a.Router()), texts(a.DNS()), a.IPAddressLeaseTime(0)}
		want := answer{kind, "172.18.255.254", "172.18.0.1", "255.255.0.0", []string{"172.18.0.1"},
			[]string{"10.1.1.1", "10.1.1.2"}, math.MaxUint32 * time.Second}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("answer %d (-want +got):\n%s", i, diff)
		}
	}
}

func texts(all []net.IP) (lines []string) {
	for _, ip := range all {
		lines = append(lines, ip.String())
	}
	return lines
}

// A guest that takes the address and is then quiet has it too.
func TestAQuietGuest(t *testing.T) {
	if answers, _, err := run(t, request(t, ours, "172.18.255.254")); err != nil || len(answers) != 1 {
		t.Errorf("%d answers, %v", len(answers), err)
	}
}

// Each of these gains nothing: no answer, or a refusal.
func TestHostileGuests(t *testing.T) {
	foreign := message(t, theirs, dhcpv4.WithMessageType(dhcpv4.MessageTypeDiscover))
	relayed := dhcpv4.WithGatewayIP(net.ParseIP("10.0.0.1"))
	other := dhcpv4.WithOption(dhcpv4.OptServerIdentifier(net.ParseIP("172.18.0.9")))
	reply := func(m *dhcpv4.DHCPv4) { m.OpCode = dhcpv4.OpcodeBootReply }
	fragment := discover(t, ours)
	fragment[8+12+ethernetLength+6] = 0x20
	long := discover(t, ours)
	long[8+12+ethernetLength+ipLength+4] = 0xff
	for name, p := range map[string][]byte{
		"another card":                  discover(t, theirs),
		"our card, another inside":      sent(ours, foreign),
		"another card, ours inside":     sent(theirs, message(t, ours, dhcpv4.WithMessageType(dhcpv4.MessageTypeDiscover))),
		"through a relay":               discover(t, ours, relayed),
		"to another server":             discover(t, ours, other),
		"an answer":                     discover(t, ours, reply),
		"a fragment":                    fragment,
		"longer than its frame":         long,
		"another machine's address":     uses(theirs, "172.18.255.254"),
		"an empty packet":               packed(nil, 0),
		"a header alone":                packed(nil, 12),
		"no message type":               sent(ours, message(t, ours)),
		"the options end in the middle": packed(discover(t, ours)[8+12:len(discover(t, ours))-30], 0),
	} {
		t.Run(name, func(t *testing.T) {
			answers, _, err := run(t, p)
			if len(answers) != 0 || !errors.Is(err, io.EOF) {
				t.Errorf("%d answers, %v", len(answers), err)
			}
		})
	}
	answers, _, err := run(t, request(t, ours, "172.18.0.1"))
	if !errors.Is(err, io.EOF) {
		t.Errorf("a request for the gateway's address: %v, want the end of the packets", err)
	}
	if len(answers) != 1 || answers[0].MessageType() != dhcpv4.MessageTypeNak {
		t.Fatalf("a request for the gateway's address is answered by %v, want one refusal", answers)
	}
	if answers[0].IPAddressLeaseTime(0) != 0 || !answers[0].YourIPAddr.IsUnspecified() {
		t.Errorf("the refusal has an address: %v", answers[0])
	}
}

func TestOtherEndings(t *testing.T) {
	decline := sent(ours, message(t, ours, dhcpv4.WithMessageType(dhcpv4.MessageTypeDecline)))
	if _, _, err := run(t, request(t, ours, "172.18.255.254"), decline); !errors.Is(err, ErrDeclined) {
		t.Errorf("after the guest declined: %v", err)
	}
	packets := [][]byte{uses(ours, "10.0.0.9"), uses(ours, "10.0.0.9")}
	for i := range byte(2 * mostOthers) {
		packets = append(packets, uses(ours, netip.AddrFrom4([4]byte{10, 0, 1, i}).String()))
	}
	_, heard, err := run(t, packets...)
	if !errors.Is(err, io.EOF) {
		t.Errorf("error %v, want the end of the packets", err)
	}
	if len(heard.Others) != mostOthers || heard.Others[0].String() != "10.0.0.9" {
		t.Errorf("heard %d others, %+v; want %d, 10.0.0.9 first", len(heard.Others), heard, mostOthers)
	}
	for name, p := range map[string][]byte{
		"a packet without end": {0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0}, "a header without end": {0, 0, 1, 0, 0, 0, 1, 0},
		"a header beyond it": {0, 0, 0, 1, 0, 0, 0, 2},
	} {
		if _, _, err := run(t, p); err == nil || errors.Is(err, io.EOF) {
			t.Errorf("%s: %v", name, err)
		}
	}
	ended, cancel := context.WithCancelCause(t.Context())
	why := errors.New("stopped")
	cancel(why)
	from, _ := io.Pipe()
	if _, err := Serve(ended, lease(), from, io.Discard); !errors.Is(err, why) {
		t.Errorf("after its context ended: %v", err)
	}
	_ = from.Close()
	for _, l := range []Lease{{}, {MAC: ours}, {MAC: ours, Address: lease().Address},
		{MAC: ours, Address: lease().Address, Gateway: lease().Address.Addr()},
		{MAC: ours, Address: netip.MustParsePrefix("fc00::1/64"), Gateway: netip.MustParseAddr("fc00::2")}} {
		if _, err := Serve(t.Context(), l, bytes.NewReader(nil), io.Discard); err == nil || errors.Is(err, io.EOF) {
			t.Errorf("%+v: %v", l, err)
		}
	}
}

// QEMU has one thread for the guest's frames and the answers: it reads no answer while its copy of a frame
// waits. So a guest that floods, with requests or with anything else, must not keep swdt from reading, or it
// would stop QEMU. The request after the flood is answered.
func TestAFloodOfRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		from, frames := io.Pipe()
		answers, to := io.Pipe()
		served := make(chan error, 1)
		go func() {
			_, err := Serve(t.Context(), lease(), from, to)
			served <- err
		}()
		const flood = 20_000
		for i := range flood {
			p := discover(t, ours)
			switch i % 3 {
			case 1:
				p = request(t, ours, "172.18.0.9")
			case 2:
				p = uses(ours, "10.0.0.9")
			}
			if _, err := frames.Write(p); err != nil {
				t.Fatalf("after %d frames: %v", i, err)
			}
		}
		synctest.Wait() // until swdt has read the last frame: an answer that is read makes room for another one
		var read atomic.Int32
		go func() {
			for {
				if _, err := readPacket(answers); err != nil {
					return
				}
				read.Add(1)
			}
		}()
		synctest.Wait()
		if most := int32(mostWaiting + 1); read.Load() > most {
			t.Errorf("%d answers waited, want at most %d", read.Load(), most)
		}
		for _, p := range [][]byte{request(t, ours, "172.18.255.254"), uses(ours, "172.18.255.254")} {
			if _, err := frames.Write(p); err != nil {
				t.Fatal(err)
			}
		}
		if err := <-served; err != nil {
			t.Errorf("after the flood: %v", err)
		}
		for _, c := range []io.Closer{from, to} {
			_ = c.Close()
		}
	})
}

// A flood of other frames ends with the caller's time.
func TestAFloodWithoutEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		from, frames := io.Pipe()
		flooded := make(chan struct{})
		go func() {
			defer close(flooded)
			for {
				if _, err := frames.Write(uses(ours, "10.0.0.9")); err != nil {
					return
				}
				time.Sleep(10 * time.Millisecond)
			}
		}()
		heard, err := Serve(ctx, lease(), from, io.Discard)
		if !errors.Is(err, context.DeadlineExceeded) || heard.Frames < 1000 {
			t.Errorf("%+v, %v", heard, err)
		}
		_ = from.Close()
		<-flooded
	})
}

// Whatever a guest sends, it gets no address but its own, and the server goes on.
func FuzzServe(f *testing.F) {
	t := &testing.T{}
	f.Add(discover(t, ours))
	f.Add(request(t, ours, "172.18.255.254"))
	f.Add(request(t, ours, "172.18.0.1"))
	f.Add(uses(ours, "172.18.255.254"))
	f.Add(packed([]byte{0}, 0))
	f.Fuzz(func(t *testing.T, data []byte) {
		p, err := readPacket(bytes.NewReader(data))
		if err != nil {
			return
		}
		answers := make(chan []byte, 2)
		s := server{lease: lease(), answers: answers}
		if _, err := s.take(p); err != nil && !errors.Is(err, ErrDeclined) {
			t.Fatal(err)
		}
		if len(answers) == 0 {
			return
		}
		out := bytes.NewReader(<-answers)
		answered, err := readPacket(out)
		if err != nil {
			t.Fatalf("the answer is no packet: %v", err)
		}
		if out.Len() > 0 || len(answers) > 0 {
			t.Fatalf("%d bytes and %d answers follow the first packet", out.Len(), len(answers))
		}
		a := parseAnswer(t, answered)
		address := netip.AddrFrom4([4]byte(a.YourIPAddr.To4()))
		if diff := cmp.Diff(ours.String(), a.ClientHWAddr.String()); diff != "" {
			t.Errorf("the answer is for %s", diff)
		}
		if !address.IsUnspecified() && address != lease().Address.Addr() {
			t.Errorf("the guest gets %s", address)
		}
	})
}
