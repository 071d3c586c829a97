package pcapng

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"time"
)

// Source is one capture to merge.
type Source struct {
	Name   string // for errors
	Reader *Reader
	// Place returns the interface that a packet is assigned to, and may set the packet's comment.
	// If Place is nil, each packet keeps its interface and comment.
	Place func(*Packet, Interface) Interface
	// Done is called once: after the last packet, after a packet that cannot be read, or by
	// Merger.Close. It may be nil.
	Done func() error
}

func (s Source) done() error {
	if s.Done == nil {
		return nil
	}
	return s.Done()
}

// Merge writes the packets of all sources in order of time and returns their number. The packets
// of each source must be in order of time already. Interfaces with the same name, description and
// link type are merged.
func Merge(w *Writer, sources ...Source) (count int, err error) {
	m := NewMerger(w)
	for _, source := range sources {
		if err := m.Add(source); err != nil {
			return 0, err
		}
	}
	return m.WriteAll()
}

// Merger merges sources that are added one after the other.
type Merger struct {
	writer     *Writer
	heads      []head
	interfaces map[Interface]int
}

// NewMerger returns a Merger that writes to w.
func NewMerger(w *Writer) *Merger { return &Merger{writer: w, interfaces: map[Interface]int{}} }

// Add adds a source and reads its first packet.
func (m *Merger) Add(source Source) error {
	m.heads = append(m.heads, head{Source: source})
	return m.advance(len(m.heads) - 1)
}

// WriteAll writes all remaining packets and returns their number.
func (m *Merger) WriteAll() (int, error) { return m.write(func(time.Time) bool { return true }) }

// WriteUntil writes the packets whose time is not after `limit`, and returns their number. No
// source that is added later may have packets before `limit`.
func (m *Merger) WriteUntil(limit time.Time) (int, error) {
	return m.write(func(at time.Time) bool { return !at.After(limit) })
}

func (m *Merger) write(wanted func(time.Time) bool) (count int, err error) {
	for len(m.heads) > 0 {
		first := 0
		for i := range m.heads {
			if m.heads[i].packet.Time.Before(m.heads[first].packet.Time) {
				first = i
			}
		}
		if !wanted(m.heads[first].packet.Time) {
			break
		}
		if err := m.writePacket(&m.heads[first]); err != nil {
			return count, err
		}
		count++
		if err := m.advance(first); err != nil {
			return count, err
		}
	}
	return count, nil
}

// head is a source and its next packet.
type head struct {
	Source
	packet Packet
}

// advance reads a source's next packet. It removes the source after the last packet, or if the
// source cannot be read any further.
func (m *Merger) advance(i int) (err error) {
	h := &m.heads[i]
	if h.packet, err = h.Reader.Next(); err == nil {
		return nil
	}
	over := h.Source
	m.heads = slices.Delete(m.heads, i, i+1)
	if errors.Is(err, io.EOF) {
		err = nil
	} else {
		err = fmt.Errorf("read %s: %w", over.Name, err)
	}
	return errors.Join(err, over.done())
}

// Close drops the remaining sources without writing their packets, and calls Done of each of these
// sources.
func (m *Merger) Close() error {
	var errs []error
	for _, h := range m.heads {
		errs = append(errs, h.done())
	}
	m.heads = nil
	return errors.Join(errs...)
}

func (m *Merger) writePacket(h *head) error {
	place := h.Reader.Interface(h.packet.Interface)
	if h.Place != nil {
		place = h.Place(&h.packet, place)
	}
	number, err := m.Interface(place)
	if err != nil {
		return err
	}
	packet := h.packet
	packet.Interface = number
	return m.writer.Write(packet)
}

// Interface returns the number that an interface has in the output. It writes the interface first
// if the output does not have it yet.
func (m *Merger) Interface(i Interface) (int, error) {
	key := Interface{Name: i.Name, Description: i.Description, LinkType: i.LinkType}
	number, ok := m.interfaces[key]
	if ok {
		return number, nil
	}
	number, err := m.writer.AddInterface(i)
	if err == nil {
		m.interfaces[key] = number
	}
	return number, err
}
