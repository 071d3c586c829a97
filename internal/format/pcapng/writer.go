package pcapng

import (
	"encoding/binary"
	"fmt"
	"io"
	"math"
)

// Writer writes one section, with times in nanoseconds. It writes each block with one call of
// Write, so that a reader at the other end of a pipe never waits for the rest of a block.
type Writer struct {
	to         io.Writer
	interfaces int
	block      []byte
}

// NewWriter begins a capture. The parameter `application` is the name of the program that writes
// the capture.
func NewWriter(to io.Writer, application string) (*Writer, error) {
	w := &Writer{to: to}
	w.begin(blockSection)
	w.uint32(magic)
	w.uint16(1) // version 1.0
	w.uint16(0)
	w.uint32(math.MaxUint32) // the section's length is unknown
	w.uint32(math.MaxUint32)
	w.option(optionApplication, application)
	w.uint32(optionEnd)
	return w, w.end()
}

// AddInterface writes an interface and returns the number by which packets refer to it.
func (w *Writer) AddInterface(i Interface) (int, error) {
	w.begin(blockInterface)
	w.uint16(i.LinkType)
	w.uint16(0)
	w.uint32(i.SnapLength)
	w.option(optionName, i.Name)
	w.option(optionDescription, i.Description)
	w.option(optionResolution, "\x09") // nanoseconds
	w.uint32(optionEnd)
	if err := w.end(); err != nil {
		return 0, err
	}
	w.interfaces++
	return w.interfaces - 1, nil
}

// Write adds a packet.
func (w *Writer) Write(p Packet) error {
	if p.Interface < 0 || p.Interface >= w.interfaces {
		return fmt.Errorf("write a packet: there is no interface %d", p.Interface)
	}
	w.begin(blockPacket)
	w.uint32(uint32(p.Interface))
	units := uint64(0)
	if !p.Time.IsZero() {
		units = uint64(p.Time.UnixNano())
	}
	w.uint32(uint32(units >> 32))
	w.uint32(uint32(units))
	w.uint32(uint32(len(p.Data)))
	w.uint32(uint32(max(p.Length, len(p.Data))))
	w.padded(p.Data)
	if p.Comment != "" {
		w.option(optionComment, p.Comment)
		w.uint32(optionEnd)
	}
	return w.end()
}

func (w *Writer) begin(kind uint32) {
	w.block = w.block[:0]
	w.uint32(kind)
	w.uint32(0) // the length, set by end
}

func (w *Writer) end() error {
	w.uint32(uint32(len(w.block) + 4))
	copy(w.block[4:8], w.block[len(w.block)-4:])
	if _, err := w.to.Write(w.block); err != nil {
		return fmt.Errorf("write the capture: %w", err)
	}
	return nil
}

// option writes an option with a value, and nothing for an empty value.
func (w *Writer) option(code uint16, value string) {
	if value == "" {
		return
	}
	value = value[:min(len(value), math.MaxUint16)]
	w.uint16(code)
	w.uint16(uint16(len(value)))
	w.padded([]byte(value))
}

func (w *Writer) padded(data []byte) {
	w.block = append(w.block, data...)
	for len(w.block)%4 != 0 {
		w.block = append(w.block, 0)
	}
}

func (w *Writer) uint16(v uint16) { w.block = binary.LittleEndian.AppendUint16(w.block, v) }
func (w *Writer) uint32(v uint32) { w.block = binary.LittleEndian.AppendUint32(w.block, v) }
