package qemu_test

import (
	"encoding/binary"
	"net"
	"net/netip"
	"path/filepath"
	"testing"
	"time"

	"github.com/swdt-dev/swdt/internal/testing/netspace"
	"github.com/swdt-dev/swdt/internal/vm"
	"github.com/swdt-dev/swdt/internal/vm/qemu/qmp"
)

// A guest in mode user reaches nothing, unless it has outbound. With outbound, it reaches other addresses, but no service
// on this machine's loopback address, whatever it sends: 10.0.2.2 and 10.0.2.3 lead there in QEMU's user network, and
// an old passt connects to 127.0.0.1 if a guest's own frame asks for it. The test sends as the guest does.
func TestAGuestReachesNoLoopback(t *testing.T) {
	const another = "198.51.100.7"
	netspace.AddAddress(t, another)
	for _, isolated := range []bool{true, false} {
		d := driver(t)
		m := record(t, d, "guest")
		m.Network.Isolated = isolated
		if !isolated {
			need(t, "pasta", "passt")
		}
		outside := listen(t, another+":0")
		inside := listen(t, "0.0.0.0:0") // all of 127.0.0.0/8, and each other address of this machine
		check(t, d.Create(t.Context(), m))
		check(t, d.Start(t.Context(), m))
		guest := asGuest(t, m)
		send := func(to netip.Addr, listener *net.TCPListener) {
			for port := range 2 { // QEMU's own network loses the first frame
				_, err := guest.Write(frame(m.Network.MAC, 40000+port, to, listener.Addr().(*net.TCPAddr).Port))
				check(t, err)
			}
		}
		own := mainAddress(t)
		for _, hostile := range []string{
			"10.0.2.2", "10.0.2.3", "10.0.2.15", "127.0.0.1", "127.0.0.53", "0.0.0.0", "255.255.255.255", own,
		} {
			send(netip.MustParseAddr(hostile), inside)
		}
		send(outside.Addr().(*net.TCPAddr).AddrPort().Addr(), outside)
		// QEMU has read the frames once it has answered a question that came after them.
		_, err := d.Status(t.Context(), m)
		check(t, err)
		if got := connected(t, outside, isolated); got == isolated {
			t.Errorf("isolated %t: the guest reached another address: %t", isolated, got)
		}
		if connected(t, inside, true) {
			t.Errorf("isolated %t: the guest reached a service of this machine", isolated)
		}
		check(t, d.Kill(t.Context(), m))
		leaksNothing(t, m)
	}
}

// listen returns a listener that is closed after the test.
func listen(t *testing.T, address string) *net.TCPListener {
	t.Helper()
	listener, err := net.Listen("tcp4", address)
	check(t, err)
	t.Cleanup(func() { _ = listener.Close() })
	return listener.(*net.TCPListener)
}

// connected reports whether a connection has come; soon is true if it can have come already.
func connected(t *testing.T, listener *net.TCPListener, soon bool) bool {
	t.Helper()
	limit := 10 * time.Second
	if soon {
		limit = time.Second
	}
	check(t, listener.SetDeadline(time.Now().Add(limit)))
	conn, err := listener.Accept()
	if err == nil {
		_ = conn.Close()
	}
	return err == nil
}

// mainAddress returns this machine's address on the network of its default route.
func mainAddress(t *testing.T) string {
	t.Helper()
	conn, err := net.Dial("udp4", "192.0.2.1:9") // sends nothing
	check(t, err)
	defer conn.Close()
	return conn.LocalAddr().(*net.UDPAddr).IP.String()
}

// asGuest returns a connection whose frames QEMU takes for the guest's.
func asGuest(t *testing.T, m vm.Machine) net.Conn {
	t.Helper()
	client, err := qmp.Dial(t.Context(), filepath.Join(m.Folder, "run", "look.sock"))
	check(t, err)
	defer client.Close()
	socket := filepath.Join(m.Folder, "run", "guest.sock")
	check(t, client.Run(t.Context(), "chardev-add", map[string]any{"id": "guest", "backend": map[string]any{
		"type": "socket", "data": map[string]any{"server": true, "wait": false,
			"addr": map[string]any{"type": "unix", "data": map[string]any{"path": socket}}},
	}}, nil))
	check(t, client.Run(t.Context(), "object-add", map[string]any{
		"qom-type": "filter-redirector", "id": "as-guest", "netdev": "net0", "queue": "rx", "indev": "guest",
	}, nil))
	conn, err := net.Dial("unix", socket)
	check(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// frame returns a guest's SYN from a port to an address and a port, with the length before it that QEMU expects.
func frame(mac string, source int, to netip.Addr, port int) []byte {
	from, _ := net.ParseMAC(mac)
	ethernet := append([]byte{0x52, 0x55, 10, 0, 2, 2}, from...)
	ethernet = append(ethernet, 8, 0)
	addresses := append([]byte{10, 0, 2, 15}, to.AsSlice()...)
	ip := append([]byte{0x45, 0, 0, 40, 0, 1, 0, 0, 64, 6, 0, 0}, addresses...)
	binary.BigEndian.PutUint16(ip[10:], checksum(ip))
	tcp := make([]byte, 20)
	binary.BigEndian.PutUint16(tcp, uint16(source))
	binary.BigEndian.PutUint16(tcp[2:], uint16(port))
	tcp[12], tcp[13] = 5<<4, 2 // the header's length; SYN
	binary.BigEndian.PutUint16(tcp[14:], 65535)
	pseudo := append(append(append([]byte{}, addresses...), 0, 6, 0, 20), tcp...)
	binary.BigEndian.PutUint16(tcp[16:], checksum(pseudo))
	data := append(append(ethernet, ip...), tcp...)
	return append(binary.BigEndian.AppendUint32(nil, uint32(len(data))), data...)
}

// checksum is that of IPv4 and TCP.
func checksum(data []byte) uint16 {
	var sum uint32
	for i := 0; i+1 < len(data); i += 2 {
		sum += uint32(binary.BigEndian.Uint16(data[i:]))
	}
	for sum > 0xffff {
		sum = sum>>16 + sum&0xffff
	}
	return ^uint16(sum)
}
