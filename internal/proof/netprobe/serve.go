package netprobe

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"strings"
	"time"
)

// The exchange between two probes is a line each way:
//
//	swdt-probe 1 NONCE
//	swdt-probe 1 NONCE NAME ADDRESS
//
// NONCE is random. NAME is that of the pod which answers, and ADDRESS is the address from which it saw the
// question come.
const (
	greeting = "swdt-probe 1 "
	// nonceLength is the length of a nonce, in hex digits.
	nonceLength = 16
	// maxExchange bounds a line of the exchange, in bytes.
	maxExchange = 256
	// serverLimit bounds a connection to a server.
	serverLimit = 5 * time.Second
	// maxConnections bounds the connections that a server answers at a time.
	maxConnections = 512
	// maxFailures is the number of failures in a row after which a server gives up.
	maxFailures = 10000
)

// listen starts a server.
func (p *probe) listen(port Port) (io.Closer, error) {
	if port.Number < 1 || port.Number > 65535 {
		return nil, fmt.Errorf("%d is no port", port.Number)
	}
	at := netip.AddrPortFrom(p.source, uint16(port.Number))
	switch port.Protocol {
	case "TCP":
		l, err := net.ListenTCP("tcp", net.TCPAddrFromAddrPort(at))
		if err != nil {
			return nil, err
		}
		p.running.Go(func() { p.accept(l) })
		return l, nil
	case "UDP":
		c, err := net.ListenUDP("udp", net.UDPAddrFromAddrPort(at))
		if err != nil {
			return nil, err
		}
		p.running.Go(func() { p.answerPackets(c) })
		return c, nil
	case "SCTP": // a policy can name it, but Windows has none
		return nil, fmt.Errorf("the probe has no SCTP: %w", errors.ErrUnsupported)
	}
	return nil, fmt.Errorf("there is no protocol %q", port.Protocol)
}

// accept answers connections until the listener is closed.
func (p *probe) accept(l net.Listener) {
	places := make(chan struct{}, maxConnections)
	for failures := 0; failures < maxFailures; {
		c, err := l.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil { // such as too many open files
			failures++
			continue
		}
		failures = 0
		places <- struct{}{}
		p.running.Go(func() {
			defer func() { <-places }()
			defer c.Close()
			p.answerConnection(c)
		})
	}
}

func (p *probe) answerConnection(c net.Conn) {
	if c.SetDeadline(time.Now().Add(serverLimit)) != nil {
		return
	}
	question := make([]byte, len(greeting)+nonceLength+1)
	if _, err := io.ReadFull(c, question); err != nil {
		return
	}
	if answer := p.answer(string(question), c.RemoteAddr()); answer != "" {
		_, _ = io.WriteString(c, answer) // the other end notices a failure
	}
}

// answerPackets answers UDP packets until the connection is closed.
func (p *probe) answerPackets(c *net.UDPConn) {
	packet := make([]byte, maxExchange)
	for failures := 0; failures < maxFailures; {
		n, from, err := c.ReadFrom(packet)
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil { // such as an earlier answer that was rejected
			failures++
			continue
		}
		failures = 0
		if answer := p.answer(string(packet[:n]), from); answer != "" {
			_, _ = c.WriteTo([]byte(answer), from) // the other end repeats its question
		}
	}
}

// answer returns the answer to a question; "" if it is no question of a probe.
func (p *probe) answer(question string, from net.Addr) string {
	nonce, ok := strings.CutPrefix(strings.TrimSuffix(question, "\n"), greeting)
	if !ok || len(nonce) != nonceLength {
		return ""
	}
	seen := "?"
	if at, err := netip.ParseAddrPort(from.String()); err == nil {
		seen = at.Addr().Unmap().String()
	}
	return greeting + nonce + " " + p.serving.Name + " " + seen + "\n"
}
