//go:build linux

package main

import (
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"time"
)

// Link is the rate and the delay of a connection.
type Link struct {
	Name string `json:"name"`
	// Rate in bytes a second, each way, shared by all connections; 0: unlimited.
	Rate float64 `json:"bytesPerSecond"`
	// RoundTrip is the time that the link adds to a round trip.
	RoundTrip time.Duration `json:"roundTripNanoseconds"`
}

// links returns the links of the measurements, slowest last.
func links() []Link {
	return []Link{
		{Name: "unshaped"},
		{Name: "40 MB/s", Rate: 40e6},
		{Name: "10 MB/s + 5 ms", Rate: 10e6, RoundTrip: 5 * time.Millisecond},
		{Name: "1 MB/s + 50 ms", Rate: 1e6, RoundTrip: 50 * time.Millisecond},
	}
}

// proxy is a link in front of a TCP server on loopback.
type proxy struct {
	link     Link
	target   string
	listener net.Listener
	there    *lane
	back     *lane
	running  sync.WaitGroup
	ctx      context.Context
	end      context.CancelFunc
}

// newProxy returns a proxy that listens until it is closed.
func newProxy(ctx context.Context, link Link, target string) (*proxy, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	ctx, end := context.WithCancel(ctx)
	p := &proxy{
		link: link, target: target, listener: listener, ctx: ctx, end: end,
		there: newLane(link.Rate, time.Now), back: newLane(link.Rate, time.Now),
	}
	p.running.Go(p.accept)
	return p, nil
}

func (p *proxy) address() string { return p.listener.Addr().String() }

func (p *proxy) port() string {
	_, port, _ := net.SplitHostPort(p.address()) // a listener's address has a port
	return port
}

// Close closes the listener and the connections.
func (p *proxy) Close() error {
	p.end()
	err := p.listener.Close()
	p.running.Wait()
	return err
}

func (p *proxy) accept() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return // closed
		}
		p.running.Go(func() { p.connection(client) })
	}
}

func (p *proxy) connection(client net.Conn) {
	defer client.Close()
	server, err := (&net.Dialer{}).DialContext(p.ctx, "tcp", p.target)
	if err != nil {
		return
	}
	defer server.Close()
	stop := context.AfterFunc(p.ctx, func() {
		client.Close()
		server.Close()
	})
	defer stop()
	var both sync.WaitGroup
	both.Go(func() { p.carry(server, client, p.there) })
	both.Go(func() { p.carry(client, server, p.back) })
	both.Wait()
}

const (
	// packet is the number of bytes in a packet: small, so that a slow link is smooth.
	packet = 16 << 10
	// inFlight bounds the packets that have left and have not arrived yet: 16 MB.
	inFlight = 1024
)

// carried is a packet that has left and has not arrived yet.
type carried struct {
	data    []byte
	arrives time.Time
}

// carry moves the bytes of one direction of a connection: each packet waits for its turn on the
// lane, and arrives half a round trip later. While a packet waits for its turn, carry reads
// nothing, so the sender is slowed down as by a real link.
func (p *proxy) carry(to, from net.Conn, lane *lane) {
	onTheWay := make(chan carried, inFlight)
	var delivering sync.WaitGroup
	delivering.Go(func() { deliver(p.ctx, to, onTheWay) })
	for {
		data := make([]byte, packet)
		n, err := from.Read(data)
		if n > 0 {
			left := lane.book(n)
			if !waitUntil(p.ctx, left) {
				break
			}
			onTheWay <- carried{data[:n], left.Add(p.link.RoundTrip / 2)}
		}
		if err != nil {
			break
		}
	}
	close(onTheWay)
	delivering.Wait()
}

// deliver writes packets when they arrive, and closes the receiver's side after the last packet. It
// takes all packets from the channel even if the receiver has closed the connection.
func deliver(ctx context.Context, to net.Conn, packets <-chan carried) {
	gone := false
	for p := range packets {
		if gone || !waitUntil(ctx, p.arrives) {
			continue
		}
		if _, err := to.Write(p.data); err != nil {
			gone = true
		}
	}
	if half, ok := to.(interface{ CloseWrite() error }); ok {
		if err := half.CloseWrite(); err != nil && !errors.Is(err, net.ErrClosed) && !errors.Is(err, io.EOF) {
			to.Close()
		}
	}
}

// waitUntil waits until t, and reports whether t came before the end of ctx.
func waitUntil(ctx context.Context, t time.Time) bool {
	wait := time.Until(t)
	if wait <= 0 {
		return ctx.Err() == nil
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

// lane is one direction of a link. It books a time at which bytes leave: after all bytes that were
// booked before.
type lane struct {
	mu   sync.Mutex
	rate float64
	now  func() time.Time
	free time.Time // when all booked bytes have left
}

func newLane(rate float64, now func() time.Time) *lane {
	return &lane{rate: rate, now: now, free: now()}
}

// late is the maximum delay for which a lane compensates. Timers fire late, and without compensation
// each late timer would slow the link down.
const late = 2 * time.Millisecond

// book books n bytes and returns the time at which they will have left.
func (l *lane) book(n int) time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.now()
	if l.rate == 0 {
		return now
	}
	if earliest := now.Add(-late); l.free.Before(earliest) {
		l.free = earliest
	}
	l.free = l.free.Add(time.Duration(float64(n) / l.rate * float64(time.Second)))
	return l.free
}
