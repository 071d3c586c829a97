package transfer

import (
	"context"
	"crypto/rand"
	"time"

	agentv1 "github.com/swdt-dev/swdt/api/agent/v1"
	"github.com/swdt-dev/swdt/internal/node"
)

const (
	// firstProbe is enough to distinguish a slow link from a fast one. The others are
	// sent on fast links only, and distinguish those.
	firstProbe  = 64 << 10
	secondProbe = 512 << 10
	thirdProbe  = 2 << 20
	// againWithin is how long firstProbe may take to be repeated: TCP starts slowly,
	// and a processor may have been busy.
	againWithin = 25 * time.Millisecond
	// fastProbe is how long firstProbe may take, beyond the round trip, on a link that
	// deserves the second probe (one of 16 MB/s). fasterProbe is the same for the second
	// and third (40 MB/s).
	fastProbe   = 4 * time.Millisecond
	fasterProbe = 12 * time.Millisecond
	// probeTime is the time without an answer after which a link counts as slow.
	probeTime = 500 * time.Millisecond
	// probePart bounds a probe to one part in so many of the bytes to send.
	probePart = 16
	// readingAge is how long a reading is valid.
	readingAge = time.Minute
)

// link returns a reading of the link to the node: a recent one, or else a new measurement,
// which is short if few bytes are to be sent. It calls quick when the link turns out not to
// be slow, before it sends longer probes.
func (s *sending) link(ctx context.Context, bytes int64, quick func()) node.Reading {
	if reading, ok := s.recentReading(); ok {
		return reading
	}
	p := &probe{sending: s, most: bytes / probePart, quick: quick}
	reading := p.run(ctx)
	if reading.BytesPerSecond > 0 {
		s.node.Speed.Note(reading)
	}
	return reading
}

// recentReading returns a recent reading of the link.
func (s *sending) recentReading() (node.Reading, bool) {
	known := s.node.Speed.Latest()
	return known, known.BytesPerSecond > 0 && time.Since(known.At) < readingAge
}

// probe measures the link with growing messages, each sent after the answer to the previous
// one. The node discards their bytes, which are random, so that nothing on the way can
// compress them.
type probe struct {
	*sending
	most   int64 // bytes of one probe, beyond the first
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
	slow := func() node.Reading { // no answer in time, or no connection
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
		// The rest of such times is mostly process switches: the difference of the two
		// times is what the additional bytes take.
		lead, size = took, thirdProbe-secondProbe
		took, err = p.ask(thirdProbe)
	}
	if err != nil {
		return slow()
	}
	reading.RoundTrip = min(reading.RoundTrip, took) // the first probe found a busy processor
	// A time shorter than the lead's would leave no meaningful rest.
	took = max(took-min(lead, took), took/4, time.Microsecond)
	reading.BytesPerSecond = float64(size) / took.Seconds()
	return reading
}

// ask sends size bytes and waits until they have arrived.
func (p *probe) ask(size int64) (time.Duration, error) {
	noise := make([]byte, size) // random, so that nothing on the way can compress it
	_, _ = rand.Read(noise)     // never fails
	begun := time.Now()
	if err := p.stream.Send(&agentv1.ProbeRequest{Data: noise}); err != nil {
		return 0, err
	}
	p.probed += size
	_, err := p.stream.Recv()
	return time.Since(begun), err
}
