package qmp

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"time"
)

// The guest is not trusted: any program in the guest may answer for the agent. Each reply is bounded in size and
// time, and each value is checked before it is returned.
const (
	replyLimit = 3 * time.Second // an agent answers in a tenth of a second
	maxReply   = 1 << 20         // bytes
	// maxAddresses bounds the addresses that one guest may report.
	maxAddresses = 64
	// sentinel is the byte before the reply to guest-sync-delimited. It occurs in no JSON.
	sentinel = 0xff
)

// ErrSilent is returned if no agent answers.
var ErrSilent = errors.New("no guest agent answers")

// Agent is a connection to the guest agent of one VM.
type Agent struct{ lines }

// DialAgent connects to the agent's socket, and synchronises. ctx bounds DialAgent, and not the connection.
func DialAgent(ctx context.Context, path string) (*Agent, error) {
	bounded, cancel := context.WithTimeout(ctx, replyLimit)
	defer cancel()
	conn, err := new(net.Dialer).DialContext(bounded, "unix", path)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrSilent, err)
	}
	a := &Agent{newLines(conn, maxReply)}
	if err := a.synchronise(bounded); err != nil {
		return nil, errors.Join(fmt.Errorf("%w: %w", ErrSilent, err), conn.Close())
	}
	return a, nil
}

// synchronise skips replies to earlier, abandoned commands.
func (a *Agent) synchronise(ctx context.Context) error {
	var random [8]byte
	if _, err := rand.Read(random[:]); err != nil {
		return err
	}
	id := int64(binary.LittleEndian.Uint64(random[:]) >> 12) // JSON's numbers have 53 bits
	const command = "guest-sync-delimited"
	// The agent's parser drops the bytes that it has received before the sentinel.
	if err := a.send(ctx, command, map[string]any{"id": id}, 0, sentinel); err != nil {
		return err
	}
	for {
		var echoed int64
		err := a.receive(ctx, command, &echoed)
		if err == nil && echoed == id || err != nil && !errors.Is(err, errReply) {
			return err
		}
	}
}

// Shutdown asks the guest to power off. The agent does not confirm it.
func (a *Agent) Shutdown(ctx context.Context) error {
	bounded, cancel := context.WithTimeout(ctx, replyLimit)
	defer cancel()
	return a.send(bounded, "guest-shutdown", map[string]any{"mode": "powerdown"}, 0)
}

// Addresses returns the guest's own addresses on the adapter with this MAC address, or on all
// adapters if that adapter has no address. Addresses that cannot lead to the guest are left out:
// loopback, link-local, multicast, unspecified.
func (a *Agent) Addresses(ctx context.Context, mac string) ([]netip.Addr, error) {
	bounded, cancel := context.WithTimeout(ctx, replyLimit)
	defer cancel()
	var adapters []struct {
		MAC       string `json:"hardware-address"`
		Addresses []struct {
			IP string `json:"ip-address"`
		} `json:"ip-addresses"`
	}
	if err := a.ask(bounded, "guest-network-get-interfaces", nil, &adapters); err != nil {
		return nil, err
	}
	var ours, all []netip.Addr
	for _, adapter := range adapters {
		for _, address := range adapter.Addresses {
			ip, err := netip.ParseAddr(address.IP)
			if err != nil || !Plausible(ip) || len(all) == maxAddresses {
				continue
			}
			ip = ip.Unmap().WithZone("")
			all = append(all, ip)
			if strings.EqualFold(adapter.MAC, mac) {
				ours = append(ours, ip)
			}
		}
	}
	if len(ours) > 0 {
		return ours, nil
	}
	return all, nil
}

// Plausible reports whether another machine can reach a machine at an address.
func Plausible(ip netip.Addr) bool {
	ip = ip.Unmap()
	return ip.IsGlobalUnicast() && ip != netip.AddrFrom4([4]byte{255, 255, 255, 255})
}

// ReadFile returns the content of a file of the guest. The file may have at most limit bytes. The
// guest can return any content. If the agent refuses to read the file, for example because the file
// does not exist, the error is an ErrRefused.
func (a *Agent) ReadFile(ctx context.Context, path string, limit int) (content []byte, err error) {
	bounded, cancel := context.WithTimeout(ctx, replyLimit)
	defer cancel()
	var handle int64
	if err := a.ask(bounded, "guest-file-open", map[string]any{"path": path, "mode": "r"}, &handle); err != nil {
		return nil, err
	}
	defer func() {
		var nothing any
		err = errors.Join(err, a.ask(bounded, "guest-file-close", map[string]any{"handle": handle}, &nothing))
	}()
	for reads := 0; reads <= limit; reads++ { // each read returns at least one byte
		var part struct {
			Content []byte `json:"buf-b64"`
			End     bool   `json:"eof"`
		}
		count := map[string]any{"handle": handle, "count": limit + 1 - len(content)}
		if err := a.ask(bounded, "guest-file-read", count, &part); err != nil {
			return nil, err
		}
		content = append(content, part.Content...)
		switch {
		case len(content) > limit:
			return nil, fmt.Errorf("%w: %s has more than %d bytes", errReply, path, limit)
		case part.End || len(part.Content) == 0:
			return content, nil
		}
	}
	return nil, fmt.Errorf("%w: the guest never reports the end of %s", errReply, path)
}

// ErrRefused is returned if the guest agent refuses a command.
var ErrRefused = errors.New("the guest agent refuses")

// errReply marks a complete reply that is not the expected one.
var errReply = errors.New("the guest agent's reply is unusable")

// ask sends a command and decodes the reply.
func (a *Agent) ask(ctx context.Context, command string, arguments, result any) error {
	if err := a.send(ctx, command, arguments, 0); err != nil {
		return err
	}
	return a.receive(ctx, command, result)
}

// receive decodes the next reply.
func (a *Agent) receive(ctx context.Context, command string, result any) error {
	line, err := a.read(ctx)
	if err != nil {
		return err
	}
	m, err := parse(line[bytes.LastIndexByte(line, sentinel)+1:])
	if err == nil {
		err = m.decode(command, result)
	}
	switch {
	case m.Error != nil:
		return fmt.Errorf("%w: %w: %.200q", errReply, ErrRefused, m.Error.Desc)
	case err != nil:
		return fmt.Errorf("%w: %w", errReply, err)
	}
	return nil
}
