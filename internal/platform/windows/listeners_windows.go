package windows

import (
	"context"
	"encoding/binary"
	"fmt"
	"net/netip"
	"sort"
	"syscall"
	"unsafe"

	"golang.org/x/sys/windows"

	"github.com/swdt-dev/swdt/internal/platform"
)

func (network) Listeners(ctx context.Context) ([]platform.Listener, error) {
	const what = "list the ports with a listener"
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("%s: %w", what, err)
	}
	v4, err := listenerTable(windows.AF_INET)
	if err != nil {
		return nil, failed(err, what)
	}
	all := decodeListeners(v4, rowOfIPv4())
	// A machine without IPv6 has no table for IPv6.
	if v6, err := listenerTable(windows.AF_INET6); err == nil {
		all = append(all, decodeListeners(v6, rowOfIPv6())...)
	}
	sort.Slice(all, func(i, j int) bool { // slices.SortFunc would add 12 KB to the agent for each type
		a, b := all[i], all[j]
		return a.Port < b.Port || a.Port == b.Port && a.Address < b.Address
	})
	return all, nil
}

// listenerTable returns Windows' table of listening sockets and the processes
// that own them: a count followed by that many rows, all little-endian numbers
// of 32 bits.
func listenerTable(family uint32) ([]byte, error) {
	const ownerPIDListener = 3 // TCP_TABLE_OWNER_PID_LISTENER
	get := windows.NewLazySystemDLL("iphlpapi.dll").NewProc("GetExtendedTcpTable")
	if err := get.Find(); err != nil {
		return nil, err
	}
	size := uint32(16 << 10)
	for {
		table := make([]byte, size)
		result, _, _ := get.Call(uintptr(unsafe.Pointer(&table[0])), uintptr(unsafe.Pointer(&size)), 0,
			uintptr(family), ownerPIDListener, 0)
		switch code := syscall.Errno(result); code {
		case 0:
			return table, nil
		case windows.ERROR_INSUFFICIENT_BUFFER: // size is now the needed size; the table may grow before the next call
			size += size / 4
		default:
			return nil, code
		}
	}
}

// row describes a row of the table by the offsets and sizes of its fields, in bytes.
type row struct {
	size, address, addressSize, port, pid int
}

func rowOfIPv4() row { return row{size: 24, address: 4, addressSize: 4, port: 8, pid: 20} }   // MIB_TCPROW_OWNER_PID
func rowOfIPv6() row { return row{size: 56, address: 0, addressSize: 16, port: 20, pid: 52} } // MIB_TCP6ROW_OWNER_PID

func decodeListeners(table []byte, r row) []platform.Listener {
	if len(table) < 4 {
		return nil
	}
	count, rows := binary.LittleEndian.Uint32(table), table[4:]
	var all []platform.Listener
	for range count {
		if len(rows) < r.size {
			break
		}
		port := binary.BigEndian.Uint16(rows[r.port:]) // the port is in network order, in the lower half of its field
		if address, ok := netip.AddrFromSlice(rows[r.address : r.address+r.addressSize]); ok {
			all = append(all, platform.Listener{
				Address: netip.AddrPortFrom(address, port).String(), Port: port,
				PID: binary.LittleEndian.Uint32(rows[r.pid:]),
			})
		}
		rows = rows[r.size:]
	}
	return all
}
