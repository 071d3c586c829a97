package dhcp

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"slices"
	"time"
)

const (
	// largestFrame is the size of QEMU's largest packet, in bytes.
	largestFrame = 4096 + 65536
	// largestHeader bounds the header that a paravirtual card puts before each frame.
	largestHeader = 64
	// settleLimit is how long Serve waits, after it has accepted the guest's request for the
	// address, until the guest uses the address. In this time, the guest tests whether another
	// machine has the address, and may still decline. After this time, Serve takes the address as
	// used.
	settleLimit = 5 * time.Second
	// mostWaiting bounds the answers that wait because the guest or its QEMU does not read them.
	mostWaiting = 16
)

// Heard describes the frames that a guest has sent until now.
type Heard struct {
	Frames   int // number of frames that the guest's network card has sent
	Requests int // number of DHCP messages that need an answer
	// Others are addresses that the guest uses instead of the lease's address; at most mostOthers.
	Others []netip.Addr
}

const mostOthers = 4

// ErrDeclined means that the guest has found another machine at its address.
var ErrDeclined = errors.New("another machine has the address")

// packet is a frame with the header that the network card needs.
type packet struct {
	header int // bytes of the header at the beginning of data
	data   []byte
}

// server answers the messages of one guest.
type server struct {
	lease   Lease
	answers chan<- []byte
	heard   Heard
}

// Serve answers the guest until the guest uses the address of the lease. It reads frames from
// `from` and writes frames to `to`, both in the form of QEMU's filters: the length of the packet
// with its header, the length of the header (four bytes each, big endian), and the packet. The
// caller closes both after Serve has returned. The error is an ErrDeclined if the guest reports that
// another machine has the address, and the cause of ctx's end if ctx has ended.
//
// Serve continues to read while an answer waits, since QEMU reads no answer while its copy of a
// frame waits. If Serve did not read, a guest that floods would stop QEMU. Answers beyond
// mostWaiting are dropped; the guest then asks again.
func Serve(ctx context.Context, lease Lease, from io.Reader, to io.Writer) (Heard, error) {
	if err := lease.Valid(); err != nil {
		return Heard{}, fmt.Errorf("give the guest its address: %w", err)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	packets, answers, failed := make(chan packet), make(chan []byte, mostWaiting), make(chan error, 2)
	s := server{lease: lease, answers: answers}
	go func() { failed <- readAll(ctx, from, packets) }()
	go func() { failed <- writeAll(ctx, to, answers) }()
	var settled <-chan time.Time
	for {
		select {
		case <-ctx.Done():
			return s.heard, context.Cause(ctx)
		case err := <-failed:
			return s.heard, err
		case <-settled:
			return s.heard, nil
		case p := <-packets:
			meaning, err := s.take(p)
			if err != nil || meaning == used {
				return s.heard, err
			}
			if meaning == accepted {
				settled = time.After(settleLimit)
			}
		}
	}
}

// take handles one packet of the guest.
func (s *server) take(p packet) (event, error) {
	f, ok := parseFrame(p.data[p.header:], s.lease.MAC)
	if !ok {
		return nothing, nil
	}
	s.heard.Frames++
	if message := f.message(); message != nil {
		return s.respond(message, p.header)
	}
	source := f.source()
	switch {
	case source == s.lease.Address.Addr():
		return used, nil
	case source.IsValid() && len(s.heard.Others) < mostOthers && !slices.Contains(s.heard.Others, source):
		s.heard.Others = append(s.heard.Others, source)
	}
	return nothing, nil
}

// respond queues the answer to a DHCP message, and returns the meaning of the message. If too many
// answers wait, respond drops the answer and returns "nothing" as the event. The error is an
// ErrDeclined if the guest declines the address.
func (s *server) respond(message []byte, header int) (event, error) {
	reply, meaning, request := s.lease.answer(message)
	if meaning == declined {
		return meaning, fmt.Errorf("%w: %s", ErrDeclined, s.lease.Address.Addr())
	}
	if reply == nil {
		return meaning, nil
	}
	s.heard.Requests++
	framed := s.lease.wrap(reply, request.IsBroadcast() || meaning == refused)
	out := binary.BigEndian.AppendUint32(nil, uint32(header+len(framed)))
	out = binary.BigEndian.AppendUint32(out, uint32(header))
	out = append(out, make([]byte, header)...)
	select {
	case s.answers <- append(out, framed...):
		return meaning, nil
	default: // too many answers wait
		return nothing, nil
	}
}

// writeAll sends the answers to the guest until a write fails or ctx ends.
func writeAll(ctx context.Context, to io.Writer, answers <-chan []byte) error {
	for {
		select {
		case answer := <-answers:
			if _, err := to.Write(answer); err != nil {
				return fmt.Errorf("answer the guest: %w", err)
			}
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// readAll reads the guest's packets and sends them to a channel, until a read fails or ctx ends.
func readAll(ctx context.Context, from io.Reader, packets chan<- packet) error {
	for {
		p, err := readPacket(from)
		if err != nil {
			return fmt.Errorf("read the guest's packets: %w", err)
		}
		select {
		case packets <- p:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// readPacket reads one packet.
func readPacket(from io.Reader) (packet, error) {
	var lengths [8]byte
	if _, err := io.ReadFull(from, lengths[:]); err != nil {
		return packet{}, err
	}
	size, header := binary.BigEndian.Uint32(lengths[:]), binary.BigEndian.Uint32(lengths[4:])
	if size > largestFrame || header > largestHeader || header > size {
		return packet{}, fmt.Errorf("a packet of %d bytes with a header of %d is not possible", size, header)
	}
	p := packet{int(header), make([]byte, size)}
	_, err := io.ReadFull(from, p.data)
	return p, err
}
