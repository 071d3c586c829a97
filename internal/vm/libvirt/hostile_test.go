package libvirt

import (
	"bytes"
	"encoding/binary"
	"image/png"
	"io"
	"net"
	"net/netip"
	"testing"

	"github.com/digitalocean/go-libvirt"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// reader is a connection that only reads.
type reader struct {
	net.Conn
	io.Reader
}

func (r reader) Read(p []byte) (int, error) { return r.Reader.Read(p) }
func (reader) Close() error                 { return nil }

// Whatever a daemon sends, the client sees whole messages of a plausible length.
func FuzzFrames(f *testing.F) {
	f.Add([]byte("\x00\x00\x00\x1c" + string(make([]byte, 24))))
	f.Add([]byte("\xff\xff\xff\xff"))
	f.Fuzz(func(t *testing.T, sent []byte) {
		seen, _ := io.ReadAll(&frames{Conn: reader{Reader: bytes.NewReader(sent)}})
		if !bytes.HasPrefix(sent, seen) {
			t.Fatalf("%x became %x", sent, seen)
		}
		for len(seen) >= 4 {
			size := int(binary.BigEndian.Uint32(seen))
			if size < headerSize || size > maxMessage {
				t.Fatalf("a message of %d bytes", size)
			}
			seen = seen[min(size, len(seen)):]
		}
	})
}

func FuzzPicture(f *testing.F) {
	f.Add([]byte("P6\n2 1\n255\n\x01\x02\x03\x04\x05\x06"))
	f.Add([]byte("P6\n99999999 99999999\n255\n"))
	f.Add([]byte("\x89PNG\r\n\x1a\n"))
	f.Fuzz(func(t *testing.T, sent []byte) {
		picture, err := toPNG(sent)
		if err != nil {
			return
		}
		if _, err := png.Decode(bytes.NewReader(picture)); err != nil {
			t.Fatal(err)
		}
	})
}

func TestPPM(t *testing.T) {
	screen, err := parsePPM([]byte("P6\n2 1\n255\n\x01\x02\x03\x0a\x05\x06"))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]byte{1, 2, 3, 255, 10, 5, 6, 255}, screen.Pix); diff != "" {
		t.Error(diff)
	}
}

// A guest's agent cannot add addresses of interfaces that it has made.
func TestAddressesOfTheDomainsInterfacesOnly(t *testing.T) {
	nic := func(mac string, addresses ...string) libvirt.DomainInterface {
		i := libvirt.DomainInterface{Hwaddr: libvirt.OptString{mac}}
		for _, a := range addresses {
			i.Addrs = append(i.Addrs, libvirt.DomainIPAddr{Addr: a})
		}
		return i
	}
	got := addressesOf([]libvirt.DomainInterface{
		nic("52:54:00:00:00:07", "192.168.122.5", "127.0.0.1", "fe80::1%eth0", "x", "::"),
		nic("00:15:5d:00:00:01", "10.0.0.1"), {},
	}, func(mac string) bool { return mac == "52:54:00:00:00:07" })
	want := []netip.Addr{netip.MustParseAddr("192.168.122.5")}
	if diff := cmp.Diff(want, got, cmpopts.EquateComparable(netip.Addr{})); diff != "" {
		t.Error(diff)
	}
}

func TestNamesOfSnapshots(t *testing.T) {
	for name, plain := range map[string]bool{
		"clean": true, "a.b_c-1": true, "1": false, "../up": false, "-d": false, "swdt-0123456789abcdef": false,
		"größe": false, "a b": false,
	} {
		if got := tagOf(name); (got == name) != plain {
			t.Errorf("%q is %q in libvirt", name, got)
		}
	}
	// A description that another program wrote is not believed.
	x := snapshotXML{Name: "theirs", Description: mark + "2026-01-01T00:00:00Z mine", Created: 7}
	if s := x.snapshot(); s.Name != "theirs" || s.Taken.Unix() != 7 {
		t.Errorf("%+v", s)
	}
}

func TestKeys(t *testing.T) {
	got, err := keyCodes("ctrl-alt-delete")
	if diff := cmp.Diff([]uint32{29, 56, 111}, got); err != nil || diff != "" {
		t.Error(err, diff)
	}
	if _, err := keyCodes("a-b-c-d-e-f-g-h-i"); err == nil {
		t.Error("nine keys at once")
	}
}
