package pcapng

import (
	"bufio"
	"encoding/binary"
	"errors"
	"io"
	"math"
	"math/bits"
	"time"
)

// Reader reads packets in the order of the file.
type Reader struct {
	from       *bufio.Reader
	offset     int64
	order      binary.ByteOrder // byte order of the section; nil before the first section
	interfaces []source
	first      int // the section's first interface
	buffer     []byte
}

// source is an interface and its unit of time.
type source struct {
	Interface
	perSecond uint64
	offset    int64 // seconds
}

// NewReader returns a Reader that reads from r.
func NewReader(r io.Reader) *Reader { return &Reader{from: bufio.NewReaderSize(r, 1<<16)} }

// Interface returns the interface that a packet of this reader refers to.
func (r *Reader) Interface(index int) Interface { return r.interfaces[index].Interface }

// Next returns the next packet, or io.EOF after the last one. The packet's data is valid until the
// next call.
func (r *Reader) Next() (Packet, error) {
	for {
		kind, body, err := r.block()
		if err != nil {
			return Packet{}, err
		}
		switch kind {
		case blockSection:
			r.first = len(r.interfaces)
		case blockInterface:
			err = r.addInterface(body)
		case blockPacket, blockSimple:
			if kind == blockSimple {
				return r.simple(body)
			}
			return r.packet(body)
		}
		if err != nil {
			return Packet{}, err
		}
	}
}

// block reads one block. It returns the block's type and content, or io.EOF after the last block.
func (r *Reader) block() (kind uint32, body []byte, err error) {
	var head [12]byte
	if _, err := io.ReadFull(r.from, head[:8]); err != nil {
		if errors.Is(err, io.EOF) && r.order != nil {
			return 0, nil, io.EOF
		}
		return 0, nil, r.wrong("a block is cut off")
	}
	have := 8
	if binary.LittleEndian.Uint32(head[:]) == blockSection { // this number has the same bytes in either order
		if _, err := io.ReadFull(r.from, head[8:]); err != nil {
			return 0, nil, r.wrong("a section is cut off")
		}
		have = 12
		switch uint32(magic) {
		case binary.LittleEndian.Uint32(head[8:]):
			r.order = binary.LittleEndian
		case binary.BigEndian.Uint32(head[8:]):
			r.order = binary.BigEndian
		default:
			return 0, nil, r.wrong("a section has no byte order")
		}
	}
	if r.order == nil {
		return 0, nil, r.wrong("it does not begin with a section")
	}
	kind = r.order.Uint32(head[:])
	length := r.order.Uint32(head[4:])
	if length < uint32(have)+4 || length%4 != 0 || length > maxBlock {
		return 0, nil, r.wrong("a block's length is invalid")
	}
	rest := int(length) - have
	if cap(r.buffer) < rest {
		r.buffer = make([]byte, rest)
	}
	r.buffer = r.buffer[:rest]
	if _, err := io.ReadFull(r.from, r.buffer); err != nil {
		return 0, nil, r.wrong("a block is cut off")
	}
	if r.order.Uint32(r.buffer[rest-4:]) != length {
		return 0, nil, r.wrong("a block's two lengths differ")
	}
	r.offset += int64(length)
	return kind, r.buffer[:rest-4], nil
}

func (r *Reader) wrong(reason string) error { return &FormatError{Offset: r.offset, Reason: reason} }

func (r *Reader) addInterface(body []byte) error {
	if len(body) < 8 {
		return r.wrong("an interface is cut off")
	}
	s := source{
		Interface: Interface{LinkType: r.order.Uint16(body), SnapLength: r.order.Uint32(body[4:])},
		perSecond: 1e6,
	}
	err := r.options(body[8:], func(code uint16, value []byte) error {
		switch {
		case code == optionName:
			s.Name = string(value)
		case code == optionDescription:
			s.Description = string(value)
		case code == optionOffset && len(value) == 8:
			s.offset = int64(r.order.Uint64(value))
		case code == optionResolution && len(value) == 1:
			var ok bool
			if s.perSecond, ok = resolution(value[0]); !ok {
				return r.wrong("an interface has an invalid unit of time")
			}
		}
		return nil
	})
	r.interfaces = append(r.interfaces, s)
	return err
}

// resolution returns how many units of time a second has. The lower seven bits of code are an
// exponent n: the number is 2ⁿ if the highest bit is set, or else 10ⁿ. ok is false if the number
// is too large.
func resolution(code byte) (perSecond uint64, ok bool) {
	power := code & 0x7f
	if code&0x80 != 0 {
		return 1 << (power & 63), power < 63
	}
	if power > 18 {
		return 0, false
	}
	return uint64(math.Pow10(int(power))), true
}

func (r *Reader) options(data []byte, each func(code uint16, value []byte) error) error {
	for len(data) >= 4 {
		code, length := r.order.Uint16(data), int(r.order.Uint16(data[2:]))
		if code == optionEnd {
			return nil
		}
		padded := (length + 3) &^ 3
		if len(data) < 4+padded {
			return r.wrong("an option is cut off")
		}
		if err := each(code, data[4:4+length]); err != nil {
			return err
		}
		data = data[4+padded:]
	}
	return nil
}

func (r *Reader) packet(body []byte) (Packet, error) {
	if len(body) < 20 {
		return Packet{}, r.wrong("a packet is cut off")
	}
	index := r.first + int(r.order.Uint32(body))
	kept := int(r.order.Uint32(body[12:]))
	padded := (kept + 3) &^ 3
	switch {
	case index < 0 || index >= len(r.interfaces):
		return Packet{}, r.wrong("a packet refers to a missing interface")
	case kept < 0 || len(body) < 20+padded:
		return Packet{}, r.wrong("a packet is longer than its block")
	}
	p := Packet{
		Interface: index, Data: body[20 : 20+kept], Length: int(r.order.Uint32(body[16:])),
		Time: r.interfaces[index].time(uint64(r.order.Uint32(body[4:]))<<32 | uint64(r.order.Uint32(body[8:]))),
	}
	err := r.options(body[20+padded:], func(code uint16, value []byte) error {
		if code == optionComment {
			p.Comment = string(value)
		}
		return nil
	})
	return p, err
}

// simple reads a simple packet, which has no time and belongs to the section's
// first interface.
func (r *Reader) simple(body []byte) (Packet, error) {
	if len(body) < 4 || r.first >= len(r.interfaces) {
		return Packet{}, r.wrong("a packet refers to a missing interface")
	}
	length := int(r.order.Uint32(body))
	kept := min(length, len(body)-4)
	if limit := int(r.interfaces[r.first].SnapLength); limit > 0 {
		kept = min(kept, limit)
	}
	return Packet{Interface: r.first, Data: body[4 : 4+kept], Length: length}, nil
}

func (s source) time(units uint64) time.Time {
	seconds, rest := units/s.perSecond, units%s.perSecond
	high, low := bits.Mul64(rest, 1e9)
	nanoseconds, _ := bits.Div64(high, low, s.perSecond) // no overflow, since rest < perSecond
	return time.Unix(int64(seconds)+s.offset, int64(nanoseconds)).UTC()
}
