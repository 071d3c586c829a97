package qemu_test

import (
	"encoding/binary"
	"net"
	"path/filepath"
	"testing"
	"time"

	"github.com/swdt-dev/swdt/internal/vm"
	"github.com/swdt-dev/swdt/internal/vm/qemu/qmp"
)

// A guest in mode user reaches a service on this machine's loopback address at 10.0.2.2, unless it is isolated. The
// test sends as the guest does: QEMU's user network connects as soon as a SYN comes.
func TestAnIsolatedGuestReachesNothing(t *testing.T) {
	for _, isolated := range []bool{false, true} {
		d := driver(t)
		m := record(t, d, "guest")
		m.Network.Isolated = isolated
		check(t, d.Create(t.Context(), m))
		check(t, d.Start(t.Context(), m))
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		check(t, err)
		guest := asGuest(t, m)
		port := listener.Addr().(*net.TCPAddr).Port
		sent := append(frame(m.Network.MAC, port), frame(m.Network.MAC, port)...)
		_, err = guest.Write(sent)
		check(t, err)
		check(t, listener.(*net.TCPListener).SetDeadline(time.Now().Add(10*time.Second)))
		if isolated { // QEMU has read the frames once it has answered a question that came after them
			_, err = d.Status(t.Context(), m)
			check(t, err)
			check(t, listener.(*net.TCPListener).SetDeadline(time.Now().Add(time.Second)))
		}
		conn, err := listener.Accept()
		if reached := err == nil; reached == isolated {
			t.Errorf("isolated %t: the guest reached the service: %t (%v)", isolated, reached, err)
		}
		if conn != nil {
			_ = conn.Close()
		}
		check(t, listener.Close())
		check(t, d.Kill(t.Context(), m))
	}
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

// frame returns a guest's SYN for a port of 10.0.2.2, with the length before it that QEMU expects.
func frame(mac string, port int) []byte {
	from, _ := net.ParseMAC(mac)
	ethernet := append([]byte{0x52, 0x55, 10, 0, 2, 2}, from...)
	ethernet = append(ethernet, 8, 0)
	addresses := []byte{10, 0, 2, 15, 10, 0, 2, 2}
	ip := append([]byte{0x45, 0, 0, 40, 0, 1, 0, 0, 64, 6, 0, 0}, addresses...)
	binary.BigEndian.PutUint16(ip[10:], checksum(ip))
	tcp := make([]byte, 20)
	binary.BigEndian.PutUint16(tcp, 40000)
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
