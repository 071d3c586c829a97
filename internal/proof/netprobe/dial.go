package netprobe

import (
	"bufio"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"strings"
	"syscall"
	"time"
)

// firstRepeat is the time after which a question over UDP is sent again. It doubles each time.
const firstRepeat = 200 * time.Millisecond

// attempt tries to reach a target.
func (p *probe) attempt(ctx context.Context, t Target, timeout time.Duration) Result {
	begin := time.Now()
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	r := p.ask(ctx, t)
	r.MS = time.Since(begin).Milliseconds()
	return r
}

func (p *probe) ask(ctx context.Context, t Target) Result {
	address, err := netip.ParseAddr(t.Address)
	if err != nil || t.Number < 1 || t.Number > 65535 {
		return Result{Outcome: Failed, Text: fmt.Sprintf("%q port %d is no address", t.Address, t.Number)}
	}
	nonce := make([]byte, nonceLength/2)
	_, _ = rand.Read(nonce) // never fails
	question := greeting + hex.EncodeToString(nonce)
	c, err := p.dial(ctx, t.Protocol, netip.AddrPortFrom(address, uint16(t.Number)))
	if err != nil {
		return failure(err)
	}
	defer c.Close()
	if at, ok := ctx.Deadline(); ok {
		if err := c.SetDeadline(at); err != nil {
			return failure(err)
		}
	}
	answer, err := exchange(ctx, c, t.Protocol, question)
	if err != nil {
		return failure(err)
	}
	said, ok := strings.CutPrefix(answer, question+" ")
	name, seen, two := strings.Cut(strings.TrimSuffix(said, "\n"), " ")
	switch {
	case !ok || !two:
		return Result{Outcome: Wrong, Text: "the answer is not of a probe"}
	case name != t.Name:
		return Result{Outcome: Wrong, Text: "pod " + name + " answered"}
	}
	return Result{Outcome: Connected, Seen: seen}
}

// dial connects from the pod's own address.
func (p *probe) dial(ctx context.Context, protocol string, to netip.AddrPort) (net.Conn, error) {
	from := netip.AddrPortFrom(p.source, 0)
	switch protocol {
	case "TCP":
		return (&net.Dialer{LocalAddr: net.TCPAddrFromAddrPort(from)}).DialContext(ctx, "tcp", to.String())
	case "UDP":
		return (&net.Dialer{LocalAddr: net.UDPAddrFromAddrPort(from)}).DialContext(ctx, "udp", to.String())
	}
	return nil, fmt.Errorf("there is no protocol %q", protocol)
}

// exchange sends the question and returns the answer.
func exchange(ctx context.Context, c net.Conn, protocol, question string) (string, error) {
	if protocol == "UDP" {
		return exchangePackets(ctx, c, question)
	}
	if _, err := io.WriteString(c, question+"\n"); err != nil {
		return "", err
	}
	return bufio.NewReader(io.LimitReader(c, maxExchange)).ReadString('\n')
}

// exchangePackets repeats the question until an answer comes, since a packet may be lost.
func exchangePackets(ctx context.Context, c net.Conn, question string) (string, error) {
	packet := make([]byte, maxExchange)
	for pause := firstRepeat; ; pause *= 2 {
		if _, err := io.WriteString(c, question+"\n"); err != nil {
			return "", err
		}
		until := time.Now().Add(pause)
		if at, ok := ctx.Deadline(); ok && at.Before(until) {
			until = at
		}
		if err := c.SetReadDeadline(until); err != nil {
			return "", err
		}
		n, err := c.Read(packet)
		if err == nil {
			return string(packet[:n]), nil
		}
		if !errors.Is(err, os.ErrDeadlineExceeded) || ctx.Err() != nil {
			return "", err
		}
	}
}

// failure returns the result of an attempt that failed.
func failure(err error) Result {
	var late net.Error
	r := Result{Outcome: Failed, Text: err.Error()}
	switch {
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, os.ErrDeadlineExceeded),
		errors.As(err, &late) && late.Timeout():
		return Result{Outcome: Timeout}
	case isOne(err, refusals()):
		r.Outcome = Refused
	case isOne(err, rejections()), errors.Is(err, io.EOF):
		r.Outcome = Unreachable
	}
	return r
}

func isOne(err error, codes []syscall.Errno) bool {
	for _, code := range codes {
		if errors.Is(err, code) {
			return true
		}
	}
	return false
}
