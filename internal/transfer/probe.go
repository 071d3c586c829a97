package transfer

import (
	"context"
	"crypto/rand"
	"time"

	agentv1 "github.com/swdt-dev/swdt/api/agent/v1"
	"github.com/swdt-dev/swdt/internal/node"
)

const (
	// firstProbe is enough to tell a slow link from a fast one. The others, asked of
	// fast ones alone, tell those apart.
	firstProbe  = 64 << 10
	secondProbe = 512 << 10
	thirdProbe  = 2 << 20
	// againWithin is how long firstProbe may take to be worth a second look: TCP
	// begins slowly, and a processor may have been busy.
	againWithin = 25 * time.Millisecond
	// fastProbe is how long firstProbe may take, beyond the round trip, on a link
	// that is worth the second (one of 16 MB/s), and fasterProbe the same of the
	// second and third (40 MB/s).
	fastProbe   = 4 * time.Millisecond
	fasterProbe = 12 * time.Millisecond
	// probeTime is after how long without an answer a link is known to be slow.
	probeTime = 500 * time.Millisecond
	// probePart is how much of what is to be sent a look may be: a sixteenth.
	probePart = 16
	// readingAge is how long a reading is good for.
	readingAge = time.Minute
)

// link is what is known of the way to the node, measured now unless that was done
// a moment ago. For few bytes it is not worth a long look. quick is called when the
// link turns out to be no slow one, and longer looks follow.
func (s *sending) link(ctx context.Context, bytes int64, quick func()) node.Reading {
	if reading, ok := s.known(); ok {
		return reading
	}
	p := &probe{sending: s, most: bytes / probePart, quick: quick}
	reading := p.run(ctx)
	if reading.BytesPerSecond > 0 {
		s.node.Speed.Note(reading)
	}
	return reading
}

// known is what was measured of the link a moment ago.
func (s *sending) known() (node.Reading, bool) {
	known := s.node.Speed.Latest()
	return known, known.BytesPerSecond > 0 && time.Since(known.At) < readingAge
}

// probe sends ever more bytes, each after the answer to the last. They are noise
// to the node; nothing on the way can tell them from a patch.
type probe struct {
	*sending
	most   int64 // bytes of one look, beyond the first
	quick  func()
	stream interface {
		Send(*agentv1.ProbeRequest) error
		Recv() (*agentv1.ProbeReply, error)
	}
}

func (p *probe) run(ctx context.Context) node.Reading {
	ctx, cancel := context.WithTimeout(ctx, probeTime)
	defer cancel()
	begun := time.Now()
	reading := node.Reading{At: begun}
	slow := func() node.Reading { // no answer in time, or no connection at all
		if ctx.Err() == context.DeadlineExceeded {
			reading.BytesPerSecond = firstProbe / time.Since(begun).Seconds()
			reading.RoundTrip = max(reading.RoundTrip, time.Millisecond)
		}
		return reading
	}
	var err error
	if p.stream, err = p.node.Files.Probe(ctx); err != nil {
		return slow()
	}
	if reading.RoundTrip, err = p.ask(0); err != nil {
		return slow()
	}
	size, lead := int64(firstProbe), reading.RoundTrip
	took, err := p.ask(size)
	if err == nil && took < againWithin {
		var again time.Duration
		again, err = p.ask(size)
		took = min(took, again)
	}
	if err == nil && secondProbe <= p.most && took-reading.RoundTrip < fastProbe {
		p.quick()
		size = secondProbe
		took, err = p.ask(size)
	}
	if err == nil && size == secondProbe && thirdProbe <= p.most && took-reading.RoundTrip < fasterProbe {
		// What is left of such times is mostly programs that wake each other: the
		// difference of the two tells what more bytes take.
		lead, size = took, thirdProbe-secondProbe
		took, err = p.ask(thirdProbe)
	}
	if err != nil {
		return slow()
	}
	reading.RoundTrip = min(reading.RoundTrip, took) // the first answer found somebody busy
	// What is left of a time shorter than the lead was is no measurement.
	took = max(took-min(lead, took), took/4, time.Microsecond)
	reading.BytesPerSecond = float64(size) / took.Seconds()
	return reading
}

// ask sends some bytes and waits until they have arrived.
func (p *probe) ask(size int64) (time.Duration, error) {
	noise := make([]byte, size) // which nothing on the way can compress
	_, _ = rand.Read(noise)     // never fails
	begun := time.Now()
	if err := p.stream.Send(&agentv1.ProbeRequest{Data: noise}); err != nil {
		return 0, err
	}
	p.probed += size
	_, err := p.stream.Recv()
	return time.Since(begun), err
}
