package capture

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"

	"github.com/swdt-dev/swdt/internal/format/pcapng"
)

// Names has the names of a node's pods and components.
type Names struct {
	Node       string
	Pods       map[netip.Addr]string // NAMESPACE/NAME of the node's pods, by address
	Components map[string]Component
}

// Of returns a copy of p. In the copy, Place is the name of the component, and Pod is the pod that
// owns the component.
func (n Names) Of(p Packet) Packet {
	c := n.Components[p.Component]
	p.Place, p.Pod = c.Name, c.Pod
	return p
}

// sources opens a part's files. The returned sources name and count the packets while the packets
// are read. The method Done of a source closes the file, and then passes the file's path to the
// given function, unless that is nil.
func (part Part) sources(count *Count, after func(path string) error) (all []pcapng.Source, err error) {
	for _, one := range []struct {
		path      string
		sightings []Sighting
		dropped   bool
	}{
		{part.Export.Packets, part.Export.Sightings.Passed, false},
		{part.Export.Drops, part.Export.Sightings.Dropped, true},
	} {
		if one.path == "" {
			continue
		}
		matching, err := match(one.path, one.sightings)
		if err != nil {
			closeAll(all)
			return nil, err
		}
		file, err := os.Open(one.path)
		if err != nil {
			closeAll(all)
			return nil, fmt.Errorf("read the downloaded capture: %w", err)
		}
		p := &placer{Names: part.Names, count: count, sightings: matching, dropped: one.dropped}
		done := func() error {
			err := file.Close()
			if after != nil {
				err = errors.Join(err, after(one.path))
			}
			return err
		}
		all = append(all, pcapng.Source{Name: part.Node, Reader: pcapng.NewReader(file), Place: p.place, Done: done})
	}
	return all, nil
}

// closeAll closes files after an error.
func closeAll(sources []pcapng.Source) {
	for _, source := range sources {
		_ = source.Done()
	}
}

// placer processes the packets of a file in their order. It names the interface of each
// packet, adds the reason to a dropped packet, and counts the packets.
type placer struct {
	Names
	count     *Count
	sightings []Sighting // one sighting for each packet; nil: unknown
	dropped   bool
	next      int
}

func (p *placer) place(packet *pcapng.Packet, i pcapng.Interface) pcapng.Interface {
	var seen Sighting
	if p.sightings != nil {
		seen = p.sightings[p.next]
	}
	p.next++
	if p.dropped {
		packet.Comment = dropComment(seen)
		p.count.Drops++
	}
	i.Name, i.Description = p.interfaceOf(seen.Component, packet.Data, i.LinkType)
	p.count.Packets++
	p.count.Interfaces[i.Name]++
	return i
}

func dropComment(s Sighting) string {
	if s.Reason == "" {
		return "dropped"
	}
	return "dropped: " + s.Reason + " (component " + s.Component + ", at " + s.Location + ")"
}

// interfaceOf returns the name and the description of a packet's interface. The name is NODE/OWNER:
// the owner is the pod whose adapter saw the packet; else the pod that sent or receives the packet;
// else the component. If none of these is known, the name is NODE.
func (n Names) interfaceOf(component string, data []byte, linkType uint16) (name, description string) {
	c, known := n.Components[component]
	if known {
		description = "component " + c.ID + ": " + c.Name
	}
	switch pod := n.podOf(data, linkType); {
	case c.Pod != "":
		return n.Node + "/" + c.Pod, description
	case pod != "":
		return n.Node + "/" + pod, description
	case known && c.Name != "":
		return n.Node + "/" + c.Name, description
	}
	return n.Node, description
}

// podOf returns a pod of the node: the pod that sent the packet or, if the sender is not a pod of
// the node, the pod that receives the packet. If neither is a pod of the node, podOf returns "".
func (n Names) podOf(data []byte, linkType uint16) string {
	if len(n.Pods) == 0 || linkType != pcapng.Ethernet {
		return ""
	}
	for _, address := range addresses(data) {
		if pod := n.Pods[address]; pod != "" {
			return pod
		}
	}
	return ""
}

// ethernetHeader is the length of the Ethernet header that pktmon may add to packets without
// such a header.
const ethernetHeader = 14

// match returns the sightings if they fit the file's packets: the same number, and the same
// sizes in the same order. Otherwise it returns nil, since the sightings cannot be assigned
// to packets.
func match(path string, sightings []Sighting) ([]Sighting, error) {
	count, same := 0, true
	err := eachPacket(path, func(p pcapng.Packet) {
		if count < len(sightings) {
			more := len(p.Data) - sightings[count].Size
			same = same && (more == 0 || more == ethernetHeader || sightings[count].Size == 0)
		}
		count++
	})
	if err != nil || !same || count != len(sightings) {
		return nil, err
	}
	return sightings, nil
}

// packetsIn returns the number of packets in a file; an empty file has none.
func packetsIn(path string) (count int, err error) {
	if info, err := os.Stat(path); err == nil && info.Size() == 0 {
		return 0, nil
	}
	return count, eachPacket(path, func(pcapng.Packet) { count++ })
}

func eachPacket(path string, do func(pcapng.Packet)) error {
	file, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("read the downloaded capture: %w", err)
	}
	defer file.Close()
	for r := pcapng.NewReader(file); ; {
		p, err := r.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read the downloaded capture: %w", err)
		}
		do(p)
	}
}

// addresses returns the IP addresses of an Ethernet frame, the sender's first.
func addresses(frame []byte) []netip.Addr {
	const etherTypeAt = 12
	at := etherTypeAt
	for len(frame) >= at+6 && binary.BigEndian.Uint16(frame[at:]) == 0x8100 { // VLAN
		at += 4
	}
	if len(frame) < at+2 {
		return nil
	}
	packet := frame[at+2:]
	var begin, size int
	switch etherType := binary.BigEndian.Uint16(frame[at:]); {
	case etherType == 0x0800 && len(packet) >= 20:
		begin, size = 12, 4
	case etherType == 0x86dd && len(packet) >= 40:
		begin, size = 8, 16
	default:
		return nil
	}
	source, _ := netip.AddrFromSlice(packet[begin : begin+size])
	destination, _ := netip.AddrFromSlice(packet[begin+size : begin+2*size])
	return []netip.Addr{source, destination}
}
