package transfer

import (
	"context"
	"crypto/rand"
	"time"

	agentv1 "github.com/swdt-dev/swdt/api/agent/v1"
	"github.com/swdt-dev/swdt/internal/node"
)

const (
	// firstProbe is enough to distinguish a slow link from a fast one. The larger probes are sent
	// on fast links only, and distinguish fast links from faster ones.
	firstProbe  = 64 << 10
	secondProbe = 512 << 10
	thirdProbe  = 2 << 20
	// If firstProbe takes less than againWithin, it is sent again: TCP starts slowly, and a
	// processor may have been busy.
	againWithin = 25 * time.Millisecond
	// If the time of firstProbe exceeds the round trip by less than fastProbe, the link is fast
	// enough for secondProbe (16 MB/s). If the time of secondProbe exceeds the round trip by less
	// than fasterProbe, the link is fast enough for thirdProbe (40 MB/s).
	fastProbe   = 4 * time.Millisecond
	fasterProbe = 12 * time.Millisecond
	// probeTime bounds the whole measurement. A link on which the measurement takes longer counts
	// as slow.
	probeTime = 500 * time.Millisecond
	// A probe after the first is sent only if the file is at least probePart times as
	// large.
	probePart = 16
	// readingAge is how long a reading is valid.
	readingAge = time.Minute
)

// link returns a reading of the link to the node: a recent one, or else a new measurement, which is
// short if few bytes are to be sent. If the first probe shows a link that is fast enough for larger
// probes, link calls the function quick before it sends the larger probes.
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

// recentReading returns the latest reading of the link, and whether that reading is recent enough
// to use.
func (s *sending) recentReading() (node.Reading, bool) {
	known := s.node.Speed.Latest()
	return known, known.BytesPerSecond > 0 && time.Since(known.At) < readingAge
}

// probe measures the link with growing messages, each sent after the answer to the previous
// one. The node discards their bytes, which are random, so that nothing on the way can
// compress them.
type probe struct {
	*sending
	most   int64 // bound on the size of a probe after the first
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
	slow := func() node.Reading { // slow returns the reading of a measurement that failed or got no answer in time
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
		// Besides the transfer, both times consist mostly of process switches. So the difference of
		// the two times is the time of the additional bytes.
		lead, size = took, thirdProbe-secondProbe
		took, err = p.ask(thirdProbe)
	}
	if err != nil {
		return slow()
	}
	// The empty probe can have taken longer than a full one if a processor was busy.
	reading.RoundTrip = min(reading.RoundTrip, took)
	// took could be as short as lead; the difference must stay a meaningful time.
	took = max(took-min(lead, took), took/4, time.Microsecond)
	reading.BytesPerSecond = float64(size) / took.Seconds()
	return reading
}

// ask sends size bytes, waits until they have arrived, and returns the time that this took.
func (p *probe) ask(size int64) (time.Duration, error) {
	noise := make([]byte, size) // random, so that nothing on the way can compress the bytes
	_, _ = rand.Read(noise)     // never fails
	begun := time.Now()
	if err := p.stream.Send(&agentv1.ProbeRequest{Data: noise}); err != nil {
		return 0, err
	}
	p.probed += size
	_, err := p.stream.Recv()
	return time.Since(begun), err
}
