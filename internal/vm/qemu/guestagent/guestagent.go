// Package guestagent asks the QEMU guest agent inside a VM, if there is one.
//
// The guest is not trusted: any program in the guest may answer. Each reply is bounded in size and
// time, and each value is checked before it is returned.
package guestagent

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"time"
)

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
type Agent struct {
	conn   net.Conn
	reader *bufio.Reader
	until  time.Time
}

// Dial connects to the agent's socket, and synchronises. ctx bounds Dial, and not the connection,
// which can be used for a few seconds.
func Dial(ctx context.Context, path string) (*Agent, error) {
	bounded, cancel := context.WithTimeout(ctx, replyLimit)
	defer cancel()
	conn, err := new(net.Dialer).DialContext(bounded, "unix", path)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrSilent, err)
	}
	until, _ := bounded.Deadline()
	a := &Agent{conn: conn, reader: bufio.NewReader(conn), until: until.Add(replyLimit)}
	stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	if err := a.synchronise(until); err != nil {
		return nil, errors.Join(fmt.Errorf("%w: %w", ErrSilent, err), conn.Close())
	}
	return a, nil
}

// Close ends the connection.
func (a *Agent) Close() error { return a.conn.Close() }

// synchronise skips replies to earlier, abandoned commands.
func (a *Agent) synchronise(until time.Time) error {
	var random [8]byte
	if _, err := rand.Read(random[:]); err != nil {
		return err
	}
	id := int64(binary.LittleEndian.Uint64(random[:]) >> 12) // JSON's numbers have 53 bits
	if err := a.conn.SetDeadline(until); err != nil {
		return err
	}
	// The agent's parser drops the bytes that it has received before the sentinel.
	if err := a.send("guest-sync-delimited", map[string]any{"id": id}, sentinel); err != nil {
		return err
	}
	for skipped := 0; skipped <= maxReply; skipped++ {
		b, err := a.reader.ReadByte()
		if err != nil {
			return err
		}
		if b != sentinel {
			continue
		}
		var echoed int64
		if err := a.receive(&echoed); err == nil && echoed == id {
			return nil
		} else if errors.Is(err, errReply) || err == nil {
			continue // the reply to an earlier synchronisation
		} else {
			return err
		}
	}
	return errors.New("the guest sends without end")
}

// Shutdown asks the guest to power off. The agent does not confirm it.
func (a *Agent) Shutdown() error {
	return a.send("guest-shutdown", map[string]any{"mode": "powerdown"})
}

// Addresses returns the guest's own addresses on the adapter with this MAC address, or on all
// adapters if that adapter has no address. Addresses that cannot lead to the guest are left out:
// loopback, link-local, multicast, unspecified.
func (a *Agent) Addresses(mac string) ([]netip.Addr, error) {
	if err := a.conn.SetDeadline(a.until); err != nil {
		return nil, err
	}
	if err := a.send("guest-network-get-interfaces", nil); err != nil {
		return nil, err
	}
	var adapters []struct {
		MAC       string `json:"hardware-address"`
		Addresses []struct {
			IP string `json:"ip-address"`
		} `json:"ip-addresses"`
	}
	if err := a.receive(&adapters); err != nil {
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
func (a *Agent) ReadFile(path string, limit int) (content []byte, err error) {
	if err := a.conn.SetDeadline(time.Now().Add(replyLimit)); err != nil {
		return nil, err
	}
	var handle int64
	if err := a.ask("guest-file-open", map[string]any{"path": path, "mode": "r"}, &handle); err != nil {
		return nil, err
	}
	defer func() {
		var nothing any
		err = errors.Join(err, a.ask("guest-file-close", map[string]any{"handle": handle}, &nothing))
	}()
	for reads := 0; reads <= limit; reads++ { // each read returns at least one byte
		var part struct {
			Content []byte `json:"buf-b64"`
			End     bool   `json:"eof"`
		}
		count := map[string]any{"handle": handle, "count": limit + 1 - len(content)}
		if err := a.ask("guest-file-read", count, &part); err != nil {
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

// ask sends a command and decodes the reply.
func (a *Agent) ask(command string, arguments, result any) error {
	if err := a.send(command, arguments); err != nil {
		return err
	}
	return a.receive(result)
}

func (a *Agent) send(command string, arguments any, before ...byte) error {
	request, err := json.Marshal(struct {
		Execute   string `json:"execute"`
		Arguments any    `json:"arguments,omitempty"`
	}{command, arguments})
	if err != nil {
		return err
	}
	_, err = a.conn.Write(append(append(before, request...), '\n'))
	return err
}

// ErrRefused is returned if the guest agent refuses a command.
var ErrRefused = errors.New("the guest agent refuses")

// errReply marks a complete reply that is not the expected one.
var errReply = errors.New("the guest agent's reply is unusable")

// receive decodes the next reply.
func (a *Agent) receive(result any) error {
	line, err := a.line()
	if err != nil {
		return err
	}
	var reply struct {
		Return json.RawMessage `json:"return"`
		Error  *struct {
			Desc string `json:"desc"`
		} `json:"error"`
	}
	if err := json.Unmarshal(line, &reply); err != nil {
		return fmt.Errorf("%w: %w", errReply, err)
	}
	if reply.Error != nil {
		return fmt.Errorf("%w: %w: %.200q", errReply, ErrRefused, reply.Error.Desc)
	}
	if err := json.Unmarshal(reply.Return, result); err != nil {
		return fmt.Errorf("%w: %w", errReply, err)
	}
	return nil
}

// line reads a line, and returns it without sentinels at its beginning.
func (a *Agent) line() ([]byte, error) {
	var line []byte
	for {
		part, err := a.reader.ReadSlice('\n')
		if len(line)+len(part) > maxReply {
			return nil, errors.New("the guest agent's reply is too long")
		}
		line = append(line, part...)
		if err == nil {
			return bytes.TrimLeft(line, "\xff"), nil
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return nil, err
		}
	}
}
